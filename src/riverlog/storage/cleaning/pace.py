"""How fast the cleaner may go, over all its threads, and how it is told to stop.

Counts what is read and what is written against `log.cleaner.io.max.bytes.per.second`. Waiting for the next
allowance ends at once when the work is called off.
"""

import threading
import time
from typing import Final

from riverlog.model.clock import Clock

_CREDIT_S: Final = 0.1
"""How much of an idle time may be made up for: little, so that a burst stays small."""


class CalledOffError(Exception):
    """The work was told to stop; nothing is wrong."""


class Pace:
    """Shared by the threads of a cleaner."""

    __slots__ = ("_clock", "_lock", "_next_s", "bytes_per_second")

    def __init__(self, clock: Clock, bytes_per_second: float = float("inf")) -> None:
        self.bytes_per_second = bytes_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._next_s = clock.monotonic_s()

    def spend(self, size_bytes: int, stop: threading.Event) -> None:
        """Account for I/O that was done, and wait if it came too early. Raises `CalledOffError`."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            cost_s = size_bytes / self.bytes_per_second if self.bytes_per_second > 0 else 0.0
            self._next_s = max(self._next_s, now_s - _CREDIT_S) + cost_s
            wait_s = self._next_s - now_s
        if wait_s > 0:
            stop.wait(wait_s)
        else:
            time.sleep(0)  # Lets the event loop have the interpreter now and then.
        if stop.is_set():
            raise CalledOffError
