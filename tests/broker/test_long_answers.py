"""Answers and requests of thousands of entries: the same as of few, in order, and others are not held up."""

import contextlib
import select
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from riverlog.broker.dispatch import dispatcher
from riverlog.broker.exchange.long_work import LARGE_AT_ONCE_MAX
from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import encode
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from riverlog.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from riverlog.wire.messages.list_groups import ListGroupsRequest
from riverlog.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from riverlog.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.raw_client import RawClient, one_record
from tests.waiting import eventually

LARGE, SMALL = "large", [f"small-{number}" for number in range(4)]
PARTITIONS = 1_500
WRITTEN = (3, 700)
LATEST = -1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(data_dir=str(tmp_path_factory.mktemp("data"))) as broker, RawClient(broker) as client:
        client.create_topic(LARGE, partitions=PARTITIONS)
        for name in SMALL:
            client.create_topic(name, partitions=2)
        for index in WRITTEN:
            client.produce(LARGE, one_record(b"record"), partition=index)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def in_chunks(indexes: range) -> Iterator[range]:
    for start in range(0, len(indexes), 90):
        yield indexes[start : start + 90]


def list_offsets(topic: str, indexes: range) -> ListOffsetsRequest:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in indexes]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=wanted)])


def for_epochs(topic: str, indexes: range) -> OffsetForLeaderEpochRequest:
    wanted = [OffsetForLeaderPartition(partition=index, leader_epoch=0) for index in indexes]
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=wanted)])


def producers(topic: str, indexes: range) -> DescribeProducersRequest:
    return DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])


@pytest.mark.parametrize(
    ("key", "version", "request_for"),
    [
        (ApiKey.LIST_OFFSETS, 1, list_offsets),
        (ApiKey.LIST_OFFSETS, 11, list_offsets),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, for_epochs),
        (ApiKey.DESCRIBE_PRODUCERS, 0, producers),
    ],
)
@pytest.mark.parametrize("topic", [LARGE, "absent"])
def test_many_partitions_are_answered_as_few_are(
    client: RawClient, key: ApiKey, version: int, topic: str, request_for: Callable[[str, range], Any]
) -> None:
    indexes = range(-2, PARTITIONS + 2)
    few = [client.ask(key, version, request_for(topic, some)).topics[0] for some in in_chunks(indexes)]
    [many] = client.ask(key, version, request_for(topic, indexes)).topics
    assert len(many.partitions) == len(indexes)
    assert many.partitions == [each for topic in few for each in topic.partitions]


def test_a_partition_that_is_asked_for_twice_among_many_is_refused(client: RawClient) -> None:
    request = list_offsets(LARGE, range(1_000))
    request.topics[0].partitions += list_offsets(LARGE, range(5, 6)).topics[0].partitions
    request.topics.append(ListOffsetsTopic(name="empty"))
    [topic] = client.ask(ApiKey.LIST_OFFSETS, 7, request).topics
    refused = [each.partition_index for each in topic.partitions if each.error_code]
    assert (len(topic.partitions), refused) == (1_000, [5])
    assert topic.partitions[5].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1, 9, 12, 13])
def test_all_metadata_is_that_of_each_topic(client: RawClient, version: int) -> None:
    everything = MetadataRequest(topics=[] if version == 0 else None)
    for _ in range(2):  # The second answer is from what was encoded for the first.
        answer = client.ask(ApiKey.METADATA, version, everything)
        topics = {topic.name: topic for topic in answer.topics}
        assert set(topics) >= {LARGE, *SMALL}
        for name in SMALL:
            one = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            reply = client.ask(ApiKey.METADATA, version, one)
            assert reply.topics == [topics[name]]
            assert reply.brokers == answer.brokers
        assert [each.partition_index for each in topics[LARGE].partitions] == list(range(PARTITIONS))
        alike = topics[LARGE].partitions[0]
        for index, each in enumerate(topics[LARGE].partitions):
            alike.partition_index = index
            assert each == alike


def test_metadata_follows_changes_of_topics(broker: Broker, client: RawClient) -> None:
    def names() -> set[str]:
        return {topic.name for topic in client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None)).topics}

    before = names()
    client.create_topic("passing", partitions=1)
    assert names() == before | {"passing"}
    client.delete_topic("passing")
    assert names() == before


