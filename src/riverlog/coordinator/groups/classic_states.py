"""The states of a classic group and everything that can happen to it: one table, every pair listed.

Names of the states are Kafka's. `DEAD` stands for a group that is not there: never yet, or no more.

Whether a request comes from a member, of this generation and with fitting protocols, is decided before the
table is asked; the table says what it leads to then. The group moves from `PREPARING_REBALANCE` on when its
members have joined, and from `COMPLETING_REBALANCE` when its leader has handed in the assignment. Moves to
`STABLE` and `EMPTY` happen when their record is replayed, not before.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from riverlog.model.errors import ErrorCode


class State(Enum):
    """The value is the name that tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    CREATE = "somebody without a member id asks to join"
    ASK_ID = "a new member asks for its id (KIP-394)"
    JOIN = "a new member joins"
    REJOIN_SAME = "a member joins again with what the group knows of it"
    REJOIN_LEADER = "the leader joins again with what the group knows of it"
    REJOIN_CHANGED = "a member joins again with something new"
    REPLACE_SAME = "a static member comes back under a new id and the chosen protocol stays (KIP-345)"
    REPLACE_CHANGED = "a static member comes back and the chosen protocol would be another"
    SYNC = "a member asks for its assignment"
    SYNC_LEADER = "the leader hands in the assignment"
    HEARTBEAT = "a member lives"
    MEMBER_GONE = "a member has left or was not heard of for too long"
    PENDING_GONE = "a member that got an id did not come back with it"
    ALL_JOINED = "every member has joined, or those who have not are out of time"
    NOBODY_LEFT = "there is no member any more to wait for"
    SYNC_TIME_OUT = "members have joined and not asked for their assignment in time"
    COMMIT = "a member commits offsets"
    COMMIT_IN_TRANSACTION = "a member commits offsets in a transaction"
    COMMIT_OUTSIDE = "somebody who claims no membership commits offsets"
    COMMIT_OUTSIDE_IN_TRANSACTION = "the same in a transaction, where old clients cannot say who they are"
    DELETE = "an administrator deletes the group"
    EXPIRE = "the last offset of the group has expired"


class Goto(NamedTuple):
    """The group moves on to, or stays in, this state; a request that cannot be answered yet waits."""

    state: State


class Answer(NamedTuple):
    """The state stays; the request is answered with this code."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Tell:
    """The state stays; the request is answered with what the group has: its generation, an assignment."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The event does not concern a group in this state."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """Nothing that happens leads here; it would be a bug."""


Rule = Goto | Answer | Tell | Ignore | Impossible

_DONE: Final = Answer(ErrorCode.NONE)
_ID_REQUIRED: Final = Answer(ErrorCode.MEMBER_ID_REQUIRED)
_UNKNOWN: Final = Answer(ErrorCode.UNKNOWN_MEMBER_ID)
_REBALANCING: Final = Answer(ErrorCode.REBALANCE_IN_PROGRESS)
_NOT_EMPTY: Final = Answer(ErrorCode.NON_EMPTY_GROUP)
_NOT_FOUND: Final = Answer(ErrorCode.GROUP_ID_NOT_FOUND)
_TELL: Final = Tell()
_IGNORE: Final = Ignore()
_IMPOSSIBLE: Final = Impossible()

_EMPTY: Final = Goto(State.EMPTY)
_PREPARING: Final = Goto(State.PREPARING_REBALANCE)
_COMPLETING: Final = Goto(State.COMPLETING_REBALANCE)
_STABLE: Final = Goto(State.STABLE)
_DEAD: Final = Goto(State.DEAD)

