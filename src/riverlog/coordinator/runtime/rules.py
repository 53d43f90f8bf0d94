"""The words of the tables that say what an event leads to in a state: one table for each kind of state."""

from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from riverlog.model.errors import ErrorCode

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Goto(Generic[S]):
    """Move on to, or stay in, this state; a request that cannot be answered yet waits."""

    state: S


class AnswerWith(NamedTuple):
    """The state stays; the request is answered with this code."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Tell:
    """The state stays; the request is answered with what is known."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The event does not concern anything in this state."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """Nothing that happens leads here; it would be a bug."""


DONE: Final = AnswerWith(ErrorCode.NONE)
TELL: Final = Tell()
IGNORE: Final = Ignore()
IMPOSSIBLE: Final = Impossible()
