"""Waiting for a condition, with a deadline."""

import asyncio
import select
import time
from collections.abc import Callable
from typing import IO, Any


def eventually(
    condition: Callable[[], object], what: str = "it did not come about", timeout_s: float = 20
) -> None:
    """Return when the condition holds; fail with `what` and its last value when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} within {timeout_s} s, still {value!r}"
        time.sleep(0.01)


async def until(
    condition: Callable[[], object], what: str = "it did not come about", timeout_s: float = 20
) -> None:
    """As `eventually`, for what the event loop, a thread or the kernel brings about; by the loop's clock."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not (value := condition()):
        assert loop.time() < deadline, f"{what} within {timeout_s} s, still {value!r}"
        await asyncio.sleep(0.001)


def is_readable(stream: IO[Any], timeout_s: float) -> bool:
    """Whether something comes in time. Unlike `select`, it does not mind how many files are open."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
