"""The event loop that a process or a thread of brokers runs on, and when the process stops for its garbage.
Loads nothing of a broker.

Nearly everything goes with its last reference. What the interpreter looks for beside that are cycles, and to
look through all objects, as it does whenever a quarter of them is new, took 60 ms in the middle of a request
of 100,000 entries. A process of its own has the young objects looked through as ever, those that are there
when it is ready never, and all others once in a while (`collect_if_due`).
"""

import asyncio
import gc
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


_NEVER = 1_000_000_000
_DUE_AFTER = 200
"""So often were the young objects looked through, and what was left of them was added to the old ones."""


def collect_rarely() -> None:
    """Call it when the process is ready."""
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)


def collect_if_due() -> None:
    if gc.get_count()[2] >= _DUE_AFTER:
        gc.collect()
