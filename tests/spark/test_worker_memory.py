"""Spark's Python workers look through what they have loaded once, and not after every task."""

import gc
from collections.abc import Iterator

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from riverlog.spark import worker_memory
from riverlog.spark.data_source import RiverlogDataSource
from riverlog.spark.source.arrow_batches import ArrowBatch
from riverlog.spark.source.batch_reader import BatchReader
from riverlog.spark.source.options import batch_options
from riverlog.spark.worker_memory import set_loaded_aside
from riverlog.testing import Broker
from tests.spark.logs import numbered, put


class TellingDataSource(RiverlogDataSource):
    """Tells in place of offsets how many objects the worker has set aside."""

    @classmethod
    def name(cls) -> str:
        return "riverlog_telling"

    def reader(self, schema: StructType) -> "TellingReader":
        return TellingReader(batch_options(self.options), schema)


class TellingReader(BatchReader):
    def read(self, partition: InputPartition) -> Iterator[ArrowBatch]:
        for rows in super().read(partition):
            told = pa.array([gc.get_freeze_count()] * rows.num_rows)
            yield rows.set_column(rows.schema.get_field_index("offset"), "offset", told)


def test_a_worker_that_is_used_again_sets_what_it_has_loaded_aside(
    spark: SparkSession, broker: Broker
) -> None:
    broker.create_topic("small")
    put(broker, "small", numbered(0, 10))
    spark.dataSource.register(TellingDataSource)
    servers = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "small"}
    rows = spark.read.format("riverlog_telling").options(**servers).load()
    counts = [row.offset for _ in range(6) for row in rows.collect()]
    assert max(counts) > 10_000, counts


def test_other_processes_collect_garbage_as_before() -> None:
    before = gc.get_freeze_count()
    for _ in range(10):
        set_loaded_aside()
    assert gc.get_freeze_count() == before


def test_what_is_set_aside_over_many_tasks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Garbage among it would stay for good, so that is done a few times in the life of a worker."""
    freezes = []
    monkeypatch.setattr(worker_memory._Uses, "count", 0)
    monkeypatch.setattr(worker_memory, "_is_worker", lambda: True)
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(worker_memory._Uses.count))
    for _ in range(5000):
        set_loaded_aside()
    assert freezes == [2**power for power in range(1, 11)]