def test_metadata_of_many_names_tells_known_ones_first_and_makes_the_others(client: RawClient) -> None:
    absent = [f"absent-{number}" for number in range(150)]
    wanted = [MetadataRequestTopic(name=name) for name in (*absent[:75], LARGE, "no/name", *absent[75:])]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    request.include_topic_authorized_operations = True
    topics = client.ask(ApiKey.METADATA, 10, request).topics
    assert [topic.name for topic in topics] == [LARGE, *absent[:75], "no/name", *absent[75:]]
    errors = {topic.name: ErrorCode(topic.error_code) for topic in topics}
    assert errors.pop(LARGE) == ErrorCode.NONE
    assert errors.pop("no/name") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert set(errors.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len({topic.topic_authorized_operations for topic in topics}) == 1
    by_id = [MetadataRequestTopic(name=None, topic_id=UUID(int=number)) for number in range(1, 150)]
    by_id.append(MetadataRequestTopic(name=None, topic_id=topics[0].topic_id))
    found = client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=by_id, allow_auto_topic_creation=False))
    assert [topic.name for topic in found.topics] == [LARGE, *[None] * 149]
    assert {topic.error_code for topic in found.topics[1:]} == {ErrorCode.UNKNOWN_TOPIC_ID}


def test_topics_of_a_long_metadata_request_are_made(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)) as broker, RawClient(broker) as client:
        names = [f"new-{number}" for number in range(120)]
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        answer = client.ask(ApiKey.METADATA, 12, request)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        answer = client.ask(ApiKey.METADATA, 12, request)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.NONE}


def test_pages_of_partitions_are_all_partitions(client: RawClient) -> None:
    found: list[tuple[str, int]] = []
    request = DescribeTopicPartitionsRequest(response_partition_limit=400)
    while True:
        answer = client.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        found += [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]
        if answer.next_cursor is None:
            break
        request.cursor = answer.next_cursor
    assert found == sorted(found)
    assert [each for name, each in found if name == LARGE] == list(range(PARTITIONS))


def test_sizes_of_many_partitions_are_those_of_each(broker: Broker, client: RawClient) -> None:
    def ask(topics: list[DescribableLogDirTopic] | None) -> dict[tuple[str, int], int]:
        [result] = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=topics)).results
        return {
            (topic.name, each.partition_index): each.partition_size
            for topic in result.topics
            for each in topic.partitions
        }

    sizes = ask(None)
    assert [index for name, index in sizes if name == LARGE and sizes[name, index]] == list(WRITTEN)
    wanted = DescribableLogDirTopic(topic=LARGE, partitions=[*range(PARTITIONS), 99_999, -1])
    assert ask([wanted]) == {key: size for key, size in sizes.items() if key[0] == LARGE}
    assert ask([DescribableLogDirTopic(topic=LARGE, partitions=[3])]) == {(LARGE, 3): sizes[LARGE, 3]}
    assert ask([]) == {}


def test_configs_of_many_resources_are_those_of_each(client: RawClient) -> None:
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
        for name in (LARGE, "absent", *SMALL)
    ]

    def ask(resources: list[DescribeConfigsResource]) -> list[Any]:
        request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
        found: list[Any] = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, request).results
        return found

    assert ask(resources) == [each for one in resources for each in ask([one])]
    unknown = DescribeConfigsResource(resource_type=99, resource_name="x", configuration_keys=None)
    assert {each.error_code for each in ask([*resources, unknown])} == {ErrorCode.INVALID_REQUEST}


def test_many_groups_and_offsets_are_told_as_few_are(broker: Broker, client: RawClient) -> None:
    client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
    eventually(lambda: commit(client, "g-0", LARGE, range(1)) == {ErrorCode.NONE})
    groups = [f"g-{number}" for number in range(130)]
    for group in groups:
        commit(client, group, SMALL[0], range(2))
    commit(client, "g-5", LARGE, range(PARTITIONS))
    listed = [group.group_id for group in client.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups]
    assert sorted(listed) == sorted(groups)
    described = client.ask(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=[*groups, "none"])).groups
    assert [(each.group_id, each.group_state) for each in described] == [
        *((group, "Empty") for group in groups),
        ("none", "Dead"),
    ]
    few = [fetch(client, [group])[0] for group in groups]
    assert fetch(client, groups) == few
    assert fetch(client, groups[:20]) == few[:20]
    assert [len(topic.partitions) for topic in few[5].topics] == [2, PARTITIONS]
    assert [each.committed_offset for each in few[5].topics[1].partitions] == list(range(PARTITIONS))
    wanted = [OffsetFetchRequestTopic(name=LARGE, partition_indexes=[*range(PARTITIONS + 1)])]
    old = client.ask(ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id="g-5", topics=wanted))
    offsets = [each.committed_offset for each in old.topics[0].partitions]
    assert offsets == [*range(PARTITIONS), -1]
    by_id = [OffsetFetchRequestTopics(topic_id=UUID(int=7), partition_indexes=[*range(200)])]
    unknown = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g-5", topics=by_id)])
    [group] = client.ask(ApiKey.OFFSET_FETCH, 10, unknown).groups
    assert {each.error_code for each in group.topics[0].partitions} == {ErrorCode.UNKNOWN_TOPIC_ID}


