"""Long requests and answers, worked on in pieces by turns: one piece of one of them in each turn of the loop.

A handler whose answer can be long returns `InPieces` where it is: a generator (`riverlog.model.pieces`) that
yields where it can be interrupted. The dispatcher has it run here, and so the decoding of a long request and
the encoding of the answer. What is short is answered at once and knows nothing of this.

However many long answers are in the making, others wait for one piece of one of them. A piece is as long as
its time allows; its steps are bounded as well, for where time stands still while something runs. What is
large takes memory while it is in the making, so only a few of them are begun and the others wait in line.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, NamedTuple, TypeVar

from riverlog.broker.exchange.context import HangUp
from riverlog.model.pieces import Outside, Pieces, at_once

T = TypeVar("T")
R = TypeVar("R")

SHORT_ENTRIES_MAX: Final = 100
"""So many partitions, topics or groups are answered at once: in about a millisecond, or less."""

LARGE_AT_ONCE_MAX: Final = 8

_PIECE_S: Final = 0.001
_STEPS_MAX: Final = 1_000


class InPieces(NamedTuple, Generic[R]):
    """The response in the making."""

    pieces: Pieces[R | HangUp | None]
    is_large: bool = True
    """False where it is done in pieces only because it may have to wait for something."""


def at_once_if_short(pieces: Pieces[R], entries: int) -> R | InPieces[R]:
    """The response to a request of so many entries, or the response in the making."""
    return at_once(pieces) if entries <= SHORT_ENTRIES_MAX else InPieces(pieces)


class Place:
    """Of one large work among the few that are in the making; left while it waits for others."""

    __slots__ = ("_has", "_is_large", "_work")

    def __init__(self, work: "LongWork", *, is_large: bool) -> None:
        self._work = work
        self._is_large = is_large
        self._has = False

    async def take(self) -> None:
        if self._is_large:
            await self._work.take_place()
            self._has = True

    def leave(self) -> None:
        if self._has:
            self._has = False
            self._work.leave_place()

    async def wait_outside(self, until: "asyncio.Future[Any]") -> None:
        self.leave()
        await asyncio.wait((until,))
        await self.take()


class LongWork:
    __slots__ = ("_in_line", "_is_passing", "_now_s", "_places", "_waiting")

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_passing = False
        self._places = LARGE_AT_ONCE_MAX
        self._in_line: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def place(self, *, is_large: bool = True) -> AsyncIterator[Place]:
        """For one large work from its beginning to its end; others have to wait for none."""
        place = Place(self, is_large=is_large)
        await place.take()
        try:
            yield place
        finally:
            place.leave()

    async def take_place(self) -> None:
        if self._places:
            self._places -= 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_line.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():
                self.leave_place()  # It was given and given up in the same moment.
            raise

    def leave_place(self) -> None:
        while self._in_line:
            next_one = self._in_line.popleft()
            if not next_one.done():
                next_one.set_result(None)
                return
        self._places += 1

    async def do(self, pieces: Pieces[T], place: Place | None = None) -> T:
        """Its result. Cancelled, it ends where it is. `place` is that of the work, if it has one."""
        now_s = self._now_s
        try:
            while True:
                await self._turn()
                ends_s = now_s() + _PIECE_S
                for _ in range(_STEPS_MAX):
                    waits_for = next(pieces)
                    if waits_for is not None:
                        # What became of it is for the work to see.
                        if type(waits_for) is Outside and place is not None:
                            await place.wait_outside(waits_for.until)
                        else:
                            await asyncio.wait((asyncio.ensure_future(waits_for),))
                        break
                    if now_s() >= ends_s:
                        break
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            pieces.close()

    def _turn(self) -> "asyncio.Future[None]":
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if not self._is_passing:
            self._is_passing = True
            asyncio.get_running_loop().call_soon(self._pass)
        return turn

    def _pass(self) -> None:
        """The turn is the next one's who still wants it."""
        waiting = self._waiting
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break
        self._is_passing = bool(waiting)
        if waiting:
            asyncio.get_running_loop().call_soon(self._pass)
