"""A new project: small, working, and commented for somebody who has seen neither Spark's pipelines nor us."""

import re
from pathlib import Path
from string import Template
from typing import Final

from riverlog.spark.pipelines.failures import PipelineError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

_SPEC: Final = Template("""\
# A project of Spark Declarative Pipelines. `riverlog pipeline run` keeps it running; Spark's own
# `spark-pipelines run` takes it as it is.
name: $name

# Checkpoints live here: how far each flow has come. Without them a run begins at the start again.
storage: $storage

libraries:
  - glob:
      include: transformations/**

# Settings of Spark, as texts. The topics of one project seldom need hundreds of tasks.
configuration:
  spark.sql.shuffle.partitions: "2"
""")

_FLOWS: Final = Template('''\
"""Orders in, clean orders out, and what could not be read kept as dead letters."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from riverlog.spark import dead_letters_as_records, decode

spark = SparkSession.active()

BROKERS = {"kafka.bootstrap.servers": os.environ.get("RIVERLOG_BOOTSTRAP", "$bootstrap")}
ORDER = "id BIGINT NOT NULL, region STRING NOT NULL, amount DOUBLE NOT NULL"

# Where records go. A sink writes each of them exactly once, also over crashes and restarts.
dp.create_sink("clean_orders", "riverlog", {**BROKERS, "topic": "$topic.clean"})
dp.create_sink("dead_letters", "riverlog", {**BROKERS, "topic": "$topic.dead"})


def decoded_orders():
    """The topic as a stream, with the JSON of its values in the column `order`."""
    records = (
        spark.readStream.format("riverlog")
        .options(**BROKERS)
        .option("subscribe", "$topic")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )
    return decode(records, "json", schema=ORDER, into="order")


# A flow is a query that adds rows to its target. The sink takes the columns key, value, headers.
@dp.append_flow(target="clean_orders")
def clean() -> DataFrame:
    region = sf.upper("order.region").alias("region")
    order = sf.struct("order.id", region, "order.amount")
    return decoded_orders().good.select("key", sf.to_json(order).alias("value"))


# The original record, with headers that say what was wrong and where it came from.
@dp.append_flow(target="dead_letters")
def dead() -> DataFrame:
    return dead_letters_as_records(decoded_orders().dead)
''')

_IGNORED: Final = "pipeline-storage/\nspark-warehouse/\nmetastore_db/\nderby.log\n__pycache__/\n"


def create(parent: Path, name: str, *, topic: str, bootstrap: str) -> Path:
    """The directory of the new project."""
    if not _NAME.fullmatch(name):
        raise PipelineError(
            f"{name!r} is no name for a project", remedy="use letters, digits, dots and hyphens"
        )
    directory = (parent / name).resolve()
    if directory.exists():
        raise PipelineError(f"{directory} exists already", remedy="choose another name, or remove it")
    (directory / "transformations").mkdir(parents=True)
    (directory / "pipeline-storage").mkdir()
    texts = {
        "name": name,
        "topic": topic,
        "bootstrap": bootstrap,
        "storage": (directory / "pipeline-storage").as_uri(),
    }
    (directory / "spark-pipeline.yml").write_text(_SPEC.substitute(texts))
    (directory / "transformations" / "orders.py").write_text(_FLOWS.substitute(texts))
    (directory / ".gitignore").write_text(_IGNORED)
    return directory
