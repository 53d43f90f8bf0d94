"""A timer for many deadlines, on the loops that brokers and tests run on."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from riverlog.client.earliest_timer import EarliestTimer
from tests.waiting import loop_turns

Scenario = Coroutine[Any, Any, None]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_it_rings_once_by_the_earliest_also_when_that_is_now(run: Callable[[Scenario], None]) -> None:
    async def scenario() -> None:
        loop, rung, done = asyncio.get_running_loop(), list[float](), asyncio.Event()
        timer = EarliestTimer(loop)
        now_s = loop.time()

        def ring() -> None:
            rung.append(loop.time() - now_s)
            assert timer.when_s is None
            done.set()

        for when_s in (60.0, 0.0, -1.0, 0.0001, 60.0):
            timer.ring_by(now_s + when_s, ring)
            assert timer.when_s is not None
        await asyncio.wait_for(done.wait(), 30)
        for _ in range(3):
            await loop_turns()
        assert len(rung) == 1
        timer.ring_by(loop.time(), ring)
        timer.cancel()
        assert timer.when_s is None
        for _ in range(3):
            await loop_turns()
        assert len(rung) == 1

    run(scenario())
