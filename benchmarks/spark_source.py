"""Rows a second that one Spark core reads from a topic, beside Spark's own connector and rows from nowhere.

`local[1]`: one task at a time; what Python does beside the JVM counts too, as on any machine where Spark has
more cores than tasks. The best of a few rounds, after one that starts the workers and compiles.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from benchmarks.figures import Aim, Figure
from benchmarks.servers import riverlog
from benchmarks.spark_rates import best, connector_jars, session

SIZES = {100: 2_000_000, 1000: 300_000}
AIMS = {100: 484_000, 1000: 173_000}


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory, riverlog(Path(directory) / "data") as broker:
        servers = "{}:{}".format(*broker.address)
        for size, rows in SIZES.items():
            fill(servers, f"bytes{size}", size, rows)
        jars = connector_jars()
        with session(jars) as spark:
            return [
                figure
                for size, rows in SIZES.items()
                for figure in _figures(spark, servers, size, rows, jars)
            ]


def _figures(spark: SparkSession, servers: str, size: int, rows: int, jars: str | None) -> Iterator[Figure]:
    ours = best(lambda: _to_nowhere(_read(spark, "riverlog", servers, f"bytes{size}")), rows)
    free = best(lambda: _to_nowhere(made_up(spark, size, rows)), rows)
    name = f"{size} B read by one Spark core"
    yield Figure(name, ours, "rows/s", free, "made up", Aim(at_least=AIMS[size]))
    if jars is not None:
        theirs = best(lambda: _to_nowhere(_read(spark, "kafka", servers, f"bytes{size}")), rows)
        yield Figure(
            f"{name}, against Spark's connector",
            ours,
            "rows/s",
            theirs,
            "connector",
            Aim(of="ratio", at_least=1),
        )


def _to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _read(spark: SparkSession, source: str, servers: str, topic: str) -> DataFrame:
    reader = spark.read.format(source).option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).load()


def made_up(spark: SparkSession, size: int, rows: int) -> DataFrame:
    """The same columns and sizes, from nowhere."""
    return spark.range(0, rows, 1, 1).selectExpr(
        "cast(null as binary) as key",
        f"cast(repeat('x', {size}) as binary) as value",
        "'topic' as topic",
        "0 as partition",
        "id as offset",
        "timestamp_millis(id) as timestamp",
        "0 as timestampType",
    )


def fill(servers: str, topic: str, size: int, rows: int) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    value = os.urandom(size)
    for _ in range(rows):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
