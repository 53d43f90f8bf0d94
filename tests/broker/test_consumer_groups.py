"""Groups of the consumer protocol by raw requests: fencing, time-outs, restarts and topics that change."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from riverlog.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.raw_client import RawClient
from tests.waiting import eventually

SESSION_MS = 1_000
SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.session.timeout.ms": SESSION_MS,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.max.size": 4,
}


class Member:
    """Says by raw requests what a test wants said in the name of a member."""

    def __init__(self, raw: RawClient, group: str, member_id: str) -> None:
        self.raw, self.group, self.member_id = raw, group, member_id
        self.epoch = 0

    def beat(self, version: int = 1, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        fields = {"member_epoch": self.epoch, "topic_partitions": None, **fields}
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, **fields)
        reply = self.raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        assert isinstance(reply, ConsumerGroupHeartbeatResponse)
        if reply.error_code == ErrorCode.NONE:
            self.epoch = reply.member_epoch
        return reply

    def join(self, *topics: str, **fields: Any) -> list[int] | ErrorCode:
        """Partitions that it gets of the first topic."""
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": list(topics), **fields}
        return partitions(self.beat(member_epoch=0, topic_partitions=[], **fields))

    def own(self, topic: UUID, *indexes: int) -> ConsumerGroupHeartbeatResponse:
        owned = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=list(indexes))
        return self.beat(topic_partitions=[owned])

    def commit(self, topic: str, epoch: int, version: int = 9) -> ErrorCode:
        wanted = OffsetCommitRequestTopic(
            name=topic, partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
        )
        reply = self.raw.ask(
            ApiKey.OFFSET_COMMIT,
            version,
            OffsetCommitRequest(
                group_id=self.group,
                member_id=self.member_id,
                generation_id_or_member_epoch=epoch,
                topics=[wanted],
            ),
        )
        return ErrorCode(reply.topics[0].partitions[0].error_code)

    def fetch(self, topic: str, epoch: int) -> ErrorCode | int:
        wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
        asked = OffsetFetchRequestGroup(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, topics=[wanted]
        )
        [found] = self.raw.ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[asked])).groups
        if found.error_code:
            return ErrorCode(found.error_code)
        return int(found.topics[0].partitions[0].committed_offset)


def partitions(reply: ConsumerGroupHeartbeatResponse) -> list[int] | ErrorCode:
    if reply.error_code:
        return ErrorCode(reply.error_code)
    assert reply.assignment is not None
    return [index for topic in reply.assignment.topic_partitions for index in topic.partitions]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
        yield client


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"t-{abs(hash(request.node.name)) % 10**9}"
    broker.create_topic(name, 4)
    return name


def topic_id(raw: RawClient, member: Member) -> UUID:
    [group] = described(raw, member.group)
    found = group.members[0].target_assignment.topic_partitions[0].topic_id
    assert isinstance(found, UUID)
    return found


def described(raw: RawClient, *groups: str, version: int = 1) -> list[Any]:
    request = ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True)
    return list(raw.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, version, request).groups)


def state(raw: RawClient, group: str) -> str:
    return str(described(raw, group)[0].group_state)


@pytest.mark.parametrize("version", [0, 1])
def test_a_second_member_gets_its_share_when_the_first_has_given_it_up(
    raw: RawClient, topic: str, version: int
) -> None:
    ann, bob = (Member(raw, f"share-{version}", name) for name in ("ann", "bob"))
    assert ann.join(topic) == [0, 1, 2, 3]
    assert state(raw, ann.group) == "Stable"
    assert bob.join(topic) == []
    assert partitions(ann.beat(version)) == [0, 1]
    assert bob.beat(version).assignment is None
    assert state(raw, ann.group) == "Reconciling"
    ann.own(topic_id(raw, ann), 0, 1)
    assert partitions(bob.beat(version)) == [2, 3]
    assert state(raw, ann.group) == "Stable"
    assert ann.epoch == bob.epoch == 3


def test_a_member_in_the_wrong_epoch_is_fenced(raw: RawClient, topic: str) -> None:
    ann = Member(raw, "fenced", "ann")
    ann.join(topic)
    assert ann.beat(member_epoch=ann.epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert ann.beat(member_epoch=ann.epoch - 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert ann.commit(topic, ann.epoch) is ErrorCode.NONE
    assert ann.commit(topic, ann.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert ann.commit(topic, ann.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert ann.commit(topic, ann.epoch, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert ann.fetch(topic, ann.epoch) == 7
    assert ann.fetch(topic, ann.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    eve = Member(raw, "fenced", "eve")
    assert eve.beat(member_epoch=2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert eve.commit(topic, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert eve.fetch(topic, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert Member(raw, "nobody", "eve").beat(member_epoch=2).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_epoch_before_is_forgiven_to_a_member_whose_reply_was_lost(raw: RawClient, topic: str) -> None:
    ann, bob = Member(raw, "forgiven", "ann"), Member(raw, "forgiven", "bob")
    ann.join(topic)
    bob.join(topic)
    before = bob.epoch
    ann.beat()
    ann.own(topic_id(raw, ann), 0, 1)
    ann.beat(subscribed_topic_names=[topic, "more"])
    bob.beat()
    assert bob.epoch > before
    reply = bob.beat(member_epoch=before, topic_partitions=[])
    assert (reply.error_code, reply.member_epoch) == (ErrorCode.NONE, bob.epoch)
    assert bob.beat(member_epoch=before).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_is_not_heard_of_is_put_out(raw: RawClient, topic: str) -> None:
    ann, bob = Member(raw, "silent", "ann"), Member(raw, "silent", "bob")
    ann.join(topic)
    bob.join(topic)
    eventually(lambda: ann.beat(topic_partitions=[]).error_code == 0 and _size(raw, "silent") == 1)
    assert bob.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_its_partitions_is_put_out(raw: RawClient, topic: str) -> None:
    ann, bob = Member(raw, "stubborn", "ann"), Member(raw, "stubborn", "bob")
    ann.join(topic, rebalance_timeout_ms=300)
    bob.join(topic)

    def is_out() -> bool:
        bob.beat()
        return ann.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID

    eventually(is_out)
    bob.beat()
    assert _owned(raw, "stubborn", "bob") == [0, 1, 2, 3]


def test_an_instance_keeps_its_partitions_while_it_is_away(raw: RawClient, topic: str) -> None:
    old = Member(raw, "static", "old")
    assert old.join(topic, instance_id="one") == [0, 1, 2, 3]
    new = Member(raw, "static", "new")
    assert new.join(topic, instance_id="one") is ErrorCode.UNRELEASED_INSTANCE_ID
    assert new.beat(member_epoch=2, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert old.beat(member_epoch=-2, instance_id="one").member_epoch == -2
    epoch = described(raw, "static")[0].group_epoch
    assert new.join(topic, instance_id="one") == [0, 1, 2, 3]
    assert described(raw, "static")[0].group_epoch == epoch
    assert old.beat(member_epoch=2, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_that_does_not_come_back_is_put_out(raw: RawClient, topic: str) -> None:
    old = Member(raw, "gone", "old")
    old.join(topic, instance_id="one")
    old.beat(member_epoch=-2, instance_id="one")
    eventually(lambda: state(raw, "gone") == "Empty")


def test_a_group_grows_with_its_topic_and_loses_one_that_is_deleted(
    broker: Broker, raw: RawClient, topic: str
) -> None:
    ann = Member(raw, "grows", "ann")
    broker.create_topic(f"{topic}-2", 1)
    ann.join(topic, f"{topic}-2")
    grown = CreatePartitionsTopic(name=topic, count=6, assignments=None)
    raw.ask(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics=[grown], timeout_ms=5000))
    ann.beat()
    assert _owned(raw, "grows", "ann") == [0, 0, 1, 2, 3, 4, 5]
    raw.delete_topic(f"{topic}-2")
    assert partitions(ann.beat()) == [0, 1, 2, 3, 4, 5]


def test_a_topic_that_comes_later_is_read_by_name_and_by_expression(broker: Broker, raw: RawClient) -> None:
    ann, bob = Member(raw, "by-name", "ann"), Member(raw, "by-regex", "bob")
    assert ann.join("late-1") == []
    regex = {"subscribed_topic_names": [], "subscribed_topic_regex": "late-[0-9]+"}
    assert bob.join(**regex) == []
    broker.create_topic("late-1", 2)
    assert partitions(ann.beat()) == [0, 1]
    eventually(lambda: bob.beat().error_code == 0 and _owned(raw, "by-regex", "bob") == [0, 1])
    broker.create_topic("late-2", 1)
    eventually(lambda: bob.beat().error_code == 0 and _owned(raw, "by-regex", "bob") == [0, 0, 1])
    bad = Member(raw, "by-regex", "eve").join(subscribed_topic_names=[], subscribed_topic_regex="(")
    assert bad is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_most_members_choose_the_assignor(raw: RawClient, topic: str) -> None:
    for name, assignor in (("ann", "range"), ("bob", "range"), ("eve", "uniform")):
        Member(raw, "vote", name).join(topic, server_assignor=assignor)
    assert described(raw, "vote")[0].assignor_name == "range"
    assert Member(raw, "vote", "zoe").join(topic, server_assignor="best") is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_full_group_takes_nobody_in(raw: RawClient, topic: str) -> None:
    members = [Member(raw, "full", f"member-{number}") for number in range(5)]
    joined = [member.join(topic) for member in members]
    assert joined[4] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert members[0].beat().error_code == ErrorCode.NONE


def test_a_group_can_have_settings_of_its_own(raw: RawClient, topic: str) -> None:
    wanted = AlterableConfig(name="consumer.heartbeat.interval.ms", config_operation=0, value="333")
    resource = AlterConfigsResource(resource_type=32, resource_name="special", configs=[wanted])
    reply = raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource]))
    assert reply.responses[0].error_code == ErrorCode.NONE, reply.responses[0].error_message
    ann, other = Member(raw, "special", "ann"), Member(raw, "ordinary", "ann")
    ann.join(topic)
    other.join(topic)
    assert (ann.beat().heartbeat_interval_ms, other.beat().heartbeat_interval_ms) == (333, 200)


def test_a_group_is_what_it_was_after_a_restart_and_a_kill(raw: RawClient) -> None:
    with Broker(config=SETTINGS) as broker:
        broker.create_topic("orders", 4)
        with RawClient(broker) as client:
            client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
            ann, bob = Member(client, "g", "ann"), Member(client, "g", "bob")
            ann.join("orders")
            bob.join("orders")
            ann.beat()
            ann.commit("orders", ann.epoch)
            before = described(client, "g")
        for is_clean in (True, False):
            if not is_clean:
                broker.kill()
            broker.restart()
            with RawClient(broker) as client:
                client.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
                assert _told(described(client, "g")) == _told(before)
                ann.raw = bob.raw = client
                assert ann.beat().error_code == bob.beat().error_code == ErrorCode.NONE
                assert ann.fetch("orders", ann.epoch) == 7
                before = described(client, "g")


def test_describing_tells_what_there_is_and_what_is_not_found(raw: RawClient, topic: str) -> None:
    ann = Member(raw, "told", "ann")
    ann.join(topic, rack_id="r1", instance_id="one")
    empty, group, missing = described(raw, "told", "", "nothing")
    assert (empty.error_code, missing.error_code) == (
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    )
    [member] = group.members
    assert (member.rack_id, member.instance_id, member.member_type) == ("r1", "one", 1)
    assert (member.client_id, member.client_host) == ("raw", "/127.0.0.1")
    assert [each.topic_name for each in member.assignment.topic_partitions] == [topic]
    assert group.authorized_operations != -(2**31)


def _size(raw: RawClient, group: str) -> int:
    return len(described(raw, group)[0].members)


def _owned(raw: RawClient, group: str, member_id: str) -> list[int]:
    for member in described(raw, group)[0].members:
        if member.member_id == member_id:
            return sorted(index for topic in member.assignment.topic_partitions for index in topic.partitions)
    return []


def _told(groups: list[Any]) -> list[Any]:
    """Everything but the order in which members are told."""
    return [
        (group.group_state, group.group_epoch, group.assignment_epoch, sorted(map(_member, group.members)))
        for group in groups
    ]


def _member(member: Any) -> tuple[Any, ...]:
    return (
        member.member_id,
        member.member_epoch,
        member.subscribed_topic_names,
        [each.partitions for each in member.assignment.topic_partitions],
        [each.partitions for each in member.target_assignment.topic_partitions],
    )
