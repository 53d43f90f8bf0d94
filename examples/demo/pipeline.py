"""The pipeline on Spark: three queries that run while the orders come in, and one that runs when they are in.

What the four do:

    orders ─ decode ─┬─ dead letters ──────────────────> orders.dead
                     └─ dedup ─ split by region ───────> orders.REGION
    orders ─ archive ──────────────────────────────────> Parquet
    orders.REGION ─ revenue per window, until caught up ─> revenue
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from examples.demo.orders import ELSEWHERE, LATENESS, ROUTED, WINDOW, topic_of
from riverlog.spark import archive, dead_letters_as_records, decode, dedup, split
from riverlog.spark.spark_home import use_light_home

ORDERS, DEAD, REVENUE = "orders", "orders.dead", "revenue"
REGION_TOPICS = tuple(topic_of(region) for region in (*ROUTED, ELSEWHERE))
ORDER = "id BIGINT NOT NULL, region STRING NOT NULL, cents BIGINT NOT NULL, at TIMESTAMP NOT NULL"


@contextmanager
def spark_session(directory: Path) -> Iterator[SparkSession]:
    """On this machine, with two tasks at a time. Its log goes to a file: the demo has its own to show."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    use_light_home()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(directory / "scratch"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.log.level": "ERROR",
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
    }
    builder = SparkSession.builder.master("local[2]").appName("riverlog-demo")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _stderr_in(directory / "spark.log"):
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _stderr_in(path: Path) -> Iterator[None]:
    """The JVM inherits the descriptor that is there when it starts, and keeps it."""
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@dataclass(frozen=True, slots=True)
class Pipeline:
    spark: SparkSession
    bootstrap: str
    directory: Path

    @property
    def archive_path(self) -> Path:
        return self.directory / "archive"

    def start(self) -> Iterator[tuple[str, StreamingQuery]]:
        """Start one query after the other."""
        orders = decode(self._topics(ORDERS), "json", schema=ORDER, into="order")
        yield "dead letters", self._write(dead_letters_as_records(orders.dead), "dead-letters", DEAD)
        yield "by region", self._write(self._by_region(orders.good), "by-region", None)
        checkpoint = str(self.directory / "checkpoints/archive")
        path = str(self.archive_path)
        yield "archive", archive(self._topics(ORDERS), path, checkpoint=checkpoint, every="1 second")

    def start_revenue(self) -> StreamingQuery:
        """A query as a timer would start it now and then: it ends when it has caught up."""
        return self._write(self._revenue(self._topics(*REGION_TOPICS)), "revenue", REVENUE, is_once=True)

    def _by_region(self, orders: DataFrame) -> DataFrame:
        timed = orders.withColumn("at", sf.col("order.at"))
        once = dedup(timed, "order.id", time="at", within=_text(LATENESS))
        routes = {topic_of(region): sf.col("order.region") == region for region in ROUTED}
        return split(once, routes, otherwise=topic_of(ELSEWHERE)).select("key", "value", "headers", "topic")

    def _revenue(self, records: DataFrame) -> DataFrame:
        orders = decode(records, "json", schema=ORDER, into="order").good.select("order.*")
        windows = (
            orders.withWatermark("at", _text(LATENESS))
            .groupBy(sf.window("at", _text(WINDOW)), "region")
            .agg(sf.count("*").alias("orders"), sf.sum("cents").alias("cents"))
        )
        start = sf.unix_seconds("window.start").alias("start")
        figures = sf.struct("region", start, "orders", "cents")
        return windows.select(sf.col("region").alias("key"), sf.to_json(figures).alias("value"))

    def _topics(self, *topics: str) -> DataFrame:
        return (
            self.spark.readStream.format("riverlog")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("kafka.isolation.level", "read_committed")
            .option("subscribe", ",".join(topics))
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .load()
        )

    def _write(
        self, rows: DataFrame, name: str, topic: str | None, *, is_once: bool = False
    ) -> StreamingQuery:
        writer = (
            rows.writeStream.queryName(name)
            .format("riverlog")
            .option("kafka.bootstrap.servers", self.bootstrap)
            .option("checkpointLocation", str(self.directory / "checkpoints" / name))
        )
        if topic is not None:
            writer = writer.option("topic", topic)
        return (writer.trigger(availableNow=True) if is_once else writer).start()


def _text(span: timedelta) -> str:
    return f"{int(span.total_seconds())} seconds"
