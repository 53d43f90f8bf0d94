"""Joining a classic group: who is let in, under which id, and whether it means a rebalance. Decisions."""

from typing import Final, NamedTuple, assert_never

from riverlog.coordinator.groups.classic import protocols as classic_protocols
from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.member import Member, member_joining
from riverlog.coordinator.groups.classic.rebalance import (
    decide_if_joined,
    decide_rebalance,
    decide_removal,
    joined,
    refused,
    wait_for_generation,
)
from riverlog.coordinator.groups.classic.records import StoredGroup, record_of
from riverlog.coordinator.groups.classic.requests import (
    ID_REQUIRED_SINCE,
    SKIP_ASSIGNMENT_SINCE,
    ClassicSessionTimer,
    Joined,
    Joining,
)
from riverlog.coordinator.groups.classic.states import ClassicEvent, State, rule
from riverlog.coordinator.runtime.effects import CancelTimer, Effects, Reply, SetTimer, Token, reply
from riverlog.coordinator.runtime.rules import AnswerWith, Goto, Ignore, Impossible, Tell
from riverlog.model.errors import ErrorCode

NEWCOMER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""A new member cannot send heartbeats; if it gave up, it should not hold the others up for ever."""


class JoinRules(NamedTuple):
    initial_delay_ms: int = 3_000
    members_max: int = 2**31 - 1


def decide_join(
    group: ClassicGroup, token: Token[Joined], request: Joining, rules: JoinRules, now_ms: int
) -> Effects:
    """Answers at once, or when the rebalance that it leads to has a generation."""
    if not _has_room(group, request.member_id, rules):
        # A member of before that comes too late has lost its place; it is no longer waited for.
        answer = reply(token, Joined("", ErrorCode.GROUP_MAX_SIZE_REACHED))
        if request.member_id not in group.members:
            return answer
        return answer + decide_removal(group, request.member_id) + decide_if_joined(group, now_ms)
    if not group.supports(request.protocol_type, request.protocols):
        return reply(token, Joined(request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if not request.member_id:
        return _decide_newcomer(group, token, request, rules, now_ms)
    if request.member_id in group.pending and request.instance_id is None:
        return _add(group, token, request, request.member_id, rules, now_ms)
    refusal = group.refuse_member(request.member_id, request.instance_id)
    if refusal is not None:
        return reply(token, Joined(request.member_id, refusal))
    return _decide_known(group, token, request, rules, now_ms)


def _has_room(group: ClassicGroup, member_id: str, rules: JoinRules) -> bool:
    match group.state:
        case State.EMPTY | State.DEAD:
            return True
        case State.PREPARING_REBALANCE:
            # The first to join are in: earlier members have no right to come back.
            member = group.members.get(member_id)
            waiting = sum(each.joining is not None for each in group.members.values())
            return waiting < rules.members_max or (member is not None and member.joining is not None)
        case State.COMPLETING_REBALANCE | State.STABLE:
            return member_id in group.members or len(group.members) < rules.members_max
        case _:
            assert_never(group.state)


def _decide_newcomer(
    group: ClassicGroup, token: Token[Joined], request: Joining, rules: JoinRules, now_ms: int
) -> Effects:
    if request.instance_id is None:
        if request.version < ID_REQUIRED_SINCE:
            return _add(group, token, request, request.new_member_id, rules, now_ms)
        group.pending.add(request.new_member_id)
        timer = SetTimer(
            ClassicSessionTimer(group.group_id, request.new_member_id), request.session_timeout_ms
        )
        refusal = Joined(request.new_member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return Effects(replies=(Reply(token, refusal),), timers=(timer,))
    owner = group.instances.get(request.instance_id)
    if owner is None:
        return _add(group, token, request, request.new_member_id, rules, now_ms)
    return _decide_replacement(group, token, request, group.members[owner], rules, now_ms)


def _add(
    group: ClassicGroup,
    token: Token[Joined],
    request: Joining,
    member_id: str,
    rules: JoinRules,
    now_ms: int,
) -> Effects:
    member = member_joining(request, member_id)
    member.is_new = True
    member.joining = token
    if group.state is State.PREPARING_REBALANCE and group.came_from is State.EMPTY:
        group.has_newcomers = True
    group.add(member, request.protocol_type)
    timer = SetTimer(ClassicSessionTimer(group.group_id, member_id), NEWCOMER_TIMEOUT_MS)
    return Effects(timers=(timer,)) + decide_rebalance(
        group, initial_delay_ms=rules.initial_delay_ms, now_ms=now_ms
    )


def _decide_known(
    group: ClassicGroup, token: Token[Joined], request: Joining, rules: JoinRules, now_ms: int
) -> Effects:
    member = group.members[request.member_id]
    if member.protocols != request.protocols:
        event = ClassicEvent.REJOIN_CHANGED
    else:
        event = ClassicEvent.REJOIN_LEADER if group.leader == member.member_id else ClassicEvent.REJOIN_SAME
    match rule(group.state, event):
        case Goto():
            member.take_over(request)
            waiting = wait_for_generation(group, member, token)
            return waiting + decide_rebalance(group, initial_delay_ms=rules.initial_delay_ms, now_ms=now_ms)
        case Tell():
            return reply(token, joined(group, member))
        case AnswerWith(error=error):
            return reply(token, Joined(request.member_id, error))
        case Ignore() | Impossible():
            raise AssertionError(f"a member of a group that is {group.state.value}")


def _decide_replacement(
    group: ClassicGroup,
    token: Token[Joined],
    request: Joining,
    member: Member,
    rules: JoinRules,
    now_ms: int,
) -> Effects:
    """A static member is back under a new id; a client that still uses the old one is fenced (KIP-345)."""
    others = [each.protocols for each in group.members.values() if each is not member]
    is_same = classic_protocols.chosen([*others, request.protocols]) == group.protocol
    next_state = rule(group.state, ClassicEvent.REPLACE_SAME if is_same else ClassicEvent.REPLACE_CHANGED)
    if next_state == Goto(State.STABLE):
        return _decide_silent_replacement(group, token, request, member)
    assert next_state == Goto(State.PREPARING_REBALANCE)
    old_id = member.member_id
    fenced = Effects(
        replies=refused(member, ErrorCode.FENCED_INSTANCE_ID, old_id),
        timers=(CancelTimer(ClassicSessionTimer(group.group_id, old_id)),),
    )
    group.rename(member, request.new_member_id)
    member.take_over(request)
    member.joining = token
    fenced += Effects(timers=(group.session_timer(member),))
    if group.state is State.PREPARING_REBALANCE:
        return fenced + decide_if_joined(group, now_ms)
    return fenced + decide_rebalance(group, initial_delay_ms=rules.initial_delay_ms, now_ms=now_ms)


def _decide_silent_replacement(
    group: ClassicGroup, token: Token[Joined], request: Joining, member: Member
) -> Effects:
    """No rebalance: the member takes the place, the assignment and, if so, the leadership of its former self.

    It is renamed when the record is replayed. A leader that cannot be told to skip its assignment is not told
    that it leads.
    """
    new_id = request.new_member_id
    old_leader = group.leader
    replacement = member_joining(request, new_id)
    was_leader = member.member_id == group.leader
    leader = new_id if was_leader else old_leader
    members = tuple(
        (replacement if each is member else each).stored(group.protocol, each.assignment)
        for each in group.members.values()
    )
    stored = StoredGroup(
        group.generation, group.protocol_type, group.protocol, leader, group.state_since_ms, members
    )
    group.replacement = replacement
    knows_skipping = request.version >= SKIP_ASSIGNMENT_SINCE
    shown = (
        tuple(
            (replacement if each is member else each).shown_to_leader(group.protocol)
            for each in group.members.values()
        )
        if was_leader and knows_skipping
        else ()
    )
    answer = Joined(
        new_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol=group.protocol,
        leader=(leader if knows_skipping else old_leader) or "",
        members=shown,
        is_assigned=was_leader and knows_skipping,
    )
    timers = (
        CancelTimer(ClassicSessionTimer(group.group_id, member.member_id)),
        SetTimer(ClassicSessionTimer(group.group_id, new_id), request.session_timeout_ms),
    )
    return Effects((record_of(group.group_id, stored),), (Reply(token, answer),), timers)
