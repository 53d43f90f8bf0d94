"""A member of a group of the consumer protocol, as an immutable value.

What it subscribes to is one record, where it stands on the way to its target assignment another; both are
parts of this value. Not here: how it gets on (`consumer_reconciliation`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from riverlog.model.ids import TopicId

Epochs = Mapping[TopicId, Mapping[int, int]]
"""Partitions by topic id, each with the epoch in which the member got it."""

NO_PARTITIONS: Final[Epochs] = {}
LEFT_FOR_A_WHILE: Final = -2
"""The epoch of a static member that is away and will come back."""


class MemberState(IntEnum):
    """By the number in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """Has been told to give partitions up and has not confirmed it."""
    UNRELEASED_PARTITIONS = 2
    """Waits for partitions that others still have."""
    UNKNOWN = 127
    """Written by a newer version."""


class ClassicPart(NamedTuple):
    """Of a member that speaks the classic protocol in a group that was upgraded."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Subscribed to by name; in order, without repetition."""
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicPart | None = None

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    revoking: Epochs = field(default_factory=dict)

    @property
    def is_away(self) -> bool:
        return self.epoch == LEFT_FOR_A_WHILE

    def has_same_subscription(self, other: "ConsumerMember") -> bool:
        """Whether the records of their subscriptions would be equal."""
        return _subscription(self) == _subscription(other)

    def has_same_assignment(self, other: "ConsumerMember") -> bool:
        return _assignment(self) == _assignment(other)

    def owns_only(self, claimed: Mapping[TopicId, frozenset[int]]) -> bool:
        """Whether everything that is claimed is assigned to the member."""
        return all(
            indexes <= self.assigned.get(topic, _NONE).keys() for topic, indexes in claimed.items() if indexes
        )


_NONE: Mapping[int, int] = {}


def _subscription(member: ConsumerMember) -> tuple[object, ...]:
    return (
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topics,
        member.regex,
        member.rebalance_timeout_ms,
        member.assignor,
        member.classic,
    )


def _assignment(member: ConsumerMember) -> tuple[object, ...]:
    return (member.epoch, member.previous_epoch, member.state, member.assigned, member.revoking)
