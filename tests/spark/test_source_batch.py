"""`spark.read.format("riverlog")` on a real broker: what each option changes in what comes out."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from riverlog.testing import Broker
from tests.spark.logs import batch, numbered, put, put_in_transaction, values

T0_MS = (int(time.time()) - 86_400) * 1000
"""Yesterday: retention would delete what is much older."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """`three` has ten records in each of three partitions, each partition 1000 s later than the last."""
    with Broker(log_retention_ms=-1) as running:
        running.create_topic("three", 3)
        for partition in range(3):
            for index, value in enumerate(numbered(partition * 10, partition * 10 + 10)):
                time_ms = T0_MS + partition * 1_000_000 + index * 1000
                put(running, "three", [value], partition=partition, timestamp_ms=time_ms)
        running.create_topic("three-more")
        put(running, "three-more", ["more"])
        yield running


def test_rows_have_the_columns_and_types_of_sparks_connector(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("columns", 2)
    headers = [("a", b"1"), ("b", None)]
    put(broker, "columns", ["v"], partition=1, key=b"k", timestamp_ms=T0_MS, headers=headers)
    put(broker, "columns", [None], partition=1, timestamp_ms=T0_MS + 1)
    frame = batch(spark, broker, subscribe="columns", includeHeaders=True)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second = frame.orderBy("offset").collect()
    assert (bytes(first.key), bytes(first.value), first.topic) == (b"k", b"v", "columns")
    assert (first.partition, first.offset, first.timestampType) == (1, 0, 0)
    assert first.timestamp.astimezone(UTC) == datetime.fromtimestamp(T0_MS / 1000, UTC)
    assert [(each.key, each.value) for each in first.headers] == [("a", b"1"), ("b", None)]
    assert (second.key, second.value, second.offset, second.headers) == (None, None, 1, None)
    assert "headers" not in batch(spark, broker, subscribe="columns").columns


def test_every_compression_and_append_time_are_read(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("packed", config={"message.timestamp.type": "LogAppendTime"})
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        put(broker, "packed", [f"{codec} {number}" for number in range(50)], compression=codec)
    rows = batch(spark, broker, subscribe="packed").orderBy("offset").collect()
    assert [bytes(row.value).decode() for row in rows] == [
        f"{codec} {number}" for codec in codecs for number in range(50)
    ]
    assert [row.offset for row in rows] == list(range(250))
    assert {row.timestampType for row in rows} == {1}


def test_topics_by_list_by_pattern_and_by_partition(spark: SparkSession, broker: Broker) -> None:
    everything = numbered(0, 30)
    assert values(batch(spark, broker, subscribe="three,three-more")) == [*everything, "more"]
    assert values(batch(spark, broker, subscribePattern="thr.e-.*")) == ["more"]
    assert values(batch(spark, broker, subscribePattern="^thr.e$")) == everything
    assert values(batch(spark, broker, subscribePattern="hree")) == [*everything, "more"]
    assert values(batch(spark, broker, assign='{"three": [0, 2]}')) == [*numbered(0, 10), *numbered(20, 30)]


def test_offsets_to_begin_and_end_at(spark: SparkSession, broker: Broker) -> None:
    frame = batch(
        spark,
        broker,
        subscribe="three",
        startingOffsets='{"three": {"0": 4, "1": -2, "2": 9}}',
        endingOffsets='{"three": {"0": 6, "1": 1, "2": -1}}',
    )
    assert values(frame) == ["00004", "00005", "00010", "00029"]
    assert values(batch(spark, broker, subscribe="three", startingOffsets="earliest")) == numbered(0, 30)


def test_times_to_begin_and_end_at(spark: SparkSession, broker: Broker) -> None:
    by_partition = batch(
        spark,
        broker,
        subscribe="three",
        startingOffsetsByTimestamp=f'{{"three": {{"0": {T0_MS + 7500}, "1": 0, "2": 0}}}}',
        endingOffsetsByTimestamp=f'{{"three": {{"0": {T0_MS + 9000}, "1": 0, "2": {T0_MS + 2_003_000}}}}}',
    )
    assert values(by_partition) == ["00008", "00020", "00021", "00022"]
    assert values(
        batch(
            spark,
            broker,
            subscribe="three",
            startingTimestamp=T0_MS + 1_008_000,
            endingTimestamp=T0_MS + 2_002_000,
            startingOffsetsByTimestampStrategy="latest",
        )
    ) == ["00018", "00019", "00020", "00021"]
    with pytest.raises(AnalysisException, match="startingOffsetsByTimestampStrategy"):
        batch(spark, broker, subscribe="three", startingTimestamp=T0_MS + 1_008_000).count()


def test_where_a_consumer_group_stands(spark: SparkSession, broker: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.commit(
        offsets=[TopicPartition("three", 0, 7), TopicPartition("three", 1, 10)], asynchronous=False
    )
    consumer.close()
    after = batch(spark, broker, subscribe="three", startingOffsets="group:readers")
    assert values(after) == [*numbered(7, 10), *numbered(20, 30)]
    before = batch(spark, broker, subscribe="three", endingOffsets="group:readers")
    assert values(before) == [*numbered(0, 7), *numbered(10, 30)]
    with pytest.raises(AnalysisException, match="group nobody has committed nothing"):
        batch(spark, broker, subscribe="three", startingOffsets="group:nobody").count()


def test_splits_by_min_partitions_and_by_records(spark: SparkSession, broker: Broker) -> None:
    plain = batch(spark, broker, subscribe="three")
    split = batch(spark, broker, subscribe="three", minPartitions=6)
    small = batch(spark, broker, subscribe="three", maxRecordsPerPartition=4)
    assert [frame.rdd.getNumPartitions() for frame in (plain, split, small)] == [3, 6, 9]
    assert values(split) == numbered(0, 30)


def test_aborted_records_are_there_only_for_those_who_want_them(spark: SparkSession, broker: Broker) -> None:
    broker.create_topic("paid")
    put_in_transaction(broker, "paid", ["aborted"], commits=False)
    put_in_transaction(broker, "paid", ["committed"], commits=True)
    put(broker, "paid", ["plain"])
    committed = batch(spark, broker, subscribe="paid", kafka_isolation_level="read_committed")
    assert values(committed) == ["committed", "plain"]
    assert values(batch(spark, broker, subscribe="paid")) == ["aborted", "committed", "plain"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"subscribe": "nowhere"}, "topic nowhere does not exist; create it, or correct option subscribe"),
        ({"assign": '{"three": [7]}'}, "partition 7 of topic three does not exist"),
        ({"subscribe": "three", "startingOffsets": '{"three": {"0": 1}}'}, "three-1 is not named"),
        ({"subscribe": "three", "startingOffset": "earliest"}, "did you mean startingOffsets?"),
        (
            {"subscribe": "three", "kafka_bootstrap_servers": "127.0.0.1:1"},
            "no broker could be reached at 127.0.0.1:1",
        ),
    ],
)
def test_what_is_wrong_is_one_line_in_a_short_error(
    spark: SparkSession, broker: Broker, options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(AnalysisException) as refused:
        batch(spark, broker, kafka_request_timeout_ms=300, **options).count()
    [line] = [line for line in str(refused.value).splitlines() if complaint in line]
    assert line.startswith("riverlog.")
    assert len(str(refused.value).splitlines()) < 15


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, broker: Broker) -> None:
    reader = spark.read.format("riverlog").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(AnalysisException, match=r"leave out .schema"):
        reader.option("subscribe", "three").schema("value string").load().count()
