"""The metrics port: counters and gauges by name and labels. The exporter comes later.

A layer asks once for its instrument and keeps it, so that the hot path pays one method call.
"""

from collections.abc import Callable
from typing import Protocol


class Counter(Protocol):
    def add(self, amount: float = 1) -> None: ...


class Metrics(Protocol):
    def counter(self, name: str, **labels: str) -> Counter: ...

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        """Register a value that is read when the metrics are read."""
        ...


class _Nothing:
    def add(self, amount: float = 1) -> None:
        pass


class NoMetrics:
    """Throws everything away; for tests and tools."""

    _NOTHING = _Nothing()

    def counter(self, name: str, **labels: str) -> Counter:
        return self._NOTHING

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        pass
