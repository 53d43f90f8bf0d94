"""Members of consumer groups on the wire: a socket each, and no thread.

Sending and receiving are apart, because the broker holds a join until every member of the group has asked:
all of them send, then all of them read. A refusal where none is due raises, so no figure hides one.
"""

from collections.abc import Iterable, Sequence

from benchmarks import load
from benchmarks.asking import ask, receive, send
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import encode
from riverlog.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from riverlog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from riverlog.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 6_000  # The least that a broker allows by default.
REBALANCE_MS = 30_000
_JOIN, _SYNC, _HEARTBEAT, _LEAVE = 9, 5, 4, 5
_TYPE, _ASSIGNOR = "consumer", "range"
_VERSION = bytes(2)  # Subscriptions and assignments begin with the version they are written in.
_SUBSCRIPTION = _VERSION + encode(ConsumerProtocolSubscription(topics=["read"]), 0)


class Member:
    """What a client keeps of its membership."""

    def __init__(self, address: load.Address, group: str) -> None:
        self.group = group
        self._connection = load.connect(address)
        self._connection.settimeout(REBALANCE_MS / 1e3)
        self._id = ""
        self._generation = -1
        self._led: list[str] = []  # Whom to assign to; empty for all but the leader.

    def close(self) -> None:
        self._connection.close()

    def take_id(self) -> None:
        """The first of the two requests that a new member joins by."""
        self.send_join()
        reply = receive(self._connection, ApiKey.JOIN_GROUP, _JOIN)
        _expect(reply.error_code, ErrorCode.MEMBER_ID_REQUIRED)
        self._id = reply.member_id

    def send_join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._id,
            protocol_type=_TYPE,
            protocols=[JoinGroupRequestProtocol(name=_ASSIGNOR, metadata=_SUBSCRIPTION)],
        )
        send(self._connection, ApiKey.JOIN_GROUP, _JOIN, request)

    def receive_join(self) -> int:
        """Returns the generation."""
        reply = receive(self._connection, ApiKey.JOIN_GROUP, _JOIN)
        _expect(reply.error_code, ErrorCode.NONE)
        self._generation = reply.generation_id
        self._led = [member.member_id for member in reply.members]
        return self._generation

    def send_sync(self) -> None:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self._generation,
            member_id=self._id,
            protocol_type=_TYPE,
            protocol_name=_ASSIGNOR,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=_assignment(number))
                for number, member in enumerate(self._led)
            ],
        )
        send(self._connection, ApiKey.SYNC_GROUP, _SYNC, request)

    def receive_sync(self) -> None:
        reply = receive(self._connection, ApiKey.SYNC_GROUP, _SYNC)
        _expect(reply.error_code, ErrorCode.NONE)
        if not reply.assignment:
            raise RuntimeError(f"a member of {self.group} was left without an assignment")

    def send_heartbeat(self) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=self._generation, member_id=self._id)
        send(self._connection, ApiKey.HEARTBEAT, _HEARTBEAT, request)

    def receive_heartbeat(self) -> ErrorCode:
        return ErrorCode(receive(self._connection, ApiKey.HEARTBEAT, _HEARTBEAT).error_code)

    def leave(self) -> None:
        request = LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self._id)])
        reply = ask(self._connection, ApiKey.LEAVE_GROUP, _LEAVE, request)
        _expect(reply.error_code or reply.members[0].error_code, ErrorCode.NONE)
        self._id = ""


def settle(members: Sequence[Member], *, already_asked: Iterable[Member] = ()) -> None:
    """Join and sync, each member of each group; returns when all have their assignments."""
    asked = set(already_asked)
    for member in members:
        if member not in asked:
            member.send_join()
    generations: dict[str, set[int]] = {}
    for member in members:
        generations.setdefault(member.group, set()).add(member.receive_join())
    if any(len(each) > 1 for each in generations.values()):
        raise RuntimeError("members of one group joined different generations")
    for member in members:
        member.send_sync()
    for member in members:
        member.receive_sync()


def heartbeats(members: Sequence[Member]) -> list[ErrorCode]:
    for member in members:
        member.send_heartbeat()
    return [member.receive_heartbeat() for member in members]


def hear_of_rebalance(members: Sequence[Member]) -> None:
    """Heartbeats until every member has been told to join again."""
    waiting = list(members)
    while waiting:
        answers = heartbeats(waiting)
        for answer in answers:
            if answer != ErrorCode.NONE:
                _expect(answer, ErrorCode.REBALANCE_IN_PROGRESS)
        waiting = [member for member, answer in zip(waiting, answers, strict=True) if not answer]


def _assignment(partition: int) -> bytes:
    owned = [TopicPartition(topic="read", partitions=[partition])]
    return _VERSION + encode(ConsumerProtocolAssignment(assigned_partitions=owned), 0)


def _expect(answer: int, due: ErrorCode) -> None:
    if answer != due:
        raise RuntimeError(f"the broker answered {ErrorCode(answer).name} where {due.name} was due")
