"""Questions about partitions whose logs are not open: the same answers, and nothing made for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.node import Node
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.schema import Message
from tests.broker.raw_client import RawClient, one_record

TOPIC = "asked"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=str(tmp_path)) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        client.create_topic(TOPIC, partitions=3)
        yield client


def questions(index: int, offsets: tuple[int, ...]) -> Iterator[tuple[ApiKey, int, Message]]:
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, 1 << 50):
        for epoch in (-1, 0, 1):
            wanted = ListOffsetsPartition(
                partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
            )
            topic = ListOffsetsTopic(name=TOPIC, partitions=[wanted])
            for isolation in (0, 1):
                yield ApiKey.LIST_OFFSETS, 11, ListOffsetsRequest(topics=[topic], isolation_level=isolation)
    for epoch in (-1, 0, 1):
        asked = OffsetForLeaderPartition(partition=index, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=TOPIC, partitions=[asked])])
        yield ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, request
    producers = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[index])])
    yield ApiKey.DESCRIBE_PRODUCERS, 0, producers
    directories = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=TOPIC, partitions=[index])])
    yield ApiKey.DESCRIBE_LOG_DIRS, 4, directories
    for offset in offsets:
        for last_fetched_epoch in (-1, 0, 1):
            yield ApiKey.FETCH, 12, fetch(index, offset, last_fetched_epoch=last_fetched_epoch)
    for offset in (0, 1 << 40, -2):
        deleted = DeleteRecordsPartition(partition_index=index, offset=offset)
        topics = [DeleteRecordsTopic(name=TOPIC, partitions=[deleted])]
        yield ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=topics, timeout_ms=1000)


def fetch(index: int, offset: int, *, last_fetched_epoch: int = -1, wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(
        partition=index,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=1 << 20,
    )
    topic = FetchTopic(topic=TOPIC, partitions=[partition])
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, topics=[topic])


def answers(client: RawClient, index: int, offsets: tuple[int, ...]) -> list[str]:
    """All of them, with the index taken for 0, and without what changes by itself."""
    told: list[str] = []
    for key, version, request in questions(index, offsets):
        answer = client.ask(key, version, request)
        for directory in getattr(answer, "results", []):
            directory.usable_bytes = directory.total_bytes = 0
        told.append(repr(answer).replace(f"partition_index={index}", "partition_index=0"))
        told[-1] = told[-1].replace(f"partition={index}", "partition=0")
    return told


def produce(client: RawClient, index: int, records: bytes) -> ErrorCode:
    data = PartitionProduceData(index=index, records=records)
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    reply = client.ask(ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=[topic]))
    return ErrorCode(reply.responses[0].partition_responses[0].error_code)


def opened(broker: Broker) -> list[str]:
    """The logs of the topic that are open."""

    async def look(node: Node) -> list[str]:
        directories = node._directories.online
        return sorted(str(log.topic_partition) for each in directories for log in each.opened())

    return [name for name in broker.call(look) if name.startswith(TOPIC)]


def made(broker: Broker) -> list[str]:
    return sorted(each.name for each in Path(broker.data_dir).glob(f"{TOPIC}-*"))


def test_a_partition_that_was_never_written_to_is_answered_as_an_open_one_and_nothing_is_made(
    broker: Broker, client: RawClient
) -> None:
    offsets = (0, 1, 7)
    told = answers(client, 0, offsets)
    assert (opened(broker), made(broker)) == ([], [])
    damaged = bytearray(one_record(b"x"))
    damaged[-1] ^= 1
    assert produce(client, 1, bytes(damaged)) == ErrorCode.CORRUPT_MESSAGE
    assert opened(broker) == [f"{TOPIC}-1"]
    assert told == answers(client, 1, offsets)


def test_a_log_that_is_closed_is_answered_as_when_it_is_open(broker: Broker, client: RawClient) -> None:
    for number in range(4):
        assert produce(client, 0, one_record(b"%d" % number)) == ErrorCode.NONE
    deleted = DeleteRecordsPartition(partition_index=0, offset=2)
    topics = [DeleteRecordsTopic(name=TOPIC, partitions=[deleted])]
    client.ask(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=topics, timeout_ms=1000))
    offsets = (0, 1, 4, 5)
    before = answers(client, 0, offsets)
    broker.restart()
    with RawClient(broker) as again:
        assert answers(again, 0, offsets) == before
        assert answers(again, 0, offsets) == before, "what is known of it now is what it says"
        assert opened(broker) == []
        assert produce(again, 0, one_record(b"more")) == ErrorCode.NONE
        assert opened(broker) == [f"{TOPIC}-0"]
        assert offset_of(again, 0) == 5


def offset_of(client: RawClient, index: int) -> int:
    wanted = ListOffsetsPartition(partition_index=index, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])])
    return int(client.ask(ApiKey.LIST_OFFSETS, 7, request).topics[0].partitions[0].offset)


def test_a_reader_that_waits_for_a_partition_without_a_log_gets_its_first_record(
    broker: Broker, client: RawClient
) -> None:
    with RawClient(broker) as reader:
        reader.send(ApiKey.FETCH, 12, fetch(0, 0, wait_ms=30_000))
        assert reader.hears_nothing()
        assert opened(broker) == []
        produce(client, 0, one_record(b"first"))
        reply = reader.receive(ApiKey.FETCH, 12)
    assert records_in(reply) > 0


def test_a_reader_that_waits_for_a_partition_without_a_log_hears_that_the_topic_goes(
    broker: Broker, client: RawClient
) -> None:
    with RawClient(broker) as reader:
        reader.send(ApiKey.FETCH, 12, fetch(0, 0, wait_ms=30_000))
        assert reader.hears_nothing()
        client.delete_topic(TOPIC)
        reply = reader.receive(ApiKey.FETCH, 12)
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def records_in(reply: Any) -> int:
    return len(reply.responses[0].partitions[0].records)
