"""The metrics port in memory: numbers by name and labels, read by whoever exports them."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import NamedTuple

_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class MetricName(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]


class InMemoryCounter:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float = 1) -> None:
        self.value += amount


class InMemoryHistogram:
    """Counts per upper bound in seconds, the last one without bound."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(_BOUNDS, value)] += 1
        self.total += value


class InMemoryMetrics:
    def __init__(self) -> None:
        self._counters: dict[MetricName, InMemoryCounter] = {}
        self._histograms: dict[MetricName, InMemoryHistogram] = {}
        self._gauges: dict[MetricName, Callable[[], float]] = {}

    def counter(self, name: str, **labels: str) -> InMemoryCounter:
        return self._counters.setdefault(_named(name, labels), InMemoryCounter())

    def histogram(self, name: str, **labels: str) -> InMemoryHistogram:
        return self._histograms.setdefault(_named(name, labels), InMemoryHistogram())

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
