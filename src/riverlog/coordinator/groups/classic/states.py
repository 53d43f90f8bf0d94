"""The states of a classic group, and each event whose outcome depends on the state: every pair is listed.

Names of the states are Kafka's. `DEAD` stands for a group that does not exist: not yet, or no more.

Whether a request comes from a member, of this generation and with fitting protocols, is decided before the
table is asked; the table says what it leads to then. Not in the table is what does not depend on it: a new
member always begins a rebalance, and whether a group may be deleted is asked of every kind of group alike.
The group moves from `PREPARING_REBALANCE` on when its members have joined, and from `COMPLETING_REBALANCE`
when its leader has handed in the assignment. Moves to `STABLE` and `EMPTY` happen when their record is
replayed, not before.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from riverlog.coordinator.runtime.rules import (
    DONE,
    IGNORE,
    IMPOSSIBLE,
    TELL,
    AnswerWith,
    Goto,
    Ignore,
    Impossible,
    Tell,
)
from riverlog.model.errors import ErrorCode


class State(Enum):
    """The value is the name that tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicEvent(Enum):
    REJOIN_SAME = "a member joins again with what the group knows of it"
    REJOIN_LEADER = "the leader joins again with what the group knows of it"
    REJOIN_CHANGED = "a member joins again with something new"
    REPLACE_SAME = "a static member comes back under a new id and the chosen protocol stays (KIP-345)"
    REPLACE_CHANGED = "a static member comes back and the chosen protocol would be another"
    SYNC = "a member asks for its assignment"
    SYNC_LEADER = "the leader hands in the assignment"
    HEARTBEAT = "a member lives"
    MEMBER_GONE = "a member has left or was silent for too long, or leaves before it has joined"
    SYNC_TIME_OUT = "members have joined and not asked for their assignment in time"
    COMMIT = "a member commits offsets"
    COMMIT_IN_TRANSACTION = "a member commits offsets in a transaction"
    COMMIT_OUTSIDE = "a client that claims no membership commits offsets"
    COMMIT_OUTSIDE_IN_TRANSACTION = "the same in a transaction, where old clients cannot say who they are"


ClassicRule = Goto[State] | AnswerWith | Tell | Ignore | Impossible

_UNKNOWN: Final = AnswerWith(ErrorCode.UNKNOWN_MEMBER_ID)
_REBALANCING: Final = AnswerWith(ErrorCode.REBALANCE_IN_PROGRESS)
_NOT_FOUND: Final = AnswerWith(ErrorCode.GROUP_ID_NOT_FOUND)

_PREPARING: Final = Goto(State.PREPARING_REBALANCE)
_COMPLETING: Final = Goto(State.COMPLETING_REBALANCE)
_STABLE: Final = Goto(State.STABLE)

