"""The states of a transaction and everything that can happen to it: one table, every pair listed.

Names and numbers of the states are Kafka's and stand in the log. `PREPARE_EPOCH_FENCE` is passed through,
never written: fencing a producer and aborting its transaction is one decision here. `DEAD` is what an
expired transactional id becomes when its tombstone is written.

Whether a request comes from the right producer is decided before the table is asked; the table says what it
may do then. The rules for ending a transaction come in two sets: with version 1 a repeated EndTxn cannot be
told from a new one, so it is answered as a repetition; since version 2 (KIP-890) each end raises the epoch,
so that a repetition is known by its epoch, and a new abort of nothing at all is welcome because it raises
the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode


class TransactionState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        """As tools spell it."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """The end is decided, and not yet written in every partition."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class Event(Enum):
    INIT = "a producer takes the transactional id over, or begins anew"
    KEEP = "a producer takes the id over and leaves a prepared transaction open"
    ADD = "partitions are added"
    VERIFY = "a partition's leader asks whether the partition was added"
    COMMIT_1 = "EndTxn commit, version 1"
    ABORT_1 = "EndTxn abort, version 1"
    COMMIT_2 = "EndTxn commit, version 2, in the present epoch"
    ABORT_2 = "EndTxn abort, version 2, in the present epoch"
    COMMIT_AGAIN = "EndTxn commit, version 2, in the epoch before"
    ABORT_AGAIN = "EndTxn abort, version 2, in the epoch before"
    FENCE = "the coordinator aborts in the producer's stead"
    TIME_OUT = "the time of the transaction has run out"
    MARKERS_WRITTEN = "every partition has the marker"
    EXPIRE = "the transactional id was not used for long"


class Goto(NamedTuple):
    """The transaction moves on to, or stays in, this state."""

    state: TransactionState


