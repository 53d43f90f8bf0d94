"""A life of a process: what runs between one start of it and its end, and dies with it.

Every callback belongs to the life in whose context it was registered: asyncio copies the context into tasks,
timers and callbacks, so that whatever a node starts is the node's, without the node's knowing. A life that
has ended runs nothing any more: its handles are dropped, and its tasks are closed while its ports are dead,
so that no `finally` of them does anything that another process could see.
"""

import asyncio
import contextlib
import contextvars
import warnings
from collections import deque
from collections.abc import Callable
from itertools import count
from types import CoroutineType
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from riverlog.testing.simulation.machine.handles import Handle

T = TypeVar("T")

_CLOSINGS_MAX: Final = 1000

CURRENT: Final[contextvars.ContextVar["Life"]] = contextvars.ContextVar("riverlog_life")
"""Whose callback runs. Not set: it belongs to the simulation itself."""


class Life:
    """One life of the process `name`. `clock_rate` is how fast its monotonic clock runs."""

    __slots__ = (
        "_numbers",
        "_tasks",
        "clock_rate",
        "context",
        "held_until_s",
        "is_alive",
        "is_listed",
        "name",
        "number",
        "ready",
        "thread_delay_s",
        "threads_free_s",
        "threads_held_until_s",
    )

    def __init__(self, name: str, number: int = 1, *, clock_rate: float = 1.0) -> None:
        self.name = name
        self.number = number
        self.clock_rate = clock_rate
        self.is_alive = True
        self.is_listed = False
        """Whether the loop has it among those that can run."""
        self.ready: deque[Handle] = deque()
        self.held_until_s = 0.0
        self.threads_held_until_s = 0.0
        self.thread_delay_s = 0.0
        """What a slow disk adds to each piece of work in a thread."""
        self.threads_free_s: dict[object, float] = {}
        """When an executor of one thread has done what it was given."""
        self._numbers = count()
        self._tasks: WeakValueDictionary[int, asyncio.Task[Any]] = WeakValueDictionary()
        self.context = contextvars.copy_context()
        self.context.run(CURRENT.set, self)

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"

    def own(self, task: "asyncio.Task[Any]") -> None:
        self._tasks[next(self._numbers)] = task

    def tasks(self) -> "list[asyncio.Task[Any]]":
        """Those that are not done, oldest first."""
        return [task for _, task in sorted(self._tasks.items()) if not task.done()]

    def is_idle(self) -> bool:
        """Whether all of them are done."""
        return all(task.done() for task in self._tasks.values())

    def run(self, work: Callable[[], T]) -> T:
        """As a callback of this life."""
        return self.context.copy().run(work)

    def end(self) -> None:
        """Nothing of it runs again. Its ports are to be dead before."""
        self.is_alive = False
        tasks = self.tasks()
        self.ready.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # What a `finally` begins is never awaited.
            for task in tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                if isinstance(coroutine, CoroutineType):
                    self.context.copy().run(_close, coroutine)
        self.ready.clear()


def _close(coroutine: "CoroutineType[Any, Any, Any]") -> None:
    """From the inside out, since a `finally` that awaits something makes the closing of what is around it
    fail; and again, until nothing of it is left."""
    for _ in range(_CLOSINGS_MAX):
        if coroutine.cr_frame is None:
            return
        inner = coroutine
        while isinstance(inner.cr_await, CoroutineType) and inner.cr_await.cr_frame is not None:
            inner = inner.cr_await
        with contextlib.suppress(BaseException):
            inner.close()
