"""The clock port: wall time for records and retention, monotonic time for waits."""

from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the epoch. May jump."""
        ...

    def monotonic_s(self) -> float:
        """Seconds since some moment. Never goes back; the same scale as the event loop's `time()`."""
        ...
