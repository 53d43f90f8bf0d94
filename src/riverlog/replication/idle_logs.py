"""A bound on open logs: of more than so many, those that nobody uses are saved and closed.

Only logs of partitions that have no other replica: where there are followers, the leader must know how far
they are. Not while a transaction is open in them, and none that is compacted, since the cleaner looks at open
ones. A log has to be left alone from one look to the next one, and those that were left alone for longest go
first; so the bound is passed while more are in use. Saving blocks in a thread, and a log that was used
meanwhile stays open. Readers at the end of a closed log go on waiting (`IdleReaders`).
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.model.metrics import Metrics
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.log.flusher import Flusher, Saving

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
    ) -> None:
        self._replicas = replicas
        self._directories = directories
        self._flusher = flusher
        self._open_max = open_max
        self._turn = asyncio.Lock()
        self._looks = 0
        self._at_rest: dict[Partition, _Rest] = {}
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

    async def _look(self) -> list[Partition]:
        """Those that were not used since the look before, the one first that was not used for longest."""
        self._looks += 1
        before, self._at_rest = self._at_rest, {}
        for number, partition in enumerate(self._replicas):
            if not number % _LOOKED_AT_PER_TURN:
                await asyncio.sleep(0)
            if not _can_be_closed(partition):
                continue
            state = partition.log.state
            rest = before.get(partition)
            if rest is None or state.is_read or rest.end_offset != state.log_end_offset:
                rest = _Rest(state.log_end_offset, self._looks)
            state.is_read = False
            self._at_rest[partition] = rest
        idle = [each for each, rest in self._at_rest.items() if rest.since < self._looks]
        return sorted(idle, key=lambda each: self._at_rest[each].since)

    async def _close(self, partitions: Sequence[Partition]) -> list[TopicPartition]:
        saving: dict[Partition, Saving] = {}
        for partition in partitions:
            await asyncio.sleep(0)
            if not self._is_idle(partition):
                continue
            with suppress(StorageError, DiskFullError):  # It stays open; who writes to it is told.
                if (begun := self._flusher.save(partition.log.sync)) is not None:
                    saving[partition] = begun
        await asyncio.gather(*(each.done for each in saving.values()), return_exceptions=True)
        return [
            partition.topic_partition
            for partition, each in saving.items()
            if await self._close_saved(partition, each)
        ]

    async def _close_saved(self, partition: Partition, saved: Saving) -> bool:
        await asyncio.sleep(0)
        log = partition.log
        if saved.done.exception() or not self._is_idle(partition) or not log.sync.is_saved_by(saved.task):
            return False
        self._replicas.let_go(partition)
        self._directories.close_saved(log)
        self._closed.add()
        return True

    def _is_idle(self, partition: Partition) -> bool:
        """Still, after others had their turn."""
        rest, state = self._at_rest[partition], partition.log.state
        is_unused = not state.is_read and rest.end_offset == state.log_end_offset
        return is_unused and self._replicas.is_open(partition) and _can_be_closed(partition)


def _can_be_closed(partition: Partition) -> bool:
    log = partition.log
    is_in_use = log.producers.ongoing or log.producers.guards.holds_anything or log.replacement.is_moving
    is_kept = log.config.is_compacted or partition.topic_partition.topic in INTERNAL_TOPICS
    return log.is_online and partition.is_at_rest and not is_in_use and not is_kept
