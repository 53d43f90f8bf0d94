"""Members of the classic protocol in a group of the consumer protocol, while it migrates (KIP-848).

They join, sync, send heartbeats and leave as ever; the coordinator assigns, so none of them leads. A join is
what a full heartbeat is to the others: the member says what it has, and takes a step towards its target. When
it has to take another one, its heartbeat tells it that a rebalance is on, and it joins again.
"""

from collections.abc import Sequence
from dataclasses import replace

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.requests import (
    ID_REQUIRED_SINCE,
    Beat,
    Joined,
    Joining,
    Leaver,
    Synced,
    Syncing,
    Verdicts,
)
from riverlog.coordinator.groups.consumer import heartbeat as heartbeats
from riverlog.coordinator.groups.consumer.classic_payloads import owned_by, write_assignment
from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.group_change import GroupChange
from riverlog.coordinator.groups.consumer.groups import ConsumerGroups
from riverlog.coordinator.groups.consumer.member import ClassicPart, ConsumerMember, MemberState
from riverlog.coordinator.groups.consumer.migration import may_go_down, protocols_of
from riverlog.coordinator.groups.consumer.records import group_tombstones
from riverlog.coordinator.groups.consumer.requests import HeartbeatRefusal
from riverlog.coordinator.groups.consumer.timers import RejoinTimer, SyncTimer, timers_after, timers_of
from riverlog.coordinator.runtime.effects import (
    NOTHING,
    CancelTimer,
    CoordinatorRecord,
    Effects,
    SetTimer,
    Token,
    reply,
)
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


