"""The metrics port in memory: numbers by name and labels, read by whoever exports them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple


class MetricName(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]


class InMemoryCounter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float = 1) -> None:
        self.value += amount


class InMemoryMetrics:
    def __init__(self) -> None:
        self._counters: dict[MetricName, InMemoryCounter] = {}
        self._gauges: dict[MetricName, Callable[[], float]] = {}

    def counter(self, name: str, **labels: str) -> InMemoryCounter:
        return self._counters.setdefault(_named(name, labels), InMemoryCounter())

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> None:
        self._gauges[_named(name, labels)] = read

    def value(self, name: str, **labels: str) -> float:
        """A counter's or a gauge's value now; raises `KeyError` for one that nobody asked for."""
        key = _named(name, labels)
        return self._gauges[key]() if key in self._gauges else self._counters[key].value

    def values(self) -> Mapping[MetricName, float]:
        """Every counter and gauge now."""
        found = {key: counter.value for key, counter in self._counters.items()}
        found.update((key, read()) for key, read in self._gauges.items())
        return found


def _named(name: str, labels: Mapping[str, str]) -> MetricName:
    return MetricName(name, tuple(sorted(labels.items())))
