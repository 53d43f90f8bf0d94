"""What a client did or saw. The events of one client are given in its own order; clients may interleave.

A value is sent at most once in a whole history, whoever sends it. An outcome is `UNKNOWN` when the client
cannot tell whether the write took place: a time-out, a lost connection, the client's own end.
"""

from enum import Enum
from typing import NamedTuple


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Place(NamedTuple):
    topic: str
    partition: int


class Sent(NamedTuple):
    """A record handed to a producer, in the order of the calls. The offset is known when it was told."""

    client: str
    place: Place
    value: str
    outcome: Outcome
    offset: int | None = None
    transaction: str | None = None


class Ended(NamedTuple):
    """How a transaction ended: `OK` committed, `FAILED` aborted. One that has no such event is unknown."""

    client: str
    transaction: str
    outcome: Outcome


class Positioned(NamedTuple):
    """A consumer got or chose a new position; what it reads next need not follow what it read before."""

    client: str
    place: Place


class Read(NamedTuple):
    """A record that a consumer was given. All readers of a history that has transactions are
    `read_committed`."""

    client: str
    place: Place
    offset: int
    value: str


class Committed(NamedTuple):
    """An offset commit of a group, from the call to its return, by one clock for all clients."""

    client: str
    group: str
    place: Place
    offset: int
    outcome: Outcome
    began_ns: int
    ended_ns: int


class FoundCommitted(NamedTuple):
    """The committed offset that a client was told; None when there was none."""

    client: str
    group: str
    place: Place
    offset: int | None
    began_ns: int
    ended_ns: int


Event = Sent | Ended | Positioned | Read | Committed | FoundCommitted
