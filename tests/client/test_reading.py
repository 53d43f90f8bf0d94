"""Whole batches from one partition, and offsets of many."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from riverlog.client.cluster import BrokerRefused, ClientSettings, Cluster
from riverlog.client.offsets import (
    EARLIEST,
    LATEST,
    commit_offsets,
    committed,
    committed_offsets,
    list_offsets,
)
from riverlog.client.reading import OffsetGone, PartitionReader, ReadSettings, TopicGone
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.network import Address
from riverlog.records.record import records_of
from riverlog.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with Cluster(ClientSettings(bootstrap=(Address(host, int(port)),), retry_deadline_s=2)) as connected:
        yield connected


def produce(broker: Broker, topic: str, values: list[bytes], **settings: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, **settings})
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.flush(10)


def transact(broker: Broker, topic: str, value: bytes, *, commits: bool) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{value!r}"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    producer.flush(10)
    if commits:
        producer.commit_transaction(10)
    else:
        producer.abort_transaction(10)


def values(reader: PartitionReader, start: int, end: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    is_at_end = start >= end
    while not is_at_end:
        fetched = reader.fetch(start, end)
        for batch in fetched.batches:
            found += [record.value for record in records_of(batch.buffer, batch.position)]
        start, is_at_end = fetched.next_offset, fetched.is_at_end
    return found


def test_batches_come_in_order_over_several_fetches(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("many")
    sent = [b"%03d" % number for number in range(30)]
    produce(broker, "many", sent)
    small = PartitionReader(cluster, TopicPartition("many", 0), ReadSettings(partition_bytes=300))
    assert values(small, 0, 30) == sent
    assert values(small, 7, 9) == sent[7:9]
    assert small.fetch(0, 30).next_offset < 30
    topic_id = cluster.topics(["many"])["many"].topic_id
    by_id = PartitionReader(cluster, TopicPartition("many", 0), ReadSettings(), topic_id=topic_id)
    assert values(by_id, 0, 30) == sent


def test_aborted_records_are_left_out_for_readers_of_committed_ones(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("paid")
    at = TopicPartition("paid", 0)
    transact(broker, "paid", b"no", commits=False)
    transact(broker, "paid", b"yes", commits=True)
    transact(broker, "paid", b"never", commits=False)
    end = list_offsets(cluster, {at: LATEST}, read_committed=True)[at]
    assert end == 6
    assert values(PartitionReader(cluster, at, ReadSettings(read_committed=True)), 0, end) == [b"yes"]
    assert values(PartitionReader(cluster, at, ReadSettings()), 0, end) == [b"no", b"yes", b"never"]


def test_an_offset_behind_the_end_is_gone(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("short")
    produce(broker, "short", [b"x"])
    reader = PartitionReader(cluster, TopicPartition("short", 0), ReadSettings())
    with pytest.raises(OffsetGone, match="offset 5 of partition 0 of topic short"):
        reader.fetch(5, 9)


def test_an_end_that_never_comes_is_given_up(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("waiting")
    reader = PartitionReader(cluster, TopicPartition("waiting", 0), ReadSettings(wait_ms=200))
    with pytest.raises(OffsetGone, match="offset 2 of"):
        values(reader, 0, 3)


def test_a_topic_that_is_not_there_is_gone(cluster: Cluster) -> None:
    with pytest.raises(TopicGone, match="nowhere"):
        PartitionReader(cluster, TopicPartition("nowhere", 0), ReadSettings()).fetch(0, 1)


def test_offsets_of_many_partitions_by_time(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("timed", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    first, second = TopicPartition("timed", 0), TopicPartition("timed", 1)
    now_ms = int(time.time() * 1000)
    for offset in range(5):
        producer.produce("timed", b"x", partition=0, timestamp=now_ms + offset)
    producer.flush(10)
    assert list_offsets(cluster, {first: LATEST, second: LATEST}) == {first: 5, second: 0}
    assert list_offsets(cluster, {first: EARLIEST, second: EARLIEST}) == {first: 0, second: 0}
    late = now_ms + 3
    assert list_offsets(cluster, {first: late, second: late}) == {first: 3, second: None}
    with pytest.raises(BrokerRefused) as refused:
        list_offsets(cluster, {TopicPartition("timed", 7): LATEST})
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_commits_of_a_simple_group_are_read_back_with_their_note(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("noted", 2)
    first, second = TopicPartition("noted", 0), TopicPartition("noted", 1)
    commit_offsets(cluster, "readers", {first: 7}, notes={first: "token"})
    assert committed(cluster, "readers", [first, second]) == {first: (7, "token")}
    assert committed_offsets(cluster, "readers", [first]) == {first: 7}