class ClassicMembers:
    """What the classic groups ask of the others; see `ClassicHost`."""

    def __init__(self, consumer: ConsumerGroups) -> None:
        self._consumer = consumer
        self._called: set[tuple[str, str]] = set()
        """Members that were told to join again and have not yet; they get no more time when told again."""

    def hosts(self, group_id: str) -> bool:
        group = self._consumer.groups.get(group_id)
        return group is not None and bool(group.members)

    def make_way(self, group_id: str) -> tuple[CoordinatorRecord, ...]:
        if group_id not in self._consumer.groups:
            return ()
        return tuple(each.encoded() for each in group_tombstones(group_id))

    def decide_classic_join(self, token: Token[Joined], request: Joining, now_ms: int) -> Effects:
        group = self._consumer.groups[request.group_id]
        subscription = _subscription(group, request)
        refusal = self._refuse_join(group, request) or (
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL if subscription is None else None
        )
        if refusal is not None or subscription is None:
            return reply(token, Joined("", refusal or ErrorCode.NONE))
        if not request.member_id and request.instance_id is None and request.version >= ID_REQUIRED_SINCE:
            return reply(token, Joined(request.new_member_id, ErrorCode.MEMBER_ID_REQUIRED))
        change = GroupChange(group)
        before = _find(change, request)
        if isinstance(before, HeartbeatRefusal):
            return reply(token, Joined("", before.error))
        member = _joining(before, request, subscription)
        if before.member_id not in change.group.members or not member.has_same_subscription(before):
            change.write_subscription(member)
            change.forget_regex(before.regex)
        return self._join(token, change, before, member, subscription, now_ms)

    def _join(
        self,
        token: Token[Joined],
        change: GroupChange,
        before: ConsumerMember,
        member: ConsumerMember,
        subscription: ConsumerProtocolSubscription,
        now_ms: int,
    ) -> Effects:
        group_id = change.group.group_id
        claimed = owned_by(subscription, self._consumer.image)
        after = self._consumer.settle(change, before, member, claimed, now_ms)
        if isinstance(after, HeartbeatRefusal):
            return reply(token, Joined("", after.error))
        joined = Joined(
            after.member_id,
            generation=after.epoch,
            protocol_type=classic_protocols.CONSUMER,
            protocol=protocols_of(after)[0].name,
        )
        self._called.discard((group_id, after.member_id))
        if may_go_down(change.group, self._consumer.config):
            # It took the place of the last member of the other protocol.
            return self._consumer.go_down(change, now_ms) + reply(token, joined)
        timers = (
            *timers_after(group_id, before, after, 0),
            CancelTimer(RejoinTimer(group_id, after.member_id)),
            SetTimer(SyncTimer(group_id, after.member_id), after.rebalance_timeout_ms),
        )
        return Effects(change.records, timers=timers) + reply(token, joined)

    def decide_classic_sync(self, token: Token[Synced], request: Syncing, now_ms: int) -> Effects:
        group = self._consumer.groups[request.group_id]
        member = _current(group, request.member_id, request.instance_id, request.generation)
        if isinstance(member, ErrorCode):
            return reply(token, Synced(member))
        protocol, subscription = protocols_of(member)[0]
        if (request.protocol_type or classic_protocols.CONSUMER, request.protocol or protocol) != (
            classic_protocols.CONSUMER,
            protocol,
        ):
            return reply(token, Synced(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        if self._is_behind(group, member, now_ms):
            return reply(token, Synced(ErrorCode.REBALANCE_IN_PROGRESS)) + self._call(group, member)
        synced = Synced(
            protocol_type=classic_protocols.CONSUMER,
            protocol=protocol,
            assignment=write_assignment(member.assigned, self._consumer.image, subscription),
        )
        return reply(token, synced) + Effects(
            timers=(
                *timers_of(group.group_id, member, 0)[:1],
                CancelTimer(SyncTimer(group.group_id, member.member_id)),
            )
        )

    def decide_classic_heartbeat(self, token: Token[ErrorCode], beat: Beat, now_ms: int) -> Effects:
        group = self._consumer.groups[beat.group_id]
        member = _current(group, beat.member_id, beat.instance_id, beat.generation)
        if isinstance(member, ErrorCode):
            return reply(token, member)
        alive = Effects(timers=timers_of(group.group_id, member, 0)[:1])
        if self._is_behind(group, member, now_ms) or _can_go_on(group, member):
            return reply(token, ErrorCode.REBALANCE_IN_PROGRESS) + alive + self._call(group, member)
        return reply(token, ErrorCode.NONE) + alive

    def decide_classic_leave(
        self, token: Token[Verdicts], group_id: str, leavers: Sequence[Leaver], now_ms: int
    ) -> Effects:
        group = self._consumer.groups[group_id]
        verdicts: list[ErrorCode] = []
        gone: list[str] = []
        for leaver in leavers:
            member_id = leaver.member_id
            if not member_id and leaver.instance_id is not None:
                member_id = group.instances.get(leaver.instance_id, "")
            refusal = _refuse(group, member_id, leaver.instance_id)
            verdicts.append(refusal or ErrorCode.NONE)
            if refusal is None:
                gone.append(member_id)
        return self._consumer.expel(group_id, gone, now_ms) + reply(token, tuple(verdicts))

    def _refuse_join(self, group: ConsumerGroup, request: Joining) -> ErrorCode | None:
        is_member = request.member_id in group.members or request.instance_id in group.instances
        if len(group.members) >= self._consumer.config.consumer_group_size_max and not is_member:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return None

    def _is_behind(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> bool:
        """A member that has to give partitions up does that first, and joins by itself afterwards."""
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            return False
        interval_ms = self._consumer.rules_for(group.group_id).assignment_interval_ms
        return member.epoch < group.target_epoch or heartbeats.is_target_due(
            group, interval_ms=interval_ms, now_ms=now_ms
        )

    def _call(self, group: ConsumerGroup, member: ConsumerMember) -> Effects:
        """It has as long as its rebalances may take to join again."""
        called = (group.group_id, member.member_id)
        if called in self._called:
            return NOTHING
        self._called.add(called)
        return Effects(timers=(SetTimer(RejoinTimer(*called), member.rebalance_timeout_ms),))


def _subscription(group: ConsumerGroup, request: Joining) -> ConsumerProtocolSubscription | None:
    """What the member subscribes to; None if it does not fit in with the other classic members."""
    others = [protocols_of(member) for member in group.members.values() if member.classic is not None]
    if request.protocol_type != classic_protocols.CONSUMER or not request.protocols:
        return None
    if not classic_protocols.common([*others, request.protocols]):
        return None
    return classic_protocols.read_subscription(request.protocols[0].metadata)


def _find(change: GroupChange, request: Joining) -> ConsumerMember | HeartbeatRefusal:
    group, instance_id = change.group, request.instance_id
    member_id = request.member_id or request.new_member_id
    if instance_id is None or instance_id not in group.instances:
        if instance_id is not None and request.member_id:
            return heartbeats.unknown_member(group.group_id, request.member_id)
        return group.members.get(member_id) or ConsumerMember(member_id)
    if request.member_id:
        refusal = heartbeats.refuse_instance(group, instance_id, request.member_id)
        return refusal or group.members[request.member_id]
    return heartbeats.put_in_place_of(change, group.members[group.instances[instance_id]], member_id)


def _joining(
    member: ConsumerMember, request: Joining, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=tuple(sorted(set(subscription.topics))),
        regex="",
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicPart(
            request.session_timeout_ms, tuple((each.name, each.metadata) for each in request.protocols)
        ),
    )


def _refuse(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ErrorCode | None:
    if instance_id is not None:
        refusal = heartbeats.refuse_instance(group, instance_id, member_id)
        if refusal is not None:
            return refusal.error
    return None if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def _current(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ConsumerMember | ErrorCode:
    refusal = _refuse(group, member_id, instance_id)
    if refusal is not None:
        return refusal
    member = group.members[member_id]
    if member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if member.epoch == generation else ErrorCode.ILLEGAL_GENERATION


def _can_go_on(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether something that the member waits for has become free."""
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    return any(
        (topic, index) not in group.owners
        for topic, indexes in group.target_of(member.member_id).items()
        for index in indexes
    )
