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
from enum import Enum, IntEnum
from typing import Final

from riverlog.coordinator.runtime.rules import (
    DONE,
    IGNORE,
    IMPOSSIBLE,
    AnswerWith,
    Goto,
    Ignore,
    Impossible,
)
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


class TransactionEvent(Enum):
    INIT = "a producer takes the transactional id over, or begins again"
    KEEP = "a producer takes the id over and leaves a prepared transaction open"
    ADD = "partitions are added"
    VERIFY = "a partition's leader asks whether the partition was added"
    COMMIT_1 = "EndTxn commit, version 1"
    ABORT_1 = "EndTxn abort, version 1"
    COMMIT_2 = "EndTxn commit, version 2, in the present epoch"
    ABORT_2 = "EndTxn abort, version 2, in the present epoch"
    COMMIT_AGAIN = "EndTxn commit, version 2, in the epoch before"
    ABORT_AGAIN = "EndTxn abort, version 2, in the epoch before"
    FENCE = "the coordinator aborts for the producer"
    TIME_OUT = "the time of the transaction has run out"
    MARKERS_WRITTEN = "every partition has the marker"
    EXPIRE = "the transactional id was not used for long"


TransactionRule = Goto[TransactionState] | AnswerWith | Ignore | Impossible

_BUSY: Final = AnswerWith(ErrorCode.CONCURRENT_TRANSACTIONS)
_INVALID: Final = AnswerWith(ErrorCode.INVALID_TXN_STATE)
_FENCED: Final = AnswerWith(ErrorCode.PRODUCER_FENCED)
_NOT_ADDED: Final = AnswerWith(ErrorCode.TRANSACTION_ABORTABLE)

_TO_EMPTY: Final = Goto(TransactionState.EMPTY)
_TO_ONGOING: Final = Goto(TransactionState.ONGOING)
_TO_PREPARE_COMMIT: Final = Goto(TransactionState.PREPARE_COMMIT)
_TO_PREPARE_ABORT: Final = Goto(TransactionState.PREPARE_ABORT)
_TO_FENCE: Final = Goto(TransactionState.PREPARE_EPOCH_FENCE)