class Answer(NamedTuple):
    """Nothing changes; the request is answered with this code."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Ignore:
    """The event does not concern a transaction in this state."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """Nothing that happens leads here; it would be a bug."""


Rule = Goto | Answer | Ignore | Impossible

_DONE: Final = Answer(ErrorCode.NONE)
_BUSY: Final = Answer(ErrorCode.CONCURRENT_TRANSACTIONS)
_INVALID: Final = Answer(ErrorCode.INVALID_TXN_STATE)
_FENCED: Final = Answer(ErrorCode.PRODUCER_FENCED)
_NOT_ADDED: Final = Answer(ErrorCode.TRANSACTION_ABORTABLE)
_IGNORE: Final = Ignore()
_IMPOSSIBLE: Final = Impossible()

_TO_EMPTY: Final = Goto(TransactionState.EMPTY)
_TO_ONGOING: Final = Goto(TransactionState.ONGOING)
_TO_PREPARE_COMMIT: Final = Goto(TransactionState.PREPARE_COMMIT)
_TO_PREPARE_ABORT: Final = Goto(TransactionState.PREPARE_ABORT)
_TO_FENCE: Final = Goto(TransactionState.PREPARE_EPOCH_FENCE)

TABLE: Final[Mapping[TransactionState, Mapping[Event, Rule]]] = {
    TransactionState.EMPTY: {
        Event.INIT: _TO_EMPTY,
        Event.KEEP: _TO_EMPTY,
        Event.ADD: _TO_ONGOING,
        Event.VERIFY: _NOT_ADDED,
        Event.COMMIT_1: _INVALID,
        Event.ABORT_1: _INVALID,
        Event.COMMIT_2: _INVALID,
        Event.ABORT_2: _TO_PREPARE_ABORT,
        Event.COMMIT_AGAIN: _FENCED,
        Event.ABORT_AGAIN: _FENCED,
        Event.FENCE: _IMPOSSIBLE,
        Event.TIME_OUT: _IGNORE,
        Event.MARKERS_WRITTEN: _IGNORE,
        Event.EXPIRE: Goto(TransactionState.DEAD),
    },
    TransactionState.ONGOING: {
        Event.INIT: _TO_FENCE,
        Event.KEEP: _TO_ONGOING,
        Event.ADD: _TO_ONGOING,
        Event.VERIFY: _DONE,
        Event.COMMIT_1: _TO_PREPARE_COMMIT,
        Event.ABORT_1: _TO_PREPARE_ABORT,
        Event.COMMIT_2: _TO_PREPARE_COMMIT,
        Event.ABORT_2: _TO_PREPARE_ABORT,
        Event.COMMIT_AGAIN: _FENCED,
        Event.ABORT_AGAIN: _FENCED,
        Event.FENCE: _IMPOSSIBLE,
        Event.TIME_OUT: _TO_FENCE,
        Event.MARKERS_WRITTEN: _IGNORE,
        Event.EXPIRE: _IGNORE,
    },
    TransactionState.PREPARE_COMMIT: {
        Event.INIT: _BUSY,
        Event.KEEP: _BUSY,
        Event.ADD: _BUSY,
        Event.VERIFY: _BUSY,
        Event.COMMIT_1: _BUSY,
        Event.ABORT_1: _INVALID,
        Event.COMMIT_2: _FENCED,
        Event.ABORT_2: _FENCED,
        Event.COMMIT_AGAIN: _BUSY,
        Event.ABORT_AGAIN: _INVALID,
        Event.FENCE: _IMPOSSIBLE,
        Event.TIME_OUT: _IGNORE,
        Event.MARKERS_WRITTEN: Goto(TransactionState.COMPLETE_COMMIT),
        Event.EXPIRE: _IGNORE,
    },
    TransactionState.PREPARE_ABORT: {
        Event.INIT: _BUSY,
        Event.KEEP: _BUSY,
        Event.ADD: _BUSY,
        Event.VERIFY: _BUSY,
        Event.COMMIT_1: _INVALID,
        Event.ABORT_1: _BUSY,
        Event.COMMIT_2: _FENCED,
        Event.ABORT_2: _FENCED,
        Event.COMMIT_AGAIN: _INVALID,
        Event.ABORT_AGAIN: _BUSY,
        Event.FENCE: _IMPOSSIBLE,
        Event.TIME_OUT: _IGNORE,
        Event.MARKERS_WRITTEN: Goto(TransactionState.COMPLETE_ABORT),
        Event.EXPIRE: _IGNORE,
    },
    TransactionState.COMPLETE_COMMIT: {
        Event.INIT: _TO_EMPTY,
        Event.KEEP: _TO_EMPTY,
        Event.ADD: _TO_ONGOING,
        Event.VERIFY: _NOT_ADDED,
        Event.COMMIT_1: _DONE,
        Event.ABORT_1: _INVALID,
        Event.COMMIT_2: _INVALID,
        Event.ABORT_2: _TO_PREPARE_ABORT,
        Event.COMMIT_AGAIN: _DONE,
        Event.ABORT_AGAIN: _INVALID,
        Event.FENCE: _IMPOSSIBLE,
        Event.TIME_OUT: _IGNORE,
        Event.MARKERS_WRITTEN: _IGNORE,
        Event.EXPIRE: Goto(TransactionState.DEAD),
    },
    TransactionState.COMPLETE_ABORT: {
        Event.INIT: _TO_EMPTY,
        Event.KEEP: _TO_EMPTY,
        Event.ADD: _TO_ONGOING,
        Event.VERIFY: _NOT_ADDED,
        Event.COMMIT_1: _INVALID,
        Event.ABORT_1: _DONE,
        Event.COMMIT_2: _INVALID,
        Event.ABORT_2: _TO_PREPARE_ABORT,
        Event.COMMIT_AGAIN: _INVALID,
        Event.ABORT_AGAIN: _DONE,
        Event.FENCE: _IMPOSSIBLE,
        Event.TIME_OUT: _IGNORE,
        Event.MARKERS_WRITTEN: _IGNORE,
        Event.EXPIRE: Goto(TransactionState.DEAD),
    },
    TransactionState.PREPARE_EPOCH_FENCE: {
        **dict.fromkeys(Event, _IMPOSSIBLE),
        Event.FENCE: _TO_PREPARE_ABORT,
    },
    TransactionState.DEAD: dict.fromkeys(Event, _IMPOSSIBLE),
}


def rule(state: TransactionState, event: Event) -> Rule:
    return TABLE[state][event]
