"""What an error code in a reply asks of the client, and how long it waits before the next try.

Which codes are retriable and which say that a broker was the wrong one is Kafka's classification, in
`riverlog.model.errors`. The one difference: Kafka's clients wait for a topic that is not there, in case it
is being created. Here a missing topic is an answer, unless the caller says that it is waiting for one.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from riverlog.model.errors import ErrorCode


class Verdict(Enum):
    DONE = "the broker has done it"
    RETRY = "the same broker may do it later"
    REFRESH = "another broker may do it: look up which, then try again"
    GIVE_UP = "no later try changes this"


_MISSING_TOPIC: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)
_SAME_AGAIN: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.ELECTION_NOT_NEEDED})
"""Retriable by Kafka's classification; but damaged records stay damaged, and what is not needed is done."""


def verdict_on(code: int, *, wait_for_topic: bool = False) -> Verdict:
    if not code:
        return Verdict.DONE
    error = ErrorCode.of(code)
    if error in _SAME_AGAIN or (error in _MISSING_TOPIC and not wait_for_topic):
        return Verdict.GIVE_UP
    if error.invalidates_metadata:
        return Verdict.REFRESH
    return Verdict.RETRY if error.is_retriable else Verdict.GIVE_UP


def may_change(code: int) -> bool:
    """Whether a later try may have another answer."""
    return verdict_on(code) in (Verdict.RETRY, Verdict.REFRESH)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double, with some chance in them so that many clients do not come back at once."""

    first_s: float = 0.02
    longest_s: float = 1.0
    spread: float = 0.2

    def pause_s(self, retries: int, chance: float) -> float:
        """After so many retries; `chance` is between 0 and 1."""
        # The exponent is bounded because the float would overflow long before the count does.
        pause_s = min(self.first_s * (1 << min(retries, 32)), self.longest_s)
        return pause_s * (1 + self.spread * (2 * chance - 1))


BACKOFF: Final = Backoff()


class Retries:
    """The tries of one request until a deadline."""

    def __init__(self, deadline_s: float, backoff: Backoff = BACKOFF) -> None:
        self._deadline_s = deadline_s
        self._backoff = backoff
        self._count = 0

    def next_pause_s(self, now_s: float, chance: float) -> float | None:
        """How long to wait before the next try; None when that would miss the deadline."""
        pause_s = self._backoff.pause_s(self._count, chance)
        if now_s + pause_s > self._deadline_s:
            return None
        self._count += 1
        return pause_s
