"""The event loop that a process or a thread of brokers runs on. Loads nothing of a broker."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def run_on_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On uvloop where it is installed, else on asyncio's own loop."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
