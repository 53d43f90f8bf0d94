"""What a decision of a shard amounts to, as values that a test can compare.

A decision reads the shard and returns `Effects`; it may change the shard's soft state (who waits, who was
heard of), never what replay rebuilds. The runtime carries the effects out in this order: append the records
as one batch, replay them, set the timers; and, once the records are committed, release the replies, ask the
shard for what follows, and hand its orders to the coordinator.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch

R = TypeVar("R")

TimerKey = Hashable
"""Names a timer within its shard, usually a frozen dataclass; the shard's `on_timer` gets it back."""


class CoordinatorRecord(NamedTuple):
    """A record of an internal topic, encoded. A value of None is a tombstone."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Token(Generic[R]):
    """Stands for one request that waits for a reply of type `R`; given out by the runtime."""

    number: int


class Reply(NamedTuple):
    """The answer to a waiting request; `answer` is of the token's type, or the error instead of it."""

    token: Token[Any]
    answer: Any


class SetTimer(NamedTuple):
    """Call the shard's `on_timer` with the key after so long; replaces a timer of the same key."""

    key: TimerKey
    delay_ms: int


class CancelTimer(NamedTuple):
    """A timer that is not set is no error."""

    key: TimerKey


FollowUp = Hashable
"""Names a further decision, usually a frozen dataclass; the shard's `on_committed` gets it back."""

Order = Hashable
"""What is to be done outside of the shard, such as writing markers; the coordinator knows how."""


@dataclass(frozen=True, slots=True)
class Effects:
    records: tuple[CoordinatorRecord, ...] = ()
    replies: tuple[Reply, ...] = ()
    timers: tuple[SetTimer | CancelTimer, ...] = ()
    producer: ProducerIdAndEpoch | None = None
    """The records belong to this producer's transaction and count only when it commits."""
    is_atomic: bool = True
    """All records stand in one batch, or none is written. Otherwise they may be cut into several."""
    follow_ups: tuple[FollowUp, ...] = ()
    """Further decisions, taken when the records are committed, or when they could not be written."""
    orders: tuple[Order, ...] = ()
    """Given when the records are committed; forgotten when they could not be written."""

    def __add__(self, other: "Effects") -> "Effects":
        """Both, as one decision. Only one of the two may have a producer."""
        assert self.producer is None or other.producer is None
        return Effects(
            self.records + other.records,
            self.replies + other.replies,
            self.timers + other.timers,
            self.producer or other.producer,
            self.is_atomic and other.is_atomic,
            self.follow_ups + other.follow_ups,
            self.orders + other.orders,
        )


NOTHING = Effects()


def reply(token: Token[R], answer: R | ErrorCode, *records: CoordinatorRecord) -> Effects:
    """Answer one request, after these records are committed."""
    return Effects(records=records, replies=(Reply(token, answer),))
