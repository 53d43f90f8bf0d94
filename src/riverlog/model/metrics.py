"""The metrics port: counters and gauges by name and labels. The exporter comes later.

A layer asks once for its instrument and keeps it. What every request counts is added to `value` itself, which
spares it the call.
"""

from collections.abc import Callable
from typing import Protocol


class Counter(Protocol):
    value: float

    def add(self, amount: float = 1) -> None: ...


class Metrics(Protocol):
    def counter(self, name: str, **labels: str) -> Counter: ...

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        """Register a value that is read when the metrics are read."""
        ...


class _Nothing:
    value = 0.0

    def add(self, amount: float = 1) -> None:
        pass


class NoMetrics:
    """Throws everything away; for tests and tools."""

    _NOTHING = _Nothing()

    def counter(self, name: str, **labels: str) -> Counter:
        return self._NOTHING

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        pass
