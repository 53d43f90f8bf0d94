"""Watches the event loop of a process: how long its turns are, and how many logs are open.

A timer that comes late tells how long somebody has held the loop. It looks ten times a second, which costs an
idle broker little: a turn that is longer than that is seen for sure, a shorter one by chance, but
what takes long takes long again. Not in a simulation, where turns take no time.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from riverlog.broker.exchange.rate_limited_log import RateLimitedLog
from riverlog.model.clock import Clock
from riverlog.model.metrics import Metrics

LONG_TURN_S: Final = 0.1
MANY_LOGS: Final = 20_000
_INTERVAL_S: Final = 0.1
_WINDOW_S: Final = 60.0

_logger = logging.getLogger(__name__)


class LoopWatch:
    def __init__(self, clock: Clock, metrics: Metrics, open_logs: Callable[[], float]) -> None:
        self._clock = clock
        self._open_logs = open_logs
        self._told_logs: float = MANY_LOGS
        self._log = RateLimitedLog(_logger, clock.monotonic_s)
        self._window_ends_s = clock.monotonic_s() + _WINDOW_S
        self._longest_s = self._longest_before_s = 0.0
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        metrics.gauge("riverlog_loop_longest_turn_seconds", self._longest)

    def start(self) -> None:
        self._due_s = self._clock.monotonic_s() + _INTERVAL_S
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL_S, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _longest(self) -> float:
        """Within the last minute or two."""
        return max(self._longest_s, self._longest_before_s)

    def _look(self) -> None:
        self.note_turn(self._clock.monotonic_s() - self._due_s)
        self.note_open_logs(self._open_logs())
        self.start()

    def note_turn(self, held_s: float) -> None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._window_ends_s:
            self._longest_before_s, self._longest_s = self._longest_s, 0.0
            self._window_ends_s = now_s + _WINDOW_S
        self._longest_s = max(self._longest_s, held_s)
        if held_s > LONG_TURN_S:
            self._log.warn("the event loop was held for %.2f s, in which nobody was answered", held_s)

    def note_open_logs(self, count: float) -> None:
        """Told once for each time that the number has doubled."""
        if count > self._told_logs:
            self._told_logs = 2 * count
            _logger.warning(
                "%d logs are open; each costs memory, and time at a shutdown if it was written", count
            )
