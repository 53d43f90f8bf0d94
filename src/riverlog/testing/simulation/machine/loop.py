"""An event loop in virtual time, on which whole processes run beside each other.

No selector, no thread, no real time: when nothing is ready, the time jumps to the next timer. Each life (see
`lives`) has a queue of its own, in which callbacks keep their order, as asyncio promises to a process; whose
turn it is is drawn. `run_in_executor` runs the function in one piece at a later time, beside the life's own
callbacks as a thread would; an executor of one thread keeps its order.
"""

import asyncio
import contextvars
import random
from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from math import nextafter
from typing import Any, Final, TypeVar, cast

from riverlog.testing.simulation.machine.executors import VirtualThreads
from riverlog.testing.simulation.machine.handles import Handle, Timer, Turn
from riverlog.testing.simulation.machine.lives import CURRENT, Life

T = TypeVar("T")

_THREAD_MIN_S: Final = 0.00005
_THREAD_SPREAD_S: Final = 0.002
_AT_ONCE_S: Final = 0.0005
_FOREVER_S: Final = float("inf")


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.now_s = 0.0
        self.steps = 0
        self.steps_before = 0
        """How many there were when the time went on."""
        self.world = Life("world")
        """What belongs to no process: the simulation itself."""
        self.after_step: Callable[[Life], None] = lambda life: None
        """Called after every callback with the life that it belonged to."""
        self.is_interrupted = False
        """Runs nothing more."""
        self.on_exception: Callable[[Life, dict[str, Any]], None] = lambda life, context: None
        self._random = chance.random
        self.last_handle: Handle | None = None
        self._numbers = count()
        self._timers: list[tuple[float, float, int, Handle, Life, bool]] = []
        self._runnable: list[Life] = []

    # What drives it.

    def run_until(self, is_done: Callable[[], bool] | None, deadline_s: float) -> bool:
        """Step until `is_done` (asked after each step), or the loop `is_interrupted`, or the time is
        `deadline_s`; whether it is done."""
        asyncio._set_running_loop(self)
        try:
            while not (self.is_interrupted or (is_done is not None and is_done())):
                if not self._step(deadline_s):
                    self._go_to(deadline_s)
                    return is_done is not None and is_done()
            return True
        finally:
            asyncio._set_running_loop(None)

    def _step(self, deadline_s: float) -> bool:
        """Run one callback; False when there is none before the deadline."""
        runnable, timers = self._runnable, self._timers
        while True:
            while timers and timers[0][0] <= self.now_s:
                _, _, _, handle, life, is_thread = heappop(timers)
                if handle._cancelled or not life.is_alive:
                    continue
                if is_thread:
                    self._run(handle, life)
                    return True
                life.ready.append(handle)
                self._list(life)
            if runnable:
                break
            if not timers or timers[0][0] > deadline_s:
                return False
            self._go_to(timers[0][0])
        index = int(self._random() * len(runnable))
        life = runnable[index]
        if life.ready and life.held_until_s <= self.now_s:
            handle = life.ready.popleft()
            if not handle._cancelled:
                self._run(handle, life)
        if not life.ready or life.held_until_s > self.now_s:
            life.is_listed = False
            runnable[index] = runnable[-1]  # What was listed since stands behind it.
            runnable.pop()
        return True

    def _go_to(self, now_s: float) -> None:
        if now_s > self.now_s:
            self.now_s, self.steps_before = now_s, self.steps

    def _run(self, handle: Handle, life: Life) -> None:
        self.steps += 1
        self.last_handle = handle
        try:
            handle._context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - told to the world, which ends the run
            what = f"Exception in callback {handle!r}"
            self.call_exception_handler({"message": what, "exception": error, "handle": handle})
        self.after_step(life)

    def _list(self, life: Life) -> None:
        if not life.is_listed and life.is_alive and life.held_until_s <= self.now_s:
            life.is_listed = True
            self._runnable.append(life)

    def hold(self, life: Life, until_s: float, *, threads: bool) -> None:
        """Keep its callbacks back for a while: a stalled loop, or with its threads a stopped process."""
        life.held_until_s = max(life.held_until_s, until_s)
        if threads:
            life.threads_held_until_s = max(life.threads_held_until_s, until_s)
        if until_s < _FOREVER_S:
            self._at(until_s, Turn(self._list, (life,), self.world.context), self.world)

    def timers_of(self, life: Life) -> list[str]:
        """What they will call."""
        handles = [each[3] for each in self._timers if each[4] is life]
        return [_name(each._callback) for each in handles if not each._cancelled]

    # What asyncio asks of a loop.

    def time(self) -> float:
        return self.now_s * CURRENT.get(self.world).clock_rate

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        life = CURRENT.get(self.world) if context is None else context.get(CURRENT, self.world)
        handle = Turn(callback, args, context)
        if life.is_alive:
            life.ready.append(handle)
            if not life.is_listed and life.held_until_s <= self.now_s:
                life.is_listed = True
                self._runnable.append(life)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        life = CURRENT.get(self.world) if context is None else context.get(CURRENT, self.world)
        # As uvloop: what is due within half a millisecond is no timer, and does not know when it is due.
        is_due = when - self.time() < _AT_ONCE_S
        handle: Turn | Timer = (
            Turn(callback, args, context) if is_due else Timer(when, callback, args, context)
        )
        if life.is_alive:
            when_s = when / life.clock_rate
            while when_s * life.clock_rate < when:
                when_s = nextafter(when_s, _FOREVER_S)  # Never early by its own clock, not even by rounding.
            self._at(when_s, handle, life)
        return cast(asyncio.TimerHandle, handle)

    def at(self, when_s: float, life: Life, callback: Callable[..., object], *args: Any) -> asyncio.Handle:
        """For the simulation itself: at a moment of the world's time, in the life's context."""
        handle = Turn(callback, args, life.context)
        if life.is_alive:
            self._at(when_s, handle, life)
        return handle

    def _at(self, when_s: float, handle: Handle, life: Life, *, is_thread: bool = False) -> None:
        if when_s < self.now_s:
            when_s = self.now_s
        heappush(self._timers, (when_s, self._random(), next(self._numbers), handle, life, is_thread))

    def run_in_executor(  # type: ignore[override]
        self, executor: VirtualThreads, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        executor.check_open()
        life = CURRENT.get(self.world)
        future: asyncio.Future[T] = self.create_future()
        start_s = self.now_s + _THREAD_MIN_S + self._random() * _THREAD_SPREAD_S + life.thread_delay_s
        if executor.workers == 1:
            start_s = max(start_s, life.threads_free_s.get(executor, 0.0))
            life.threads_free_s[executor] = start_s
        self._plan_work(start_s, life, executor, future, lambda: self._do(future, func, args))
        return future

    def _plan_work(
        self,
        start_s: float,
        life: Life,
        executor: VirtualThreads,
        future: "asyncio.Future[Any]",
        do: Callable[[], None],
    ) -> None:
        handle = Turn(self._work, (life, executor, future, do), None)
        executor.take(future, handle, do)
        self._at(start_s, handle, life, is_thread=True)

    def _work(
        self, life: Life, executor: VirtualThreads, future: "asyncio.Future[Any]", do: Callable[[], None]
    ) -> None:
        if life.threads_held_until_s > self.now_s:
            self._plan_work(life.threads_held_until_s, life, executor, future, do)
            return
        executor.begin(future)
        do()

    def _do(self, future: "asyncio.Future[T]", func: Callable[..., T], args: tuple[Any, ...]) -> None:
        try:
            result = func(*args)
        except BaseException as error:  # noqa: BLE001 - handed over to whoever waits
            self.call_soon(_fail, future, error)
        else:
            self.call_soon(_settle, future, result)

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[T]":
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=name, context=context)
        (CURRENT.get(self.world) if context is None else context.get(CURRENT, self.world)).own(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self

    def close(self) -> None:
        super().close()
        self._timers.clear()
        self._runnable.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.on_exception(CURRENT.get(self.world), context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)


def _name(callback: Callable[..., object]) -> str:
    return str(getattr(callback, "__qualname__", type(callback).__name__))


def _settle(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
