"""Committed offsets through real clients and raw requests, over restarts and kills."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]
from aiokafka.structs import TopicPartition as AioPartition  # type: ignore[import-untyped]
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer  # type: ignore[import-untyped]
from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]
from kafka.structs import TopicPartition as KafkaPartition

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.raw_client import RawClient
from tests.waiting import eventually


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(offsets_topic_num_partitions=4) as broker:
        broker.create_topic("orders", 3)
        yield broker


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
        yield client


def consumer(broker: Broker, group: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    )


def commit(
    raw: RawClient, group: str, offset: int, *, topic: str = "orders", version: int = 9, **more: Any
) -> int:
    partition = OffsetCommitRequestPartition(
        committed_offset=offset, committed_metadata=more.pop("metadata", ""), partition_index=0
    )
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    reply = raw.ask(ApiKey.OFFSET_COMMIT, version, OffsetCommitRequest(group_id=group, topics=topics, **more))
    return int(reply.topics[0].partitions[0].error_code)


def fetched(raw: RawClient, group: str, topic: str = "orders") -> tuple[int, str]:
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    reply = raw.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=topics))
    assert reply.error_code == ErrorCode.NONE
    found = reply.topics[0].partitions[0]
    return found.committed_offset, found.metadata


def test_what_a_client_commits_outlives_restart_and_kill() -> None:
    with Broker(offsets_topic_num_partitions=2) as broker:
        broker.create_topic("orders", 2)
        for offset, interrupt in ((10, broker.restart), (20, broker.kill), (30, broker.restart)):
            client = consumer(broker, "readers")
            client.assign([TopicPartition("orders", 0, 0)])
            client.commit(offsets=[TopicPartition("orders", 1, offset)], asynchronous=False)
            client.close()
            interrupt()
            if interrupt == broker.kill:
                broker.restart()
            client = consumer(broker, "readers")
            [first, second] = client.committed(
                [TopicPartition("orders", index) for index in (0, 1)], timeout=10
            )
            client.close()
            assert (first.offset, second.offset) == (-1001, offset)


@pytest.mark.parametrize("group", ["", "группа", "with spaces", "x" * 1000])
def test_a_group_may_have_any_name(raw: RawClient, group: str) -> None:
    assert commit(raw, group, 5, metadata="note") == ErrorCode.NONE
    assert fetched(raw, group) == (5, "note")


def test_a_commit_in_sync_mode_is_answered_when_it_is_on_disk() -> None:
    with Broker({"riverlog.acks.fsync": True}, offsets_topic_num_partitions=1) as broker:
        broker.create_topic("orders")
        with RawClient(broker) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
            assert commit(raw, "g", 7) == ErrorCode.NONE
            assert fetched(raw, "g") == (7, "")


def test_metadata_beyond_the_bound_is_refused(raw: RawClient) -> None:
    assert commit(raw, "long", 1, metadata="x" * 4096) == ErrorCode.NONE
    assert commit(raw, "long", 2, metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert fetched(raw, "long") == (1, "x" * 4096)


def test_several_groups_are_fetched_at_once(raw: RawClient) -> None:
    for number in range(20):
        commit(raw, f"many-{number}", number)
    groups = [
        OffsetFetchRequestGroup(
            group_id=f"many-{number}", topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        )
        for number in range(20)
    ]
    reply = raw.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups))
    assert [(group.group_id, group.topics[0].partitions[0].committed_offset) for group in reply.groups] == [
        (f"many-{number}", number) for number in range(20)
    ]


def test_offsets_go_with_their_topic(raw: RawClient) -> None:
    raw.create_topic("doomed")
    commit(raw, "mourner", 3, topic="doomed")
    commit(raw, "mourner", 4)
    assert fetched(raw, "mourner", "doomed") == (3, "")
    raw.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=10_000))
    assert fetched(raw, "mourner", "doomed") == (-1, "")
    raw.create_topic("doomed")
    assert fetched(raw, "mourner", "doomed") == (-1, "")
    assert fetched(raw, "mourner") == (4, "")


def test_offsets_can_be_deleted(raw: RawClient) -> None:
    commit(raw, "tidy", 3)
    partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1, 9)]
    topics = [OffsetDeleteRequestTopic(name="orders", partitions=partitions)]
    reply = raw.ask(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="tidy", topics=topics))
    assert [each.error_code for each in reply.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert fetched(raw, "tidy") == (-1, "")


def test_old_offsets_expire() -> None:
    settings = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 50}
    with Broker(settings, offsets_topic_num_partitions=1) as broker:
        broker.create_topic("orders")
        with RawClient(broker) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
            # A retention of its own, which clients could ask for up to version 4, spares the test a minute.
            assert commit(raw, "short", 1, version=4, retention_time_ms=100) == ErrorCode.NONE
            assert commit(raw, "long", 2) == ErrorCode.NONE
            eventually(lambda: fetched(raw, "short") == (-1, ""), "the offset did not expire")
            assert fetched(raw, "long") == (2, "")
        broker.restart()
        with RawClient(broker) as raw:
            assert fetched(raw, "short") == (-1, "")


def test_a_commit_larger_than_a_batch_is_refused_whole(raw: RawClient) -> None:
    raw.create_topic("wide", 400)
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="x" * 4096)
        for index in range(400)
    ]
    topics = [OffsetCommitRequestTopic(name="wide", partitions=partitions)]
    reply = raw.ask(ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(group_id="huge", topics=topics))
    assert {each.error_code for each in reply.topics[0].partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert fetched(raw, "huge", "wide") == (-1, "")


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_the_offsets_topic_may_be_compressed(codec: int) -> None:
    settings = {"offsets.topic.compression.codec": codec}
    with Broker(settings, offsets_topic_num_partitions=1) as broker:
        broker.create_topic("orders")
        with RawClient(broker) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
            commit(raw, "g", 7, metadata="note")
        broker.restart()
        with RawClient(broker) as raw:
            assert fetched(raw, "g") == (7, "note")


def test_kafka_python_commits_and_resumes_without_membership(broker: Broker) -> None:
    at = KafkaPartition("orders", 2)
    for offset in (3, 5):
        client = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="kafka-python", enable_auto_commit=False
        )
        client.assign([at])
        client.commit({at: OffsetAndMetadata(offset, "note", -1)})
        client.close()
    client = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="kafka-python")
    assert client.committed(at) == 5
    client.close()


async def _aiokafka_round(broker: Broker, offset: int | None) -> int | None:
    at = AioPartition("orders", 1)
    client = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id="aiokafka", enable_auto_commit=False
    )
    client.assign([at])
    await client.start()
    try:
        if offset is not None:
            await client.commit({at: offset})
        committed: int | None = await client.committed(at)
        return committed
    finally:
        await client.stop()


def test_aiokafka_commits_and_resumes_without_membership(broker: Broker) -> None:
    assert asyncio.run(_aiokafka_round(broker, 9)) == 9
    assert asyncio.run(_aiokafka_round(broker, None)) == 9