TABLE: Final[Mapping[State, Mapping[ClassicEvent, ClassicRule]]] = {
    State.EMPTY: {
        ClassicEvent.REJOIN_SAME: IMPOSSIBLE,
        ClassicEvent.REJOIN_LEADER: IMPOSSIBLE,
        ClassicEvent.REJOIN_CHANGED: IMPOSSIBLE,
        ClassicEvent.REPLACE_SAME: IMPOSSIBLE,
        ClassicEvent.REPLACE_CHANGED: IMPOSSIBLE,
        ClassicEvent.SYNC: IMPOSSIBLE,
        ClassicEvent.SYNC_LEADER: IMPOSSIBLE,
        ClassicEvent.HEARTBEAT: IMPOSSIBLE,
        ClassicEvent.MEMBER_GONE: IGNORE,
        ClassicEvent.SYNC_TIME_OUT: IGNORE,
        ClassicEvent.COMMIT: _UNKNOWN,
        ClassicEvent.COMMIT_IN_TRANSACTION: _UNKNOWN,
        ClassicEvent.COMMIT_OUTSIDE: DONE,
        ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION: DONE,
    },
    State.PREPARING_REBALANCE: {
        ClassicEvent.REJOIN_SAME: _PREPARING,
        ClassicEvent.REJOIN_LEADER: _PREPARING,
        ClassicEvent.REJOIN_CHANGED: _PREPARING,
        ClassicEvent.REPLACE_SAME: _PREPARING,
        ClassicEvent.REPLACE_CHANGED: _PREPARING,
        ClassicEvent.SYNC: _REBALANCING,
        ClassicEvent.SYNC_LEADER: _REBALANCING,
        ClassicEvent.HEARTBEAT: _REBALANCING,
        ClassicEvent.MEMBER_GONE: _PREPARING,
        ClassicEvent.SYNC_TIME_OUT: IGNORE,
        ClassicEvent.COMMIT: DONE,
        ClassicEvent.COMMIT_IN_TRANSACTION: DONE,
        ClassicEvent.COMMIT_OUTSIDE: _UNKNOWN,
        ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION: DONE,
    },
    State.COMPLETING_REBALANCE: {
        ClassicEvent.REJOIN_SAME: TELL,
        ClassicEvent.REJOIN_LEADER: TELL,
        ClassicEvent.REJOIN_CHANGED: _PREPARING,
        ClassicEvent.REPLACE_SAME: _PREPARING,
        ClassicEvent.REPLACE_CHANGED: _PREPARING,
        ClassicEvent.SYNC: _COMPLETING,
        ClassicEvent.SYNC_LEADER: _STABLE,
        ClassicEvent.HEARTBEAT: DONE,
        ClassicEvent.MEMBER_GONE: _PREPARING,
        ClassicEvent.SYNC_TIME_OUT: _PREPARING,
        ClassicEvent.COMMIT: _REBALANCING,
        ClassicEvent.COMMIT_IN_TRANSACTION: DONE,
        ClassicEvent.COMMIT_OUTSIDE: _UNKNOWN,
        ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION: DONE,
    },
    State.STABLE: {
        ClassicEvent.REJOIN_SAME: TELL,
        ClassicEvent.REJOIN_LEADER: _PREPARING,
        ClassicEvent.REJOIN_CHANGED: _PREPARING,
        ClassicEvent.REPLACE_SAME: _STABLE,
        ClassicEvent.REPLACE_CHANGED: _PREPARING,
        ClassicEvent.SYNC: TELL,
        ClassicEvent.SYNC_LEADER: TELL,
        ClassicEvent.HEARTBEAT: DONE,
        ClassicEvent.MEMBER_GONE: _PREPARING,
        ClassicEvent.SYNC_TIME_OUT: _PREPARING,
        ClassicEvent.COMMIT: DONE,
        ClassicEvent.COMMIT_IN_TRANSACTION: DONE,
        ClassicEvent.COMMIT_OUTSIDE: _UNKNOWN,
        ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION: DONE,
    },
    State.DEAD: {
        ClassicEvent.REJOIN_SAME: _UNKNOWN,
        ClassicEvent.REJOIN_LEADER: _UNKNOWN,
        ClassicEvent.REJOIN_CHANGED: _UNKNOWN,
        ClassicEvent.REPLACE_SAME: IMPOSSIBLE,
        ClassicEvent.REPLACE_CHANGED: IMPOSSIBLE,
        ClassicEvent.SYNC: _UNKNOWN,
        ClassicEvent.SYNC_LEADER: _UNKNOWN,
        ClassicEvent.HEARTBEAT: _UNKNOWN,
        ClassicEvent.MEMBER_GONE: _UNKNOWN,
        ClassicEvent.SYNC_TIME_OUT: IGNORE,
        ClassicEvent.COMMIT: _NOT_FOUND,
        ClassicEvent.COMMIT_IN_TRANSACTION: AnswerWith(ErrorCode.ILLEGAL_GENERATION),
        ClassicEvent.COMMIT_OUTSIDE: DONE,
        ClassicEvent.COMMIT_OUTSIDE_IN_TRANSACTION: DONE,
    },
}


def rule(state: State, event: ClassicEvent) -> ClassicRule:
    return TABLE[state][event]
