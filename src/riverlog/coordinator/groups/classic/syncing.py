"""Giving out the assignment of a classic group, and heartbeats. Decisions."""

from dataclasses import dataclass

from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.rebalance import decide_rebalance
from riverlog.coordinator.groups.classic.records import StoredGroup, record_of
from riverlog.coordinator.groups.classic.requests import Beat, ClassicSyncTimer, Synced, Syncing
from riverlog.coordinator.groups.classic.states import ClassicEvent, State, rule
from riverlog.coordinator.runtime.effects import (
    NOTHING,
    CancelTimer,
    Effects,
    Reply,
    SetTimer,
    Token,
    reply,
)
from riverlog.coordinator.runtime.rules import AnswerWith, Goto, Ignore, Impossible, Tell
from riverlog.model.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Assigned:
    """The leader's assignment of a generation was to be written down."""

    group_id: str
    generation: int


def decide_sync(
    group: ClassicGroup, token: Token[Synced], request: Syncing, *, initial_delay_ms: int, now_ms: int
) -> Effects:
    """Answers at once, or when the leader has handed in the assignment and its record is committed."""
    refusal = group.refuse_member(request.member_id, request.instance_id) or _refuse(group, request)
    if refusal is not None:
        return reply(token, Synced(refusal))
    is_leader = request.member_id == group.leader
    member = group.members[request.member_id]
    match rule(group.state, ClassicEvent.SYNC_LEADER if is_leader else ClassicEvent.SYNC):
        case AnswerWith(error=error):
            return reply(token, Synced(error))
        case Tell():
            answer = reply(token, _synced(group, member.assignment))
            return answer + Effects(timers=_synced_timers(group, request.member_id))
        case Goto(state=state):
            waited_before = member.syncing
            member.syncing = token
            waiting = Effects(timers=_synced_timers(group, request.member_id))
            if waited_before is not None:
                again = Reply(waited_before, Synced(ErrorCode.REBALANCE_IN_PROGRESS))
                waiting += Effects(replies=(again,))
            return waiting if state is group.state else waiting + _decide_assigned(group, request)
        case Ignore() | Impossible():
            raise AssertionError(f"a member of a group that is {group.state.value}")


def _refuse(group: ClassicGroup, request: Syncing) -> ErrorCode | None:
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for claimed, present in (
        (request.protocol_type, group.protocol_type),
        (request.protocol, group.protocol),
    ):
        if claimed is not None and present is not None and claimed != present:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _synced_timers(group: ClassicGroup, member_id: str) -> tuple[CancelTimer, ...]:
    group.unsynced.discard(member_id)
    return () if group.unsynced else (CancelTimer(ClassicSyncTimer(group.group_id)),)


def _synced(group: ClassicGroup, assignment: bytes) -> Synced:
    return Synced(ErrorCode.NONE, group.protocol_type, group.protocol, assignment)


def _decide_assigned(group: ClassicGroup, request: Syncing) -> Effects:
    """Write the generation down and tell those who wait. A member that the leader forgot gets nothing."""
    given = {each: request.assignments.get(each, b"") for each in group.members}
    stored = StoredGroup(
        group.generation,
        group.protocol_type,
        group.protocol,
        group.leader,
        group.state_since_ms,
        tuple(member.stored(group.protocol, given[each]) for each, member in group.members.items()),
    )
    replies: list[Reply] = []
    timers: list[SetTimer | CancelTimer] = []
    for member in group.members.values():
        if member.syncing is not None:
            replies.append(Reply(member.syncing, _synced(group, given[member.member_id])))
            timers.append(group.session_timer(member))
    return Effects(
        (record_of(group.group_id, stored),),
        tuple(replies),
        tuple(timers),
        follow_ups=(Assigned(group.group_id, group.generation),),
    )


def decide_not_assigned(
    group: ClassicGroup, assigned: Assigned, *, initial_delay_ms: int, now_ms: int
) -> Effects:
    """The record could not be written: who waited has been told, and the members try again."""
    if group.state is not State.COMPLETING_REBALANCE or group.generation != assigned.generation:
        return NOTHING
    for member in group.members.values():
        member.syncing = None
    timers = tuple(group.session_timer(member) for member in group.members.values())
    return Effects(timers=timers) + decide_rebalance(group, initial_delay_ms=initial_delay_ms, now_ms=now_ms)


def decide_heartbeat(group: ClassicGroup, token: Token[ErrorCode], beat: Beat) -> Effects:
    refusal = group.refuse_member(beat.member_id, beat.instance_id)
    if refusal is None and beat.generation != group.generation:
        refusal = ErrorCode.ILLEGAL_GENERATION
    if refusal is not None:
        return reply(token, refusal)
    answer = rule(group.state, ClassicEvent.HEARTBEAT)
    assert isinstance(answer, AnswerWith)
    timers = (group.session_timer(group.members[beat.member_id]),)
    return Effects(replies=(Reply(token, answer.error),), timers=timers)
