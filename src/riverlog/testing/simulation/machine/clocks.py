"""The clock of one simulated machine: its monotonic time may drift, its wall time may jump.

The drift is a life's (`Life.clock_rate`), because the event loop's time has it too.
"""

from typing import Final

from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.machine.loop import VirtualLoop

START_MS: Final = 1_800_000_000_000


class MachineClock:
    """Survives the lives of the processes on its machine."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.skew_ms = 0
        """How far the wall clock is from the world's. A change of it is a jump."""

    def wall_ms(self, rate: float = 1.0) -> int:
        return START_MS + self.skew_ms + round(self._loop.now_s * rate * 1000)

    def of(self, life: Life) -> "LifeClock":
        return LifeClock(self, self._loop, life)


class LifeClock:
    """The clock port."""

    def __init__(self, machine: MachineClock, loop: VirtualLoop, life: Life) -> None:
        self._machine, self._loop, self._life = machine, loop, life

    def wall_ms(self) -> int:
        return self._machine.wall_ms(self._life.clock_rate)

    def monotonic_s(self) -> float:
        return self._loop.now_s * self._life.clock_rate
