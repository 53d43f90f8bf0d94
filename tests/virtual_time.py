"""An event loop whose time jumps to the next timer, so that nothing is waited for in real time."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from riverlog.testing.simulation.machine.loop import VirtualLoop as SimulatedLoop

T = TypeVar("T")

START_MS = 1_800_000_000_000


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer, it moves the time to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout:
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


class LoopClock:
    """Both times are those of the running loop."""

    def wall_ms(self) -> int:
        return START_MS + round(asyncio.get_running_loop().time() * 1000)

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time()


def run_virtually(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


async def elapse(seconds: float) -> None:
    """Let that much virtual time pass, with all that is due in it; on a loop of real time this is a fault."""
    assert isinstance(asyncio.get_running_loop(), VirtualLoop | SimulatedLoop), "nothing waits in real time"
    await asyncio.sleep(seconds)