def commit(client: RawClient, group: str, topic: str, indexes: range) -> set[int]:
    wanted = [OffsetCommitRequestPartition(partition_index=each, committed_offset=each) for each in indexes]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=wanted)]
    answer = client.ask(ApiKey.OFFSET_COMMIT, 7, OffsetCommitRequest(group_id=group, topics=topics))
    return {each.error_code for each in answer.topics[0].partitions}


def fetch(client: RawClient, groups: list[str]) -> list[Any]:
    wanted = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    found: list[Any] = client.ask(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=wanted)).groups
    return found


def test_replies_to_long_and_short_requests_keep_their_order(client: RawClient) -> None:
    keys = [ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.API_VERSIONS]
    for key in keys:
        if key is ApiKey.METADATA:
            client.send(key, 12, MetadataRequest(topics=None))
        elif key is ApiKey.LIST_OFFSETS:
            client.send(key, 7, list_offsets(LARGE, range(PARTITIONS)))
        else:
            client.send(key, 0, ApiVersionsRequest())
    versions = {ApiKey.METADATA: 12, ApiKey.LIST_OFFSETS: 7, ApiKey.API_VERSIONS: 0}
    ids = [client.receive_with_id(key, versions[key])[0] for key in keys]
    assert ids == sorted(ids)


def test_others_are_answered_while_a_long_answer_is_made(broker: Broker, client: RawClient) -> None:
    """A loop that is held answers one of them at the most, however often it is tried; it is tried again, as
    a busy machine may not let this process ask more often."""
    with RawClient(broker) as other:

        def answered_meanwhile() -> int:
            other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            client.send(ApiKey.LIST_OFFSETS, 7, list_offsets("absent", range(60_000)))
            answered = 0
            while not select.select([client.socket], [], [], 0)[0]:
                other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
                answered += 1
            assert len(client.receive(ApiKey.LIST_OFFSETS, 7).topics[0].partitions) == 60_000
            return answered

        eventually(lambda: answered_meanwhile() > 10, "others were not answered meanwhile")


def test_a_client_that_leaves_while_its_long_answer_is_made_is_let_go(broker: Broker) -> None:
    with RawClient(broker) as leaving:
        leaving.send(ApiKey.LIST_OFFSETS, 7, list_offsets("absent", range(60_000)))
    with RawClient(broker) as client:
        client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=None))


def test_a_long_request_that_is_malformed_closes_the_connection(broker: Broker) -> None:
    body = bytearray(encode(list_offsets(LARGE, range(2_000)), 5))
    body[1_000:1_004] = b"\x7f\xff\xff\xff"
    with RawClient(broker) as client:
        head = struct.pack(">hhih", ApiKey.LIST_OFFSETS, 5, 7, -1)
        client.socket.sendall(struct.pack(">i", len(head + body) - 3) + head + body[:-3])
        assert client.is_closed()


def test_more_long_requests_than_are_worked_on_at_once_are_all_answered(broker: Broker) -> None:
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker, timeout_s=60)) for _ in range(20)]
        for client in clients:
            client.send(ApiKey.LIST_OFFSETS, 7, list_offsets(LARGE, range(PARTITIONS)))
            client.send(ApiKey.METADATA, 12, MetadataRequest(topics=None))
        clients.pop().socket.close()
        for client in clients:
            assert len(client.receive(ApiKey.LIST_OFFSETS, 7).topics[0].partitions) == PARTITIONS
            assert len(client.receive(ApiKey.METADATA, 12).topics) >= len(SMALL)


def test_long_requests_that_wait_for_others_keep_nobody_from_being_worked_on() -> None:
    """As large members of a group, which wait until the last of them has joined."""

    def join(metadata: bytes) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id="many",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )

    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(config={"group.initial.rebalance.delay.ms": 0}))
        first = stack.enter_context(RawClient(broker))
        first.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="many"))
        eventually(lambda: first.ask(ApiKey.JOIN_GROUP, 2, join(b"few")).error_code == ErrorCode.NONE)
        for _ in range(LARGE_AT_ONCE_MAX):
            client = stack.enter_context(RawClient(broker))
            client.send(ApiKey.JOIN_GROUP, 2, join(bytes(10_000)))
            assert client.hears_nothing()
        first.ask(ApiKey.LIST_OFFSETS, 7, list_offsets(LARGE, range(PARTITIONS)))


def test_long_requests_that_would_take_too_much_memory_are_refused(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "_LONG_BYTES_MAX", 10_000)
    with RawClient(broker) as client:
        client.send(ApiKey.LIST_OFFSETS, 7, list_offsets(LARGE, range(PARTITIONS)))
        assert client.is_closed()
    with RawClient(broker) as client:
        client.ask(ApiKey.LIST_OFFSETS, 7, list_offsets(LARGE, range(500)))
