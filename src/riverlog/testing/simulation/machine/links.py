"""How bytes get from one host to another: how long they take, and whether they arrive at all.

A link has a direction, so that a cut can be one-way. What is sent into a cut link is not lost but waits, as
TCP's retransmissions make it; a host that is down swallows everything.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

_RETRANSMISSION_MIN_S: Final = 0.02
_RETRANSMISSION_SPREAD_S: Final = 0.4


@dataclass(slots=True)
class LinkQuality:
    latency_s: float = 0.0002
    spread_s: float = 0.001
    bytes_per_second: float = 100e6
    buffer_bytes: int = 64 * 1024
    """How much one direction of a connection holds that its reader has not taken."""
    cut_chance: float = 0.05
    """How often bytes come in pieces, or a socket takes only a part."""


class Links:
    def __init__(self, chance: random.Random, quality: LinkQuality | None = None) -> None:
        self._chance = chance
        self.quality = quality or LinkQuality()
        """Of every link. May be changed at any time."""
        self.waiting: dict[Callable[[], None], None] = {}
        """Called once when a link may work again."""
        self._cut: Counter[tuple[str, str]] = Counter()
        self._slow: Counter[str] = Counter()
        self._full: Counter[tuple[str, str]] = Counter()
        self._down: set[str] = set()

    def delay_s(self, source: str, target: str, size_bytes: int) -> float:
        quality = self.quality
        delay_s = quality.latency_s + self._chance.random() * quality.spread_s
        rate = quality.bytes_per_second
        if self._slow and (self._slow[source] or self._slow[target]):
            delay_s, rate = delay_s * 20, rate / 1000
        return delay_s + size_bytes / rate

    def retransmission_s(self) -> float:
        return _RETRANSMISSION_MIN_S + self._chance.random() * _RETRANSMISSION_SPREAD_S

    def is_cut(self, source: str, target: str) -> bool:
        return bool(self._cut) and self._cut[source, target] > 0

    def is_down(self, host: str) -> bool:
        return host in self._down

    def is_full(self, source: str, target: str) -> bool:
        return bool(self._full) and self._full[source, target] > 0

    def cuts_here(self) -> bool:
        """Whether bytes are to be cut at this place."""
        return self._chance.random() < self.quality.cut_chance

    def part_of(self, size_bytes: int) -> int:
        return self._chance.randint(1, size_bytes) if size_bytes > 1 else size_bytes

    # Faults. Each can be applied several times over, and ends when it was undone as often.

    def cut(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Nothing gets from the one set to the other."""
        targets = list(targets)
        for source in sources:
            for target in targets:
                self._cut[source, target] += 1

    def heal(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        targets = list(targets)
        for source in sources:
            for target in targets:
                self._cut[source, target] -= 1
        self._cut = +self._cut  # So that it is empty, and quickly asked, while nothing is cut.
        self._resume()

    def fill(self, sources: Iterable[str], target: str) -> None:
        """The target takes nothing more off these, so that nothing more can be sent; what is on its way
        arrives."""
        for source in sources:
            self._full[source, target] += 1

    def empty(self, sources: Iterable[str], target: str) -> None:
        for source in sources:
            self._full[source, target] -= 1
        self._full = +self._full
        self._resume()

    def slow_down(self, host: str) -> None:
        self._slow[host] += 1

    def speed_up(self, host: str) -> None:
        self._slow[host] -= 1
        self._slow = +self._slow

    def take_down(self, host: str) -> None:
        self._down.add(host)

    def bring_up(self, host: str) -> None:
        if host in self._down:
            self._down.remove(host)
            self._resume()

    def _resume(self) -> None:
        waiting, self.waiting = self.waiting, {}
        for resume in waiting:
            resume()
