"""Replies that a handler makes later without a task: for waits that begin and end all the time.

A handler returns a `DelayedReply`, which says when it is worth asking whether there is a reply; the
dispatcher turns it into a `PendingReply` for the connection. Where a task would take three turns of the event
loop to wake, to finish and to be noticed, this takes one.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from riverlog.broker.exchange.context import Answer
from riverlog.broker.exchange.turn import LoopTurn

NOT_YET: Final = object()


class DelayedReply(ABC):
    """Polled soon after each `poll_soon`, but not within it, until it has made an answer."""

    __slots__ = ("_is_due", "_poll", "_turn")

    def __init__(self, turn: LoopTurn) -> None:
        self._turn = turn
        self._poll: Callable[[], None] | None = None
        self._is_due = False

    @abstractmethod
    def make(self) -> Any:
        """The response, the parts of its frame, or `NOT_YET`, which is the one that does not end the wait."""

    @abstractmethod
    def drop(self) -> None:
        """There is an answer, or none is waited for any more."""

    def begin(self, poll: Callable[[], None]) -> None:
        self._poll = poll

    def poll_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._turn.poll_soon(self._poll_now)

    def _poll_now(self) -> None:
        self._is_due = False
        if self._poll is not None:
            self._poll()

    def end(self) -> None:
        """Polled no more. Can be called again."""
        if self._poll is not None:
            self._poll = None
            self.drop()

    async def answer(self) -> Any:
        """Wait for what it makes, for those who have a task anyway; instead of `begin`."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        made: Any = NOT_YET

        def ask() -> None:
            if not answered.done():
                answered.set_result(None)

        self.begin(ask)
        try:
            while made is NOT_YET:
                await answered
                answered = asyncio.get_running_loop().create_future()
                made = self.make()
        finally:
            self.end()
        return made


class PendingReply:
    """An answer to come. As a future it has one callback, which is called at once, not a turn later."""

    __slots__ = ("_answer", "_callback", "_delayed", "_is_done")

    def __init__(self, delayed: DelayedReply) -> None:
        self._delayed = delayed
        self._callback: Callable[[PendingReply], None] | None = None
        self._answer: Answer = None
        self._is_done = False

    def add_done_callback(self, callback: "Callable[[PendingReply], None]") -> None:
        assert self._callback is None
        self._callback = callback

    def keep(self, answer: Answer) -> None:
        self._answer = answer
        self._is_done = True
        self._delayed.end()
        if self._callback is not None:
            self._callback(self)

    def cancel(self) -> None:
        self._delayed.end()

    def done(self) -> bool:
        return self._is_done

    def cancelled(self) -> bool:
        return False  # Not asked after `cancel`: the connection that cancels is the one that would ask.

    def result(self) -> Answer:
        return self._answer
