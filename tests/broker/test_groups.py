"""Classic groups on a real broker: over restarts and kills, with clients that vanish, and bounds."""

from collections.abc import Iterator

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_groups import DeleteGroupsRequest
from riverlog.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from riverlog.wire.messages.list_groups import ListGroupsRequest
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.broker.raw_client import RawClient
from tests.waiting import eventually

GROUP = "g"


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {"offsets.topic.num.partitions": 2, "group.min.session.timeout.ms": 100, "group.max.size": 3}
    with Broker(config=settings) as broker:
        yield broker


class Member(RawClient):
    """A connection with the requests of a member."""

    member_id = ""
    generation = -1

    def prepare(self) -> None:
        reply = self.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key=GROUP, key_type=0))
        assert reply.error_code == ErrorCode.NONE

    def send_join(self, *, session_timeout_ms: int = 30_000, version: int = 9) -> None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
        )
        self.send(ApiKey.JOIN_GROUP, version, request)

    def joined(self, version: int = 9) -> JoinGroupResponse:
        reply: JoinGroupResponse = self.receive(ApiKey.JOIN_GROUP, version)
        self.member_id, self.generation = reply.member_id, reply.generation_id
        return reply

    def take_id(self, **more: int) -> int:
        self.prepare()
        self.send_join(**more)
        return self.joined().error_code

    def join(self) -> JoinGroupResponse:
        self.send_join()
        return self.joined()

    def send_sync(self, assignments: dict[str, bytes]) -> None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=data)
                for each, data in assignments.items()
            ],
        )
        self.send(ApiKey.SYNC_GROUP, 5, request)

    def sync(self, **assignments: bytes) -> SyncGroupResponse:
        self.send_sync({self.member_id: assignments.get("mine", b"")})
        reply: SyncGroupResponse = self.receive(ApiKey.SYNC_GROUP, 5)
        return reply

    def beat(self) -> int:
        request = HeartbeatRequest(group_id=GROUP, generation_id=self.generation, member_id=self.member_id)
        error: int = self.ask(ApiKey.HEARTBEAT, 4, request).error_code
        return error

    def describe(self) -> DescribedGroup:
        reply = self.ask(ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=[GROUP]))
        described: DescribedGroup = reply.groups[0]
        return described

    def leave(self) -> int:
        request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=self.member_id)])
        error: int = self.ask(ApiKey.LEAVE_GROUP, 5, request).members[0].error_code
        return error

    def commit(self, topic: str) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        error: int = self.ask(ApiKey.OFFSET_COMMIT, 9, request).topics[0].partitions[0].error_code
        return error

    def moved_to(self, broker: Broker) -> "Member":
        """The same member on a new connection."""
        other = Member(broker)
        other.member_id, other.generation = self.member_id, self.generation
        return other


def stable_member(broker: Broker) -> Member:
    member = Member(broker)
    assert member.take_id() == ErrorCode.MEMBER_ID_REQUIRED
    assert member.join().error_code == ErrorCode.NONE
    assert member.sync(mine=b"everything").assignment == b"everything"
    return member


@pytest.mark.parametrize("is_killed", [False, True])
def test_members_and_generation_survive_the_broker(broker: Broker, is_killed: bool) -> None:
    with stable_member(broker) as before:
        described = before.describe()
        if is_killed:
            broker.kill()
        broker.restart()
        with before.moved_to(broker) as after:
            after.prepare()
            assert after.describe() == described
            assert after.beat() == ErrorCode.NONE
            assert after.sync().assignment == b"everything"
            after.generation -= 1
            assert after.beat() == ErrorCode.ILLEGAL_GENERATION


def test_a_group_in_a_rebalance_is_what_it_was_before_it_when_the_broker_dies(broker: Broker) -> None:
    with stable_member(broker) as first, Member(broker) as second:
        assert second.take_id() == ErrorCode.MEMBER_ID_REQUIRED
        second.send_join()
        while first.beat() != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        broker.kill()
        broker.restart()
        with first.moved_to(broker) as member, second.moved_to(broker) as stranger:
            member.prepare()
            assert member.describe().group_state == "Stable"
            assert member.beat() == ErrorCode.NONE
            assert stranger.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_vanishes_is_dropped_when_its_session_ends(broker: Broker) -> None:
    with Member(broker) as member:
        assert member.take_id(session_timeout_ms=200) == ErrorCode.MEMBER_ID_REQUIRED
        member.send_join(session_timeout_ms=200)
        member.joined()
        member.sync()
    with Member(broker) as other:
        while other.describe().group_state != "Empty":
            pass
    with member.moved_to(broker) as stranger:
        assert stranger.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_connection_that_closes_while_it_waits_leaves_nothing_behind(broker: Broker) -> None:
    with stable_member(broker) as first:
        gone = Member(broker)
        gone.take_id()
        gone.send_join()
        while first.beat() != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
        gone.socket.close()
        with gone.moved_to(broker) as back:
            back.send_join()
            assert first.join().generation_id == 2
            assert back.joined().generation_id == 2


def test_a_group_has_no_more_members_than_it_may(broker: Broker) -> None:
    members = []
    for _ in range(3):
        member = Member(broker)
        assert member.take_id() == ErrorCode.MEMBER_ID_REQUIRED
        members.append(member)
    # The first is a group of its own; from then on, whoever has an id is waited for.
    assert members[0].join().error_code == ErrorCode.NONE
    for member in members[1:]:
        member.send_join()
    eventually(lambda: members[0].describe().group_state == "PreparingRebalance")
    members[0].send_join()
    for member in members:
        assert member.joined().error_code == ErrorCode.NONE
    with Member(broker) as late:
        assert late.take_id() == ErrorCode.GROUP_MAX_SIZE_REACHED
    for member in members:
        member.socket.close()


def test_an_assignment_that_is_too_large_for_the_log_is_refused_and_the_group_goes_on(broker: Broker) -> None:
    with Member(broker) as member:
        member.take_id()
        member.join()
        assert member.sync(mine=bytes(2 * 1024 * 1024)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert member.join().generation_id == 2
        assert member.sync(mine=b"less").assignment == b"less"


def test_offsets_are_deleted_with_their_group(broker: Broker) -> None:
    broker.create_topic("t")
    with stable_member(broker) as member:
        assert member.commit("t") == ErrorCode.NONE
        request = DeleteGroupsRequest(groups_names=[GROUP])
        assert member.ask(ApiKey.DELETE_GROUPS, 2, request).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
        assert member.leave() == ErrorCode.NONE
        assert member.commit("t") == ErrorCode.UNKNOWN_MEMBER_ID
        assert member.ask(ApiKey.DELETE_GROUPS, 2, request).results[0].error_code == ErrorCode.NONE
        broker.kill()
        broker.restart()
    with Member(broker) as member:
        member.prepare()
        assert member.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest()).groups == []
        assert member.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
