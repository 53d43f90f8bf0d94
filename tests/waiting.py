"""Waiting for a condition, with a deadline; for a counted number of the loop's turns; for readable bytes.

The places that sleep for another reason are named in `tests/project/test_sleeps.py`; virtual time passes by
`tests.virtual_time.elapse`.
"""

import asyncio
import select
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import IO, Any


def eventually(
    condition: Callable[[], object], what: str = "it did not come about", timeout_s: float = 20
) -> None:
    """Return when the condition holds; fail with `what` and its last value when it does not in time."""
    value: object = None
    for _ in looks(timeout_s):
        value = condition()
        if value:
            return
    raise AssertionError(f"{what} within {timeout_s} s, still {value!r}")


def looks(timeout_s: float, every_s: float = 0.01) -> Iterator[None]:
    """One look after another until the time is over; what it means that it is over, the caller says."""
    deadline = time.monotonic() + timeout_s
    yield
    while time.monotonic() < deadline:
        time.sleep(every_s)
        yield


async def until(
    condition: Callable[[], object], what: str = "it did not come about", timeout_s: float = 20
) -> None:
    """As `eventually`, for what the event loop, a thread or the kernel brings about; by the loop's clock."""

    async def look() -> object:
        return condition()

    await until_told(look, what, timeout_s)


async def until_told(
    ask: Callable[[], Awaitable[object]], what: str = "it did not come about", timeout_s: float = 20
) -> None:
    """As `until`, for a condition that has to be asked of somebody."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not (value := await ask()):
        assert loop.time() < deadline, f"{what} within {timeout_s} s, still {value!r}"
        await asyncio.sleep(0.001)


async def loop_turns(count: int = 1) -> None:
    """Let so many turns of the event loop pass."""
    for _ in range(count):
        await asyncio.sleep(0)


def is_readable(stream: IO[Any], timeout_s: float) -> bool:
    """Whether something comes in time. Unlike `select`, it does not mind how many files are open."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
