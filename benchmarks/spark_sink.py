"""Rows a second that one Spark core writes into a topic, beside Spark's own connector and rows to nowhere.

`local[1]`, exactly once: with the transaction of the task, the decision and the commit. The best of a few
rounds, after one that starts the workers and compiles. Spark's connector writes at least once, with its
defaults; beside it stands our own at-least-once.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession

from benchmarks.backed_memory import have_backed
from benchmarks.figures import Aim, Figure
from benchmarks.servers import riverlog
from benchmarks.spark_rates import best, connector_jars, session

SIZES = {100: 2_000_000, 1000: 300_000}
AIMS = {100: 672_000, 1000: 208_000}
PARTITIONS = 4


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory, riverlog(Path(directory) / "data") as broker:
        servers = "{}:{}".format(*broker.address)
        create_topics(servers)
        jars = connector_jars()
        with session(jars) as spark:
            return [
                figure
                for size, rows in SIZES.items()
                for figure in _figures(spark, servers, Path(directory), size, rows, jars)
            ]


def _figures(
    spark: SparkSession, servers: str, directory: Path, size: int, rows: int, jars: str | None
) -> Iterator[Figure]:
    frame = made_up(spark, size, rows)
    topic = f"bytes{size}"

    def to(sink: str, **options: str) -> Callable[[], None]:
        options = {"kafka.bootstrap.servers": servers, "topic": topic, **options}
        return lambda: frame.write.format(sink).options(**options).mode("append").save()

    def memory() -> None:
        have_backed(directory, 3 * size * rows // 2)

    nowhere = best(lambda: frame.write.format("noop").mode("overwrite").save(), rows)
    ours = best(to("riverlog"), rows, memory)
    name = f"{size} B written by one Spark core"
    yield Figure(f"{name}, exactly once", ours, "rows/s", nowhere, "noop", Aim(at_least=AIMS[size]))
    loose = best(to("riverlog", deliveryGuarantee="at-least-once"), rows, memory)
    yield Figure(f"{name}, at least once", loose, "rows/s", nowhere, "noop")
    if jars is not None:
        theirs = best(to("kafka"), rows, memory)
        yield Figure(
            f"{name}, exactly once, against Spark's connector",
            ours,
            "rows/s",
            theirs,
            "connector",
            Aim(of="ratio", at_least=1),
        )


def made_up(spark: SparkSession, size: int, rows: int) -> DataFrame:
    """Values of this size, without keys, from one task."""
    return spark.range(0, rows, 1, 1).selectExpr(
        f"cast(concat(cast(id as string), repeat('x', {size - 10})) as binary) as value"
    )


def create_topics(servers: str) -> None:
    topics = [NewTopic(f"bytes{size}", num_partitions=PARTITIONS) for size in SIZES]
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics(topics).values():
        created.result(30)
