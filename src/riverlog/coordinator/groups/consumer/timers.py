"""The timers of a group of the consumer protocol, and when they are set."""

from dataclasses import dataclass
from typing import Final

from riverlog.coordinator.groups.consumer.group import ConsumerGroup
from riverlog.coordinator.groups.consumer.member import ConsumerMember, MemberState
from riverlog.coordinator.runtime.effects import CancelTimer, SetTimer

_RESOLVE_INTERVAL_MS: Final = 1_000
"""The expressions of a group are not looked at more often."""


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """The member has not been heard of for too long."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RevocationTimer:
    """The member has taken too long to give partitions up."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RejoinTimer:
    """A member of the classic protocol was told to join again and has not."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class SyncTimer:
    """A member of the classic protocol has joined and not asked for its assignment."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexTimer:
    """Time to look which topics the members' expressions match."""

    group_id: str


def timers_of(group_id: str, member: ConsumerMember, session_timeout_ms: int) -> tuple[SetTimer, ...]:
    """For a member that has just been heard of; one of the classic protocol says its own time-out."""
    if member.classic is not None:
        session_timeout_ms = member.classic.session_timeout_ms
    session = SetTimer(SessionTimer(group_id, member.member_id), session_timeout_ms)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        return (session,)
    return session, SetTimer(RevocationTimer(group_id, member.member_id), member.rebalance_timeout_ms)


def timers_after(
    group_id: str, before: ConsumerMember, after: ConsumerMember, session_timeout_ms: int
) -> tuple[SetTimer | CancelTimer, ...]:
    """What the step of a member makes of its timers: who still has to give up gets no more time."""
    session, *revocation = timers_of(group_id, after, session_timeout_ms)
    if after.has_same_assignment(before):
        return (session,)
    return session, *(revocation or (CancelTimer(RevocationTimer(group_id, after.member_id)),))


def no_timers(group_id: str, member_id: str) -> tuple[CancelTimer, ...]:
    return tuple(
        CancelTimer(kind(group_id, member_id))
        for kind in (SessionTimer, RevocationTimer, RejoinTimer, SyncTimer)
    )


def regex_timer(group: ConsumerGroup, now_ms: int) -> tuple[SetTimer, ...]:
    if not group.wanted_regexes():
        return ()
    latest_ms = max((each.resolved_ms for each in group.regexes.values()), default=0)
    return (SetTimer(RegexTimer(group.group_id), max(0, latest_ms + _RESOLVE_INTERVAL_MS - now_ms)),)
