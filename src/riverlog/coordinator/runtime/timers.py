"""Timers of a coordinator: one heap, one wake-up of the event loop, on the clock port.

Timers that are due go off in the order of their deadlines, those of one deadline in the order they were set:
under a virtual clock the same run gives the same order. A timer that is replaced or cancelled stays in the
heap as a dead entry until it is due or the dead outnumber the living.
"""

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from riverlog.model.clock import Clock

_DEAD_KEPT: Final = 256


class _Timer(NamedTuple):
    deadline_s: float
    number: int
    key: Hashable
    ring: Callable[[], object]


class Timers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[_Timer] = []
        self._live: dict[Hashable, int] = {}
        self._set_count = 0
        self._wake_up: asyncio.TimerHandle | None = None
        self._wake_up_s = 0.0

    def __len__(self) -> int:
        return len(self._live)

    def set(self, key: Hashable, delay_ms: float, ring: Callable[[], object]) -> None:
        """Call `ring` after so long, instead of what was set under this key before."""
        self._set_count += 1
        self._live[key] = self._set_count
        deadline_s = self._clock.monotonic_s() + max(delay_ms, 0) / 1000
        heapq.heappush(self._heap, _Timer(deadline_s, self._set_count, key, ring))
        if len(self._heap) > 2 * len(self._live) + _DEAD_KEPT:
            self._bury_the_dead()
        if self._wake_up is None or deadline_s < self._wake_up_s:
            self._plan()

    def cancel(self, key: Hashable) -> None:
        self._live.pop(key, None)

    def close(self) -> None:
        self._heap.clear()
        self._live.clear()
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None

    def _ring_due(self) -> None:
        self._wake_up = None
        now_s = self._clock.monotonic_s()
        due: list[_Timer] = []
        while self._heap and self._heap[0].deadline_s <= now_s:
            due.append(heapq.heappop(self._heap))
        # What rings may set and cancel timers, also those of this round.
        for timer in due:
            if self._live.get(timer.key) == timer.number:
                del self._live[timer.key]
                timer.ring()
        self._plan()

    def _plan(self) -> None:
        while self._heap and self._live.get(self._heap[0].key) != self._heap[0].number:
            heapq.heappop(self._heap)
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        if self._heap:
            self._wake_up_s = self._heap[0].deadline_s
            self._wake_up = asyncio.get_running_loop().call_at(self._wake_up_s, self._ring_due)

    def _bury_the_dead(self) -> None:
        self._heap = [timer for timer in self._heap if self._live.get(timer.key) == timer.number]
        heapq.heapify(self._heap)
