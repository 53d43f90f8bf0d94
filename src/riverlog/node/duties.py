"""What a node does every so often: one supervised task per duty, started together and stopped together.

A duty that fails is logged and tried again after its interval; it never takes the node down and never stops
silently.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

_logger = logging.getLogger(__name__)


class Duty(NamedTuple):
    name: str
    interval_ms: int
    run: Callable[[], Awaitable[None] | None]
    first_after_ms: int | None = None
    """None: after one interval."""


class Duties:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, duty: Duty) -> None:
        self._tasks.append(asyncio.create_task(_repeat(duty), name=f"duty {duty.name}"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


async def _repeat(duty: Duty) -> None:
    wait_ms = duty.interval_ms if duty.first_after_ms is None else duty.first_after_ms
    while True:
        await asyncio.sleep(wait_ms / 1000)
        wait_ms = duty.interval_ms
        try:
            done = duty.run()
            if done is not None:
                await done
        except Exception:
            _logger.exception("%s failed; it is tried again in %d ms", duty.name, duty.interval_ms)
