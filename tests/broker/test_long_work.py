"""Long work is done in pieces, by turns, and holds nobody up; what becomes of it is what its pieces say."""

import asyncio
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest

from riverlog.broker.exchange.long_work import LARGE_AT_ONCE_MAX, LongWork
from riverlog.model.pieces import Pieces
from tests.waiting import loop_turns


class Clock:
    """Stands still unless it is told to move."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def slow(name: str, pieces: int, clock: Clock, log: list[str]) -> Pieces[str]:
    """Each step takes a second."""
    for _ in range(pieces):
        log.append(name)
        clock.now_s += 1
        yield None
    return name


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


def test_works_take_turns_and_others_have_theirs_in_between() -> None:
    async def main() -> None:
        clock, log = Clock(), list[str]()
        work = LongWork(clock)
        turns: list[int] = []

        def look() -> None:
            turns.append(len(log))
            if len(log) < 9:
                asyncio.get_running_loop().call_soon(look)

        look()
        results = await asyncio.gather(*(work.do(slow(name, 3, clock, log)) for name in "abc"))
        assert results == ["a", "b", "c"]
        assert log == list("abcabcabc")
        steps = [after - before for before, after in pairwise(turns)]
        assert max(steps) == 1, "one piece in a turn of the loop"

    run(main())


def test_a_piece_is_bounded_even_where_time_stands_still() -> None:
    async def main() -> None:
        clock, others = Clock(), 0

        def quick() -> Pieces[int]:
            for _ in range(10_000):
                yield None
            return others

        def count() -> None:
            nonlocal others
            others += 1
            asyncio.get_running_loop().call_soon(count)

        count()
        assert await LongWork(clock).do(quick()) >= 5

    run(main())


def test_work_waits_for_what_it_yields_and_sees_how_that_ended() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        good, bad = loop.create_future(), loop.create_future()

        def waiting() -> Pieces[tuple[object, str]]:
            yield good
            yield bad
            return good.result(), str(bad.exception())

        doing = asyncio.create_task(LongWork(Clock()).do(waiting()))
        await loop_turns()
        loop.call_soon(good.set_result, 7)
        loop.call_soon(bad.set_exception, ValueError("no"))
        assert await doing == (7, "no")

    run(main())


def test_work_that_fails_or_is_given_up_ends_and_the_others_go_on() -> None:
    async def main() -> None:
        clock, log = Clock(), list[str]()
        work = LongWork(clock)
        ended: list[str] = []

        def failing() -> Pieces[None]:
            yield None
            raise ValueError("a bug")

        def endless() -> Pieces[None]:
            try:
                while True:
                    clock.now_s += 1
                    yield None
            finally:
                ended.append("endless")

        given_up = asyncio.create_task(work.do(endless()))
        failed = asyncio.create_task(work.do(failing()))
        going_on = asyncio.create_task(work.do(slow("a", 20, clock, log)))
        await loop_turns(30)
        assert 0 < len(log) < 20
        given_up.cancel()
        assert await going_on == "a"
        with pytest.raises(ValueError, match="a bug"):
            await failed
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert ended == ["endless"]

    run(main())


def test_only_a_few_large_works_are_begun_and_the_others_wait_in_line() -> None:
    async def main() -> None:
        work = LongWork(Clock())
        begun: list[int] = []
        over = asyncio.Event()

        async def large(number: int) -> None:
            async with work.place():
                begun.append(number)
                await over.wait()

        tasks = [asyncio.create_task(large(number)) for number in range(2 * LARGE_AT_ONCE_MAX)]
        await loop_turns(5)
        assert begun == list(range(LARGE_AT_ONCE_MAX))
        async with work.place(is_large=False):
            pass
        tasks[0].cancel()
        tasks[LARGE_AT_ONCE_MAX].cancel()  # It gets its place in the moment in which it is given up, or not.
        await loop_turns(5)
        assert begun[LARGE_AT_ONCE_MAX:] == [LARGE_AT_ONCE_MAX + 1]
        over.set()
        await asyncio.wait(tasks)
        assert len(begun) == 2 * LARGE_AT_ONCE_MAX - 1
        for _ in range(LARGE_AT_ONCE_MAX):
            await asyncio.wait_for(work.place().__aenter__(), 10)

    run(main())