TABLE: Final[Mapping[TransactionState, Mapping[TransactionEvent, TransactionRule]]] = {
    TransactionState.EMPTY: {
        TransactionEvent.INIT: _TO_EMPTY,
        TransactionEvent.KEEP: _TO_EMPTY,
        TransactionEvent.ADD: _TO_ONGOING,
        TransactionEvent.VERIFY: _NOT_ADDED,
        TransactionEvent.COMMIT_1: _INVALID,
        TransactionEvent.ABORT_1: _INVALID,
        TransactionEvent.COMMIT_2: _INVALID,
        TransactionEvent.ABORT_2: _TO_PREPARE_ABORT,
        TransactionEvent.COMMIT_AGAIN: _FENCED,
        TransactionEvent.ABORT_AGAIN: _FENCED,
        TransactionEvent.FENCE: IMPOSSIBLE,
        TransactionEvent.TIME_OUT: IGNORE,
        TransactionEvent.MARKERS_WRITTEN: IGNORE,
        TransactionEvent.EXPIRE: Goto(TransactionState.DEAD),
    },
    TransactionState.ONGOING: {
        TransactionEvent.INIT: _TO_FENCE,
        TransactionEvent.KEEP: _TO_ONGOING,
        TransactionEvent.ADD: _TO_ONGOING,
        TransactionEvent.VERIFY: DONE,
        TransactionEvent.COMMIT_1: _TO_PREPARE_COMMIT,
        TransactionEvent.ABORT_1: _TO_PREPARE_ABORT,
        TransactionEvent.COMMIT_2: _TO_PREPARE_COMMIT,
        TransactionEvent.ABORT_2: _TO_PREPARE_ABORT,
        TransactionEvent.COMMIT_AGAIN: _FENCED,
        TransactionEvent.ABORT_AGAIN: _FENCED,
        TransactionEvent.FENCE: IMPOSSIBLE,
        TransactionEvent.TIME_OUT: _TO_FENCE,
        TransactionEvent.MARKERS_WRITTEN: IGNORE,
        TransactionEvent.EXPIRE: IGNORE,
    },
    TransactionState.PREPARE_COMMIT: {
        TransactionEvent.INIT: _BUSY,
        TransactionEvent.KEEP: _BUSY,
        TransactionEvent.ADD: _BUSY,
        TransactionEvent.VERIFY: _BUSY,
        TransactionEvent.COMMIT_1: _BUSY,
        TransactionEvent.ABORT_1: _INVALID,
        TransactionEvent.COMMIT_2: _FENCED,
        TransactionEvent.ABORT_2: _FENCED,
        TransactionEvent.COMMIT_AGAIN: _BUSY,
        TransactionEvent.ABORT_AGAIN: _INVALID,
        TransactionEvent.FENCE: IMPOSSIBLE,
        TransactionEvent.TIME_OUT: IGNORE,
        TransactionEvent.MARKERS_WRITTEN: Goto(TransactionState.COMPLETE_COMMIT),
        TransactionEvent.EXPIRE: IGNORE,
    },
    TransactionState.PREPARE_ABORT: {
        TransactionEvent.INIT: _BUSY,
        TransactionEvent.KEEP: _BUSY,
        TransactionEvent.ADD: _BUSY,
        TransactionEvent.VERIFY: _BUSY,
        TransactionEvent.COMMIT_1: _INVALID,
        TransactionEvent.ABORT_1: _BUSY,
        TransactionEvent.COMMIT_2: _FENCED,
        TransactionEvent.ABORT_2: _FENCED,
        TransactionEvent.COMMIT_AGAIN: _INVALID,
        TransactionEvent.ABORT_AGAIN: _BUSY,
        TransactionEvent.FENCE: IMPOSSIBLE,
        TransactionEvent.TIME_OUT: IGNORE,
        TransactionEvent.MARKERS_WRITTEN: Goto(TransactionState.COMPLETE_ABORT),
        TransactionEvent.EXPIRE: IGNORE,
    },
    TransactionState.COMPLETE_COMMIT: {
        TransactionEvent.INIT: _TO_EMPTY,
        TransactionEvent.KEEP: _TO_EMPTY,
        TransactionEvent.ADD: _TO_ONGOING,
        TransactionEvent.VERIFY: _NOT_ADDED,
        TransactionEvent.COMMIT_1: DONE,
        TransactionEvent.ABORT_1: _INVALID,
        TransactionEvent.COMMIT_2: _INVALID,
        TransactionEvent.ABORT_2: _TO_PREPARE_ABORT,
        TransactionEvent.COMMIT_AGAIN: DONE,
        TransactionEvent.ABORT_AGAIN: _INVALID,
        TransactionEvent.FENCE: IMPOSSIBLE,
        TransactionEvent.TIME_OUT: IGNORE,
        TransactionEvent.MARKERS_WRITTEN: IGNORE,
        TransactionEvent.EXPIRE: Goto(TransactionState.DEAD),
    },
    TransactionState.COMPLETE_ABORT: {
        TransactionEvent.INIT: _TO_EMPTY,
        TransactionEvent.KEEP: _TO_EMPTY,
        TransactionEvent.ADD: _TO_ONGOING,
        TransactionEvent.VERIFY: _NOT_ADDED,
        TransactionEvent.COMMIT_1: _INVALID,
        TransactionEvent.ABORT_1: DONE,
        TransactionEvent.COMMIT_2: _INVALID,
        TransactionEvent.ABORT_2: _TO_PREPARE_ABORT,
        TransactionEvent.COMMIT_AGAIN: _INVALID,
        TransactionEvent.ABORT_AGAIN: DONE,
        TransactionEvent.FENCE: IMPOSSIBLE,
        TransactionEvent.TIME_OUT: IGNORE,
        TransactionEvent.MARKERS_WRITTEN: IGNORE,
        TransactionEvent.EXPIRE: Goto(TransactionState.DEAD),
    },
    TransactionState.PREPARE_EPOCH_FENCE: {
        **dict.fromkeys(TransactionEvent, IMPOSSIBLE),
        TransactionEvent.FENCE: _TO_PREPARE_ABORT,
    },
    TransactionState.DEAD: dict.fromkeys(TransactionEvent, IMPOSSIBLE),
}


def rule(state: TransactionState, event: TransactionEvent) -> TransactionRule:
    return TABLE[state][event]
