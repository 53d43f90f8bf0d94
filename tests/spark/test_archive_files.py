"""A topic archived to Parquet and read back; archive and log as one batch with an exact seam."""

from pathlib import Path
from uuid import uuid4

import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

from riverlog.spark import archive, archive_rows, read_archive, read_with_archive
from riverlog.spark.archive_seam import ArchiveGapError, LogBounds, decide_seams
from riverlog.testing import Broker
from tests.spark.records import records
from tests.spark.topics import Sent, send

NOON_MS = 1_772_366_400_000  # 2026-03-01T12:00:00Z
DAY_MS = 86_400_000


def options(broker: Broker) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers}


def stream(spark: SparkSession, broker: Broker, topic: str) -> DataFrame:
    return (
        spark.readStream.format("riverlog")
        .options(**options(broker), subscribe=topic, startingOffsets="earliest", includeHeaders="true")
        .load()
    )


def archived(spark: SparkSession, broker: Broker, topic: str, path: str) -> None:
    query = archive(stream(spark, broker, topic), path)
    assert query.awaitTermination(120)


def in_order(rows: DataFrame) -> list[Row]:
    return sorted(rows.collect(), key=lambda row: (row.partition, row.offset))


def numbered(numbers: range) -> list[Sent]:
    return [Sent(f"k{n}".encode(), str(n).encode(), [("n", str(n).encode())]) for n in numbers]


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders-{uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    return name


def test_an_archive_keeps_everything_about_a_record_and_takes_up_where_it_ended(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "archive")
    send(broker, topic, numbered(range(10)), partition=0, timestamp_ms=NOON_MS)
    send(
        broker,
        topic,
        [Sent(None, None, []), Sent(b"", b"", [("h", None)])],
        partition=1,
        timestamp_ms=NOON_MS,
    )
    archived(spark, broker, topic, path)
    send(broker, topic, numbered(range(10, 15)), partition=0, timestamp_ms=NOON_MS + DAY_MS)
    archived(spark, broker, topic, path)

    live = spark.read.format("riverlog").options(**options(broker), subscribe=topic, includeHeaders="true")
    rows = read_archive(spark, path).drop("date")
    assert in_order(rows) == in_order(live.load().select(*rows.columns))
    assert len(in_order(rows)) == 17

    files = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    assert sorted((row["partition"], row["offset"]) for row in files) == [
        *((0, offset) for offset in range(15)),
        (1, 0),
        (1, 1),
    ]
    assert {(row["topic"], str(row["date"])) for row in files} == {
        (topic, "2026-03-01"),
        (topic, "2026-03-02"),
    }


def test_archive_and_log_are_one_batch_though_they_overlap_and_retention_took_a_part(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "archive")
    send(broker, topic, numbered(range(20)), partition=0)
    archived(spark, broker, topic, path)
    send(broker, topic, numbered(range(20, 30)), partition=0)
    send(broker, topic, numbered(range(30, 33)), partition=1)

    def offsets() -> list[tuple[int, int, bytes]]:
        rows = read_with_archive(spark, path, topic, options(broker)).collect()
        return sorted((row.partition, row.offset, bytes(row.value)) for row in rows)

    everything = [
        *((0, n, str(n).encode()) for n in range(30)),
        *((1, n - 30, str(n).encode()) for n in range(30, 33)),
    ]
    assert offsets() == everything
    delete_before(broker, topic, 0, 20)
    assert offsets() == everything
    delete_before(broker, topic, 0, 22)
    with pytest.raises(ArchiveGapError, match="Offsets 20 to 21 of partition 0"):
        offsets()
    lossy = {**options(broker), "failOnDataLoss": "false"}
    assert read_with_archive(spark, path, topic, lossy).count() == 31


def delete_before(broker: Broker, topic: str, partition: int, offset: int) -> None:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log.connection.close": False}) as admin:
        for outcome in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
            outcome.result(30)


@pytest.mark.parametrize(
    ("ends", "bounds", "seams"),
    [
        ({}, {0: LogBounds(0, 5)}, {0: 0}),
        ({0: 3}, {0: LogBounds(0, 5)}, {0: 3}),
        ({0: 3}, {0: LogBounds(3, 5)}, {0: 3}),
        ({0: 5}, {0: LogBounds(5, 5), 1: LogBounds(0, 0)}, {0: 5, 1: 0}),
        ({0: 3}, {0: LogBounds(4, 5)}, "Offsets 3 to 3 of partition 0"),
        ({}, {0: LogBounds(4, 5)}, "Offsets 0 to 3 of partition 0"),
        ({0: 6}, {0: LogBounds(0, 5)}, "reaches offset 6 in partition 0, the log ends at 5"),
        ({1: 6}, {0: LogBounds(0, 5)}, "partition 1 of topic t, which the topic does not have"),
    ],
)
def test_the_seam_is_where_the_archive_ends_or_there_is_a_gap(
    ends: dict[int, int], bounds: dict[int, LogBounds], seams: dict[int, int] | str
) -> None:
    if isinstance(seams, str):
        with pytest.raises(ArchiveGapError, match=seams):
            decide_seams("t", ends, bounds, may_lose=False)
    else:
        assert decide_seams("t", ends, bounds, may_lose=False) == seams


def test_what_an_archive_cannot_take_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="archive is for streams"):
        archive(records(spark, []), str(tmp_path))
    with pytest.raises(AnalysisException, match="offset"):
        archive_rows(records(spark, []).drop("offset"))
    bare = archive_rows(records(spark, [b"x"]).drop("headers", "timestampType")).collect()
    assert [(row.headers, row.timestampType, str(row.date)) for row in bare] == [(None, None, "2026-03-01")]
    with pytest.raises(ValueError, match="The option subscribe cannot be given"):
        read_with_archive(spark, str(tmp_path), "t", {"subscribe": "t"})
