"""A bound on open logs: of more than so many, those that nobody uses are saved and closed.

Also those that were opened for something else than a request, as every log is that is recovered after a kill.
Where there are other replicas all in sync must have everything (`Partition.is_at_rest`); what a leader knows
of its followers is kept (`resting`). Not while a transaction is open in them, nor one that is to be
compacted, nor those of coordinators, which remember what is in them and write to it. A log has to be left
alone from one look to the next one, and those that were left alone for longest go first; so the bound is
passed while more are in use. Saving blocks in a thread, and a log that was used meanwhile stays open. Readers
at the end of a closed log go on waiting (`IdleReaders`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.model.metrics import Metrics
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.log.flusher import Flusher, Saving
from riverlog.storage.log.log import Log

INTERVAL_MS: Final = 10_000
_LOOKED_AT_PER_TURN: Final = 200
_SAVED_AT_ONCE: Final = 8
"""Those who wait for a sync of another log wait for these, too."""
_CLOSED_PER_CHECKPOINT: Final = 1_000


class _Rest(NamedTuple):
    """A log as it was when it was found at rest for the first time."""

    end_offset: int
    since: int
    """The number of that look."""


class IdleLogs:
    def __init__(
        self,
        replicas: ReplicaSet,
        directories: DataDirectories,
        flusher: Flusher,
        open_max: int,
        metrics: Metrics,
        *,
        is_to_be_cleaned: Callable[[Log], bool] = lambda log: False,
    ) -> None:
        """`is_to_be_cleaned`: a pass over the log is under way or due, or cannot be made."""
        self._replicas = replicas
        self._directories = directories
        self._flusher = flusher
        self._open_max = open_max
        self._is_to_be_cleaned = is_to_be_cleaned
        self._turn = asyncio.Lock()
        self._looks = 0
        self._at_rest: dict[Log, _Rest] = {}
        self._closed = metrics.counter("riverlog_idle_logs_closed_total")

    async def close_some(self) -> None:
        """One look, and as many are closed as there are too many and at rest since the look before."""
        async with self._turn:
            await self._close_some()

    async def _close_some(self) -> None:
        excess = self._directories.open_count - self._open_max
        if excess <= 0:
            self._at_rest.clear()
            return
        idle = (await self._look())[:excess]
        closed: list[TopicPartition] = []
        for start in range(0, len(idle), _SAVED_AT_ONCE):
            closed += await self._close(idle[start : start + _SAVED_AT_ONCE])
            if len(closed) >= _CLOSED_PER_CHECKPOINT:
                await self._directories.note_closed(closed)
                closed.clear()
        if closed:
            await self._directories.note_closed(closed)

    async def _look(self) -> list[Log]:
        """Those that were not used since the look before, the one first that was not used for longest."""
        self._looks += 1
        before, self._at_rest = self._at_rest, {}
        opened = [log for each in self._directories.online for log in each.opened()]
        for number, log in enumerate(opened):
            if not number % _LOOKED_AT_PER_TURN:
                await asyncio.sleep(0)
            if not self._can_be_closed(log):
                continue
            state = log.state
            rest = before.get(log)
            if rest is None or state.is_read or rest.end_offset != state.log_end_offset:
                rest = _Rest(state.log_end_offset, self._looks)
            state.is_read = False
            self._at_rest[log] = rest
        idle = [each for each, rest in self._at_rest.items() if rest.since < self._looks]
        return sorted(idle, key=lambda each: self._at_rest[each].since)

    async def _close(self, logs: Sequence[Log]) -> list[TopicPartition]:
        saving: dict[Log, Saving] = {}
        for log in logs:
            await asyncio.sleep(0)
            if not self._is_idle(log):
                continue
            with suppress(StorageError, DiskFullError):  # It stays open; who writes to it is told.
                if (begun := self._flusher.save(log.sync)) is not None:
                    saving[log] = begun
        await asyncio.gather(*(each.done for each in saving.values()), return_exceptions=True)
        return [log.topic_partition for log, each in saving.items() if await self._close_saved(log, each)]

    async def _close_saved(self, log: Log, saved: Saving) -> bool:
        await asyncio.sleep(0)
        if saved.done.exception() or not self._is_idle(log) or not log.sync.is_saved_by(saved.task):
            return False
        if (partition := self._replicas.opened(log.topic_partition)) is not None:
            self._replicas.let_go(partition)
        self._directories.close_saved(log)
        self._closed.add()
        return True

    def _is_idle(self, log: Log) -> bool:
        """Still, after others had their turn."""
        rest, state = self._at_rest[log], log.state
        is_unused = not state.is_read and rest.end_offset == state.log_end_offset
        return is_unused and self._directories.is_open(log) and self._can_be_closed(log)

    def _can_be_closed(self, log: Log) -> bool:
        if not log.is_online or log.topic_partition.topic in INTERNAL_TOPICS:
            return False
        if log.producers.ongoing or log.producers.guards.holds_anything or log.replacement.is_moving:
            return False
        partition = self._replicas.opened(log.topic_partition)
        if partition is not None and (partition.log is not log or not partition.is_at_rest):
            return False
        return not (log.config.is_compacted and self._is_to_be_cleaned(log))
