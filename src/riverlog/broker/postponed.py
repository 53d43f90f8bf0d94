"""Answers that a handler makes later without a task: for waits that are begun and ended all the time.

A handler returns `Postponed`, which tells when it is worth asking whether there is an answer; the dispatcher
turns it into a `Promise` for the connection. Where a task would take three turns of the event loop to wake,
to finish and to be noticed, this takes one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from riverlog.broker.context import Answer
from riverlog.broker.turn import Turn

NOT_YET: Final = object()


class Postponed(ABC):
    """Asked soon after each `ask_soon`, but not within it, until it has made an answer."""

    __slots__ = ("_ask", "_is_asked", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._ask: Callable[[], None] | None = None
        self._is_asked = False

    @abstractmethod
    def make(self) -> Any:
        """The response, the parts of its frame, or `NOT_YET`. Whatever else than the last ends the wait."""

    @abstractmethod
    def drop(self) -> None:
        """There is an answer, or nobody waits for one any more."""

    def begin(self, ask: Callable[[], None]) -> None:
        self._ask = ask

    def ask_soon(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._turn.ask_soon(self._ask_now)

    def _ask_now(self) -> None:
        self._is_asked = False
        if self._ask is not None:
            self._ask()

    def end(self) -> None:
        """No more questions. Can be called again."""
        if self._ask is not None:
            self._ask = None
            self.drop()


class Promise:
    """An answer to come. As a future it has one callback, which is called at once, not a turn later."""

    __slots__ = ("_answer", "_callback", "_is_done", "_postponed")

    def __init__(self, postponed: Postponed) -> None:
        self._postponed = postponed
        self._callback: Callable[[Promise], None] | None = None
        self._answer: Answer = None
        self._is_done = False

    def add_done_callback(self, callback: "Callable[[Promise], None]") -> None:
        assert self._callback is None
        self._callback = callback

    def keep(self, answer: Answer) -> None:
        self._answer = answer
        self._is_done = True
        self._postponed.end()
        if self._callback is not None:
            self._callback(self)

    def cancel(self) -> None:
        self._postponed.end()

    def done(self) -> bool:
        return self._is_done

    def cancelled(self) -> bool:
        return False  # Nobody asks after `cancel`, which is called by the one who would.

    def result(self) -> Answer:
        return self._answer
