"""How fast the cleaner may go, over all its passes.

Counts what is read and what is written against `log.cleaner.io.max.bytes.per.second`. It only says how long
to wait: whoever has done the I/O does the waiting, on the event loop.
"""

from typing import Final

from riverlog.model.clock import Clock

_CREDIT_S: Final = 0.1
"""How much of an idle time may be made up for: little, so that a burst stays small."""


class Pace:
    """Shared by the passes of a cleaner; lives on the event loop."""

    __slots__ = ("_clock", "_next_s", "bytes_per_second")

    def __init__(self, clock: Clock, bytes_per_second: float = float("inf")) -> None:
        self.bytes_per_second = bytes_per_second
        self._clock = clock
        self._next_s = clock.monotonic_s()

    def spend(self, size_bytes: int) -> float:
        """Account for I/O that was done: the seconds by which it came too early, 0 when it did not."""
        now_s = self._clock.monotonic_s()
        cost_s = size_bytes / self.bytes_per_second if self.bytes_per_second > 0 else 0.0
        self._next_s = max(self._next_s, now_s - _CREDIT_S) + cost_s
        return max(self._next_s - now_s, 0.0)
