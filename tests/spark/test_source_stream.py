"""`spark.readStream.format("riverlog")` in real queries: restarts, failures, what other tools see of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from riverlog.testing import Broker
from tests.spark.logs import numbered, put, stream
from tests.waiting import eventually


class Collected:
    """What a query has given out: the values of each batch."""

    def __init__(self) -> None:
        self.batches: dict[int, list[str]] = {}

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        rows = frame.selectExpr("cast(value as string) as value").collect()
        self.batches[batch_id] = [row.value for row in rows]

    @property
    def values(self) -> list[str]:
        return sorted(value for batch in self.batches.values() for value in batch)


@pytest.fixture
def running(spark: SparkSession) -> Iterator[list[StreamingQuery]]:
    """Queries put here are stopped in the end."""
    queries: list[StreamingQuery] = []
    yield queries
    for query in queries:
        query.stop()


def start(
    frame: DataFrame, into: Collected, checkpoint: Path, name: str | None = None, **trigger: bool
) -> StreamingQuery:
    writer = frame.writeStream.foreachBatch(into).option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    return (writer.trigger(**trigger) if trigger else writer).start()


def groups(broker: Broker) -> dict[str, dict[int, int]]:
    """The committed offsets of each consumer group, by partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    names = [each.group_id for each in admin.list_consumer_groups().result(10).valid]
    found = {}
    for name in names:
        [offsets] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)]).values()
        found[name] = {at.partition: at.offset for at in offsets.result(10).topic_partitions}
    return found


def test_a_stream_goes_on_from_its_checkpoint_without_loss(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("kept", 2)
    put(broker, "kept", numbered(0, 12))
    put(broker, "kept", numbered(12, 20), partition=1)
    frame = stream(spark, broker, subscribe="kept", startingOffsets="earliest", maxOffsetsPerTrigger=10)
    first, second = Collected(), Collected()
    query = start(frame, first, tmp_path, availableNow=True)
    assert query.awaitTermination(120)
    assert first.values == numbered(0, 20)
    assert [len(batch) for batch in first.batches.values()] == [10, 10]
    put(broker, "kept", numbered(20, 25))
    assert start(frame, second, tmp_path, availableNow=True).awaitTermination(120)
    assert second.values == numbered(20, 25)
    assert min(second.batches) > max(first.batches)


def test_a_running_query_sees_new_partitions_and_a_broker_that_comes_back(
    spark: SparkSession, broker: Broker, tmp_path: Path, running: list[StreamingQuery]
) -> None:
    broker.create_topic("alive")
    seen = Collected()
    frame = stream(spark, broker, subscribe="alive", startingOffsets="earliest")
    running.append(start(frame, seen, tmp_path, "alive-query"))
    put(broker, "alive", ["before"])
    eventually(lambda: seen.values == ["before"], timeout_s=100)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions("alive", 2)])["alive"].result(10)
    put(broker, "alive", ["in a new partition"], partition=1)
    eventually(lambda: "in a new partition" in seen.values, timeout_s=100)
    broker.kill()
    broker.restart()
    put(broker, "alive", ["after"])
    eventually(lambda: "after" in seen.values, timeout_s=100)
    assert seen.values == ["after", "before", "in a new partition"]
    # What other tools see: a group by the query's name, at the end of what is done.
    eventually(lambda: groups(broker).get("riverlog-spark-alive-query") == {0: 2, 1: 1}, timeout_s=30)


def test_a_query_without_a_name_commits_by_its_id_and_the_prefix(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("nameless")
    put(broker, "nameless", numbered(0, 6))
    frame = stream(
        spark,
        broker,
        subscribe="nameless",
        startingOffsets="earliest",
        groupIdPrefix="mine",
        maxOffsetsPerTrigger=3,
    )
    query = start(frame, Collected(), tmp_path, availableNow=True)
    assert query.awaitTermination(120)
    assert groups(broker)[f"mine-{query.id}"] == {0: 6}


def test_loss_ends_the_query_with_the_offsets_that_are_gone(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("gone")
    put(broker, "gone", numbered(0, 5))
    frame = stream(spark, broker, subscribe="gone", startingOffsets="earliest")
    query = start(frame, Collected(), tmp_path)
    query.processAllAvailable()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics(["gone"])["gone"].result(10)
    with pytest.raises(
        StreamingQueryException, match="offsets from 5 on of partition 0 of topic gone cannot be read"
    ):
        query.awaitTermination(120)


def test_a_topic_made_anew_while_the_query_was_stopped_ends_its_first_batch(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topic("anew")
    put(broker, "anew", numbered(0, 5))
    frame = stream(spark, broker, subscribe="anew", startingOffsets="earliest")
    assert start(frame, Collected(), tmp_path, "anew-query", availableNow=True).awaitTermination(120)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics(["anew"])["anew"].result(10)
    broker.create_topic("anew")
    put(broker, "anew", numbered(0, 9))
    with pytest.raises(StreamingQueryException, match=r"topic anew .*made anew while the query was stopped"):
        start(frame, Collected(), tmp_path, "anew-query", availableNow=True).awaitTermination(120)
