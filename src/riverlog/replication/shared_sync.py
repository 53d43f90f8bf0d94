"""The sync that a partition waits for before its records count: one at a time, for all that came meanwhile.

Who is told when it ends looks whether the log has grown since, and asks for the next one. One that has failed
for want of room can be tried again later: what waits for it may be all that would ask.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.log import Log

_PAUSE_MIN_S: Final = 1.0
_PAUSE_MAX_S: Final = 8.0


class SharedSync:
    __slots__ = ("_again", "_flusher", "_log", "_on_ended", "_pause_s")

    def __init__(self, flusher: Flusher, on_ended: Callable[[BaseException | None], None]) -> None:
        """`on_ended` is called with why the sync failed, or None when all that it was for is on disk."""
        self._flusher = flusher
        self._on_ended = on_ended
        self._log: Log | None = None
        """The one that is being synced."""
        self._again: asyncio.TimerHandle | None = None
        self._pause_s = _PAUSE_MIN_S

    @property
    def is_under_way(self) -> bool:
        return self._log is not None

    def to_end_of(self, log: Log) -> None:
        """Ask for the next sync, unless there is one under way."""
        if self._log is None:
            self.give_up()
            self._log, generation = log, log.generation
            synced = self._flusher.flush_to(log.sync, log.log_end_offset)
            synced.add_done_callback(lambda done: self._end(log, generation, done))

    def try_again(self, log: Log) -> None:
        """After a pause, which grows; unless `to_end_of` or `give_up` comes before."""
        self.give_up()
        self._again = asyncio.get_running_loop().call_later(self._pause_s, self.to_end_of, log)
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)

    def give_up(self) -> None:
        """Do not try again."""
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def forget(self) -> None:
        """The log was replaced by one that is on disk: how a sync of it ends does not matter."""
        self.give_up()
        self._log = None

    def _end(self, log: Log, generation: int, synced: "asyncio.Future[None]") -> None:
        error = None if synced.cancelled() else synced.exception()
        if log is not self._log:
            return
        self._log = None
        if error is None:
            self._pause_s = _PAUSE_MIN_S
        was_truncated = log.is_online and log.generation != generation
        # What was cut off will never be on disk; who waited for it was told when the leader changed.
        self._on_ended(None if was_truncated else error)
