"""Leaving a classic group: by request, by silence, by not asking for the assignment. Decisions."""

from collections.abc import Sequence

from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.rebalance import decide_if_joined, decide_rebalance, decide_removal
from riverlog.coordinator.groups.classic.requests import ClassicSessionTimer, Leaver, Verdicts
from riverlog.coordinator.groups.classic.states import ClassicEvent, State, rule
from riverlog.coordinator.runtime.effects import NOTHING, CancelTimer, Effects, Reply, Token
from riverlog.coordinator.runtime.rules import Goto, Ignore
from riverlog.model.errors import ErrorCode


def decide_leave(
    group: ClassicGroup,
    token: Token[Verdicts],
    leavers: Sequence[Leaver],
    *,
    initial_delay_ms: int,
    now_ms: int,
) -> Effects:
    verdicts: list[ErrorCode] = []
    effects = NOTHING
    for leaver in leavers:
        verdict, removed = _decide_one(group, leaver)
        verdicts.append(verdict)
        effects += removed
    effects += Effects(replies=(Reply(token, tuple(verdicts)),))
    if ErrorCode.NONE not in verdicts:
        return effects
    # As in Kafka, also the leaving of a member that has not joined yet makes the others join again.
    return effects + _decide_after_loss(group, initial_delay_ms=initial_delay_ms, now_ms=now_ms)


def _decide_one(group: ClassicGroup, leaver: Leaver) -> tuple[ErrorCode, Effects]:
    member_id, instance_id = leaver
    if not member_id:
        owner = None if instance_id is None else group.instances.get(instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, NOTHING
        return ErrorCode.NONE, decide_removal(group, owner)
    if member_id in group.pending and instance_id is None:
        group.pending.discard(member_id)
        return ErrorCode.NONE, Effects(timers=(CancelTimer(ClassicSessionTimer(group.group_id, member_id)),))
    refusal = group.refuse_member(member_id, instance_id)
    if refusal is not None:
        return refusal, NOTHING
    return ErrorCode.NONE, decide_removal(group, member_id)


def decide_session_end(group: ClassicGroup, member_id: str, *, initial_delay_ms: int, now_ms: int) -> Effects:
    if member_id in group.pending:
        group.pending.discard(member_id)
        return decide_if_joined(group, now_ms)
    member = group.members.get(member_id)
    if member is None or member.is_excused:
        return NOTHING
    return decide_removal(group, member_id) + _decide_after_loss(
        group, initial_delay_ms=initial_delay_ms, now_ms=now_ms
    )


def decide_sync_time_out(group: ClassicGroup, *, initial_delay_ms: int, now_ms: int) -> Effects:
    """Who has joined and then not asked for its assignment is dead, or worse: it lives and does nothing."""
    if rule(group.state, ClassicEvent.SYNC_TIME_OUT) != Goto(State.PREPARING_REBALANCE) or not group.unsynced:
        return NOTHING
    effects = NOTHING
    for member_id in sorted(group.unsynced):
        effects += decide_removal(group, member_id)
    return effects + decide_rebalance(group, initial_delay_ms=initial_delay_ms, now_ms=now_ms)


def _decide_after_loss(group: ClassicGroup, *, initial_delay_ms: int, now_ms: int) -> Effects:
    match rule(group.state, ClassicEvent.MEMBER_GONE):
        case Goto(state=State.PREPARING_REBALANCE):
            return decide_rebalance(group, initial_delay_ms=initial_delay_ms, now_ms=now_ms)
        case Ignore():
            return NOTHING
        case other:
            raise AssertionError(f"{other} in a group that is {group.state.value}")