TABLE: Final[Mapping[State, Mapping[Event, Rule]]] = {
    State.EMPTY: {
        Event.CREATE: _IMPOSSIBLE,
        Event.ASK_ID: _ID_REQUIRED,
        Event.JOIN: _PREPARING,
        Event.REJOIN_SAME: _IMPOSSIBLE,
        Event.REJOIN_LEADER: _IMPOSSIBLE,
        Event.REJOIN_CHANGED: _IMPOSSIBLE,
        Event.REPLACE_SAME: _IMPOSSIBLE,
        Event.REPLACE_CHANGED: _IMPOSSIBLE,
        Event.SYNC: _IMPOSSIBLE,
        Event.SYNC_LEADER: _IMPOSSIBLE,
        Event.HEARTBEAT: _IMPOSSIBLE,
        Event.MEMBER_GONE: _IMPOSSIBLE,
        Event.PENDING_GONE: _IGNORE,
        Event.ALL_JOINED: _IMPOSSIBLE,
        Event.NOBODY_LEFT: _IMPOSSIBLE,
        Event.SYNC_TIME_OUT: _IGNORE,
        Event.COMMIT: _UNKNOWN,
        Event.COMMIT_IN_TRANSACTION: _UNKNOWN,
        Event.COMMIT_OUTSIDE: _DONE,
        Event.COMMIT_OUTSIDE_IN_TRANSACTION: _DONE,
        Event.DELETE: _DEAD,
        Event.EXPIRE: _DEAD,
    },
    State.PREPARING_REBALANCE: {
        Event.CREATE: _IMPOSSIBLE,
        Event.ASK_ID: _ID_REQUIRED,
        Event.JOIN: _PREPARING,
        Event.REJOIN_SAME: _PREPARING,
        Event.REJOIN_LEADER: _PREPARING,
        Event.REJOIN_CHANGED: _PREPARING,
        Event.REPLACE_SAME: _PREPARING,
        Event.REPLACE_CHANGED: _PREPARING,
        Event.SYNC: _REBALANCING,
        Event.SYNC_LEADER: _REBALANCING,
        Event.HEARTBEAT: _REBALANCING,
        Event.MEMBER_GONE: _PREPARING,
        Event.PENDING_GONE: _PREPARING,
        Event.ALL_JOINED: _COMPLETING,
        Event.NOBODY_LEFT: _EMPTY,
        Event.SYNC_TIME_OUT: _IGNORE,
        Event.COMMIT: _DONE,
        Event.COMMIT_IN_TRANSACTION: _DONE,
        Event.COMMIT_OUTSIDE: _UNKNOWN,
        Event.COMMIT_OUTSIDE_IN_TRANSACTION: _DONE,
        Event.DELETE: _NOT_EMPTY,
        Event.EXPIRE: _IGNORE,
    },
    State.COMPLETING_REBALANCE: {
        Event.CREATE: _IMPOSSIBLE,
        Event.ASK_ID: _ID_REQUIRED,
        Event.JOIN: _PREPARING,
        Event.REJOIN_SAME: _TELL,
        Event.REJOIN_LEADER: _TELL,
        Event.REJOIN_CHANGED: _PREPARING,
        Event.REPLACE_SAME: _PREPARING,
        Event.REPLACE_CHANGED: _PREPARING,
        Event.SYNC: _COMPLETING,
        Event.SYNC_LEADER: _STABLE,
        Event.HEARTBEAT: _DONE,
        Event.MEMBER_GONE: _PREPARING,
        Event.PENDING_GONE: _IGNORE,
        Event.ALL_JOINED: _IGNORE,
        Event.NOBODY_LEFT: _IMPOSSIBLE,
        Event.SYNC_TIME_OUT: _PREPARING,
        Event.COMMIT: _REBALANCING,
        Event.COMMIT_IN_TRANSACTION: _DONE,
        Event.COMMIT_OUTSIDE: _UNKNOWN,
        Event.COMMIT_OUTSIDE_IN_TRANSACTION: _DONE,
        Event.DELETE: _NOT_EMPTY,
        Event.EXPIRE: _IGNORE,
    },
    State.STABLE: {
        Event.CREATE: _IMPOSSIBLE,
        Event.ASK_ID: _ID_REQUIRED,
        Event.JOIN: _PREPARING,
        Event.REJOIN_SAME: _TELL,
        Event.REJOIN_LEADER: _PREPARING,
        Event.REJOIN_CHANGED: _PREPARING,
        Event.REPLACE_SAME: _STABLE,
        Event.REPLACE_CHANGED: _PREPARING,
        Event.SYNC: _TELL,
        Event.SYNC_LEADER: _TELL,
        Event.HEARTBEAT: _DONE,
        Event.MEMBER_GONE: _PREPARING,
        Event.PENDING_GONE: _IGNORE,
        Event.ALL_JOINED: _IGNORE,
        Event.NOBODY_LEFT: _IMPOSSIBLE,
        Event.SYNC_TIME_OUT: _PREPARING,
        Event.COMMIT: _DONE,
        Event.COMMIT_IN_TRANSACTION: _DONE,
        Event.COMMIT_OUTSIDE: _UNKNOWN,
        Event.COMMIT_OUTSIDE_IN_TRANSACTION: _DONE,
        Event.DELETE: _NOT_EMPTY,
        Event.EXPIRE: _IGNORE,
    },
    State.DEAD: {
        Event.CREATE: _EMPTY,
        Event.ASK_ID: _IMPOSSIBLE,
        Event.JOIN: _IMPOSSIBLE,
        Event.REJOIN_SAME: _UNKNOWN,
        Event.REJOIN_LEADER: _UNKNOWN,
        Event.REJOIN_CHANGED: _UNKNOWN,
        Event.REPLACE_SAME: _IMPOSSIBLE,
        Event.REPLACE_CHANGED: _IMPOSSIBLE,
        Event.SYNC: _UNKNOWN,
        Event.SYNC_LEADER: _UNKNOWN,
        Event.HEARTBEAT: _UNKNOWN,
        Event.MEMBER_GONE: _UNKNOWN,
        Event.PENDING_GONE: _IGNORE,
        Event.ALL_JOINED: _IGNORE,
        Event.NOBODY_LEFT: _IGNORE,
        Event.SYNC_TIME_OUT: _IGNORE,
        Event.COMMIT: _NOT_FOUND,
        Event.COMMIT_IN_TRANSACTION: Answer(ErrorCode.ILLEGAL_GENERATION),
        Event.COMMIT_OUTSIDE: _DONE,
        Event.COMMIT_OUTSIDE_IN_TRANSACTION: _DONE,
        Event.DELETE: _NOT_FOUND,
        Event.EXPIRE: _IGNORE,
    },
}


def rule(state: State, event: Event) -> Rule:
    return TABLE[state][event]
