"""The course of a rebalance of a classic group: begin, wait for the members, give out the generation.

Decisions: they change the group's soft state and return effects. A group without members is given back to
`EMPTY` by a record; when it cannot be written, it is tried again.
"""

from dataclasses import dataclass
from typing import Final

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.member import Member
from riverlog.coordinator.groups.classic.records import StoredGroup, record_of
from riverlog.coordinator.groups.classic.requests import (
    ClassicSessionTimer,
    ClassicSyncTimer,
    Joined,
    JoinTimer,
    Synced,
)
from riverlog.coordinator.groups.classic.states import State
from riverlog.coordinator.runtime.effects import NOTHING, CancelTimer, Effects, Reply, SetTimer, Token
from riverlog.model.errors import ErrorCode

RETRY_MS: Final = 500


def decide_rebalance(group: ClassicGroup, *, initial_delay_ms: int, now_ms: int) -> Effects:
    """Begin a rebalance, or go on with the one that has begun."""
    if group.state is State.PREPARING_REBALANCE:
        return decide_if_joined(group, now_ms)
    is_first = group.state is State.EMPTY
    begun = _release_syncing(group) + Effects(timers=(CancelTimer(ClassicSyncTimer(group.group_id)),))
    group.unsynced.clear()
    group.enter(State.PREPARING_REBALANCE, now_ms)
    if not is_first:
        return begun + _complete_or_wait(group, now_ms)
    # The members of a new group come one after another; wait a little for the others.
    group.has_newcomers = False
    group.delay_left_ms = max(group.rebalance_timeout_ms - initial_delay_ms, 0)
    return begun + Effects(timers=(SetTimer(JoinTimer(group.group_id), initial_delay_ms),))


def decide_if_joined(group: ClassicGroup, now_ms: int) -> Effects:
    """A member has joined or gone: go on when none is missing. A first rebalance waits for its timer."""
    if (
        group.state is not State.PREPARING_REBALANCE
        or group.came_from is State.EMPTY
        or not group.has_all_joined
    ):
        return NOTHING
    return decide_generation(group, now_ms)


def decide_join_time_out(group: ClassicGroup, *, initial_delay_ms: int, now_ms: int) -> Effects:
    if group.state is not State.PREPARING_REBALANCE:
        return NOTHING
    if group.came_from is State.EMPTY and group.has_newcomers and group.delay_left_ms:
        group.has_newcomers = False
        delay_ms = min(initial_delay_ms, group.delay_left_ms)
        group.delay_left_ms = max(group.delay_left_ms - delay_ms, 0)
        return Effects(timers=(SetTimer(JoinTimer(group.group_id), delay_ms),))
    return decide_generation(group, now_ms)


def _complete_or_wait(group: ClassicGroup, now_ms: int) -> Effects:
    if group.has_all_joined:
        return decide_generation(group, now_ms)
    return Effects(timers=(SetTimer(JoinTimer(group.group_id), group.rebalance_timeout_ms),))


@dataclass(frozen=True, slots=True)
class Emptied:
    """The record that the group has no members was to be written."""

    group_id: str


def decide_generation(group: ClassicGroup, now_ms: int) -> Effects:
    """End the waiting: drop who has not come, elect a leader, tell all members the new generation.

    A static member is not dropped for being late; only the end of its session does that.
    """
    late = [each for each in group.members.values() if each.joining is None and each.instance_id is None]
    dropped = Effects(
        timers=tuple(
            CancelTimer(ClassicSessionTimer(group.group_id, group.remove(each.member_id).member_id))
            for each in late
        )
    )
    if not group.members:
        return dropped + _decide_empty(group, now_ms)
    if not _elect(group):
        # Only static members, none of which has come: wait for them, or for the end of their sessions.
        return dropped + Effects(timers=(SetTimer(JoinTimer(group.group_id), group.rebalance_timeout_ms),))
    return dropped + _decide_completing(group, now_ms)


def _elect(group: ClassicGroup) -> bool:
    """The leader stays if it has joined; otherwise the eldest who has. Whether there is one."""
    if group.leader is None or group.members[group.leader].joining is None:
        joined = [each.member_id for each in group.members.values() if each.joining is not None]
        group.leader = joined[0] if joined else group.leader
        return bool(joined)
    return True


def _decide_empty(group: ClassicGroup, now_ms: int) -> Effects:
    assert group.state is State.PREPARING_REBALANCE
    stored = StoredGroup(group.generation + 1, group.protocol_type, state_since_ms=now_ms)
    return Effects(
        records=(record_of(group.group_id, stored),),
        timers=(CancelTimer(JoinTimer(group.group_id)),),
        follow_ups=(Emptied(group.group_id),),
    )


def decide_not_emptied(group: ClassicGroup) -> Effects:
    """The record could not be written: try again soon."""
    return Effects(timers=(SetTimer(JoinTimer(group.group_id), RETRY_MS),))


def _decide_completing(group: ClassicGroup, now_ms: int) -> Effects:
    assert group.state is State.PREPARING_REBALANCE
    group.generation += 1
    group.protocol = classic_protocols.chosen(group.protocols)
    group.note_subscriptions()
    group.enter(State.COMPLETING_REBALANCE, now_ms)
    group.unsynced = set(group.members)
    replies: list[Reply] = []
    timers: list[SetTimer | CancelTimer] = [
        CancelTimer(JoinTimer(group.group_id)),
        SetTimer(ClassicSyncTimer(group.group_id), group.rebalance_timeout_ms),
    ]
    for member in group.members.values():
        if member.joining is not None:
            replies.append(Reply(member.joining, joined(group, member)))
        member.joining = None
        member.is_new = False
        timers.append(group.session_timer(member))
    return Effects(replies=tuple(replies), timers=tuple(timers))


def joined(group: ClassicGroup, member: Member) -> Joined:
    """The present generation, as one member is told it."""
    is_leader = member.member_id == group.leader
    return Joined(
        member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=group.leader or "",
        members=tuple(each.shown_to_leader(group.protocol) for each in group.members.values())
        if is_leader
        else (),
    )


def _release_syncing(group: ClassicGroup) -> Effects:
    """Members that wait for an assignment are told to join again."""
    replies: list[Reply] = []
    timers: list[SetTimer | CancelTimer] = []
    for member in group.members.values():
        if group.state is State.COMPLETING_REBALANCE:
            member.assignment = b""
        if member.syncing is not None:
            replies.append(Reply(member.syncing, Synced(ErrorCode.REBALANCE_IN_PROGRESS)))
            timers.append(group.session_timer(member))
            member.syncing = None
    return Effects(replies=tuple(replies), timers=tuple(timers))


def decide_removal(group: ClassicGroup, member_id: str) -> Effects:
    """A member is gone; what it still waits for is refused. The rebalance that follows is the caller's."""
    member = group.remove(member_id)
    return Effects(
        replies=refused(member, ErrorCode.UNKNOWN_MEMBER_ID, ""),
        timers=(CancelTimer(ClassicSessionTimer(group.group_id, member_id)),),
    )


def refused(member: Member, error: ErrorCode, member_id: str) -> tuple[Reply, ...]:
    replies: list[Reply] = []
    if member.joining is not None:
        replies.append(Reply(member.joining, Joined(member_id, error)))
    if member.syncing is not None:
        replies.append(Reply(member.syncing, Synced(error)))
    member.joining = member.syncing = None
    return tuple(replies)


def wait_for_generation(group: ClassicGroup, member: Member, token: Token[Joined]) -> Effects:
    """A join waits for the generation. An older one of the same member waits no more."""
    replies = refused(member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
    member.joining = token
    return Effects(replies=replies)
