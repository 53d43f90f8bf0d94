"""Watches the event loop of a process: how long its turns are, and how many logs are open.

A timer that comes late tells how long somebody has held the loop. It looks four times a second, which costs
an idle broker little: a turn that is longer than that is seen for sure, a shorter one by chance, but what
takes long takes long again. Not in a simulation, where turns take no time. Once a minute the logs are
counted, and the process looks for garbage if there can be much.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from riverlog.model.clock import Clock
from riverlog.model.metrics import Metrics
from riverlog.node.processes.event_loop import collect_if_due

LONG_TURN_S: Final = 0.25
MANY_LOGS: Final = 20_000
_INTERVAL_S: Final = 0.25
_WINDOW_S = _MINUTE_S = 60.0
_SILENCE_S: Final = 30.0

_logger = logging.getLogger(__name__)


class LoopWatch:
    def __init__(self, clock: Clock, metrics: Metrics, open_logs: Callable[[], float]) -> None:
        self._clock = clock
        self._open_logs = open_logs
        self._told_logs: float = MANY_LOGS
        self._silent_until_s = float("-inf")
        self._window_ends_s = clock.monotonic_s() + _WINDOW_S
        self._longest_s = self._longest_before_s = 0.0
        self._due_s = 0.0
        self._minute_ends_s = clock.monotonic_s() + _MINUTE_S
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
        now_s = self._clock.monotonic_s()
        held_s = now_s - self._due_s
        if held_s > min(self._longest_s, LONG_TURN_S) or now_s >= self._window_ends_s:
            self.note_turn(held_s)
        if now_s >= self._minute_ends_s:
            self._minute_ends_s = now_s + _MINUTE_S
            self.note_open_logs(self._open_logs())
            collect_if_due()
        self.start()

    def note_turn(self, held_s: float) -> None:
        now_s = self._clock.monotonic_s()
        if now_s >= self._window_ends_s:
            self._longest_before_s, self._longest_s = self._longest_s, 0.0
            self._window_ends_s = now_s + _WINDOW_S
        self._longest_s = max(self._longest_s, held_s)
        if held_s > LONG_TURN_S and now_s >= self._silent_until_s:
            self._silent_until_s = now_s + _SILENCE_S
            _logger.warning(
                "the event loop stood still for %.2f s, in which nobody was answered; something takes long, "
                "or the machine is too busy",
                held_s,
            )

    def note_open_logs(self, count: float) -> None:
        """Told once for each time that the number has doubled."""
        if count > self._told_logs:
            self._told_logs = 2 * count
            _logger.warning(
                "%d logs are open; each costs memory, and time at a shutdown if it was written", count
            )
