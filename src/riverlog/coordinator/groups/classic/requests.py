"""What clients ask of a classic group, what they are told, and its timers, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode

ID_REQUIRED_SINCE: Final = 4
SKIP_ASSIGNMENT_SINCE: Final = 9
NO_GENERATION: Final = -1


class MemberProtocol(NamedTuple):
    """A way of assigning that a member knows, with what it says to others who use it. Opaque here."""

    name: str
    metadata: bytes


Protocols = tuple[MemberProtocol, ...]
"""In the member's order of preference."""


class Joining(NamedTuple):
    """`member_id` is empty for a new member, which is then given `new_member_id` if it is let in."""

    group_id: str
    member_id: str
    new_member_id: str
    protocol_type: str
    protocols: Protocols
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    version: int = SKIP_ASSIGNMENT_SINCE


class JoinedMember(NamedTuple):
    """What the leader is told of a member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    """For the leader alone."""
    is_assigned: bool = False
    """The leader need not assign again: the group keeps the assignment that it has."""


@dataclass(frozen=True, slots=True)
class Syncing:
    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


class Synced(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class Beat(NamedTuple):
    group_id: str
    member_id: str
    generation: int
    instance_id: str | None = None


class Leaver(NamedTuple):
    """An administrator may name a static member by its instance id alone."""

    member_id: str
    instance_id: str | None = None


Verdicts = tuple[ErrorCode, ...]
"""One for each member who wants to leave, in the same order."""


@dataclass(frozen=True, slots=True)
class ClassicSessionTimer:
    """A member, or a client that was given an id and should come back with it, was silent."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimer:
    """A rebalance has waited long enough for members to join."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ClassicSyncTimer:
    """Members that have joined had long enough to ask for their assignment."""

    group_id: str
