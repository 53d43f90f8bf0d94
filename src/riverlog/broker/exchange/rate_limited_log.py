"""Log lines that a hostile client cannot use to fill the disk: a few per second, then a count."""

import logging
from collections.abc import Callable

_LINES_PER_SECOND = 5


class RateLimitedLog:
    def __init__(self, logger: logging.Logger, monotonic_s: Callable[[], float]) -> None:
        self._logger = logger
        self._monotonic_s = monotonic_s
        self._window_start_s = float("-inf")
        self._written = 0
        self._suppressed = 0

    def warn(self, message: str, *arguments: object) -> None:
        now_s = self._monotonic_s()
        if now_s - self._window_start_s >= 1:
            if self._suppressed:
                self._logger.warning("%d more warnings of this kind were not logged", self._suppressed)
            self._window_start_s, self._written, self._suppressed = now_s, 0, 0
        if self._written >= _LINES_PER_SECOND:
            self._suppressed += 1
            return
        self._written += 1
        self._logger.warning(message, *arguments)
