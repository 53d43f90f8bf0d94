"""The data directories of a node (`log.dirs`) as one: where a partition's log is, and what is due to be done.

A new partition goes to the directory that holds the fewest. What blocks (checkpoints, removing files) runs on
one thread that this object owns; the logs themselves are touched on the event loop only.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar

from riverlog.model.clock import Clock
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.executor import Executor
from riverlog.model.ids import BrokerEpoch, TopicId, TopicPartition
from riverlog.model.pieces import Pieces, sorted_in_pieces
from riverlog.storage.directory.checkpoints import unless_failing
from riverlog.storage.directory.closing import save
from riverlog.storage.directory.described import DescribedDirectory, FutureReplica
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.directory.log_move import settle_moves
from riverlog.storage.files.checkpoint import partition_of
from riverlog.storage.log.closed_log import NOTHING, LogFacts
from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.log import Log

_MEASURED_AT_ONCE = 200

_logger = logging.getLogger(__name__)
T = TypeVar("T")


class DataDirectories:
    def __init__(
        self,
        directories: Sequence[LogDirectory],
        flusher: Flusher,
        thread: Executor,
        clock: Clock,
        hosted: Callable[[], Iterable[tuple[TopicPartition, TopicId]]],
        *,
        unusable: Sequence[str] = (),
        savers: Executor | None = None,
    ) -> None:
        """`thread` runs one thing at a time; `savers` save the logs at a clean shutdown. `hosted` names the
        partitions that belong here, with a directory of their own or not yet. `unusable` are directories that
        could not be opened; they stay offline until the next start."""
        self._directories = directories
        self._flusher = flusher
        self._thread = thread
        self._savers = savers or thread
        self._clock = clock
        self._hosted = hosted
        self._unusable = tuple(unusable)
        self._missing: frozenset[tuple[TopicPartition, TopicId]] = frozenset()
        self.changes = 0
        """Another number whenever `facts_of` may answer otherwise than before."""
        self._loop = asyncio.get_running_loop()
        for directory in directories:
            directory.environment.request_sync = flusher.request
            directory.rolls.run_blocking = self._run_blocking
            directory.logs.on_changed = self._note_change
            directory.health.on_failure(lambda _: self._note_change())
            directory.health.on_failure(lambda reason, path=directory.path: _report(path, reason))  # type: ignore[misc]

    def _note_change(self) -> None:
        """From any thread: two at once may count as one."""
        self.changes += 1

    def abandon(self) -> None:
        """Close every file and release every lock as it is. Nothing may be in progress."""
        for directory in self._directories:
            directory.close(clean=False)

    @property
    def has_unusable(self) -> bool:
        """Whether some directories could not be opened, and may be again at another start."""
        return bool(self._unusable)

    @property
    def online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if directory.is_online]

    def open_log(self, topic_partition: TopicPartition, topic_id: TopicId) -> Log:
        """The log, created if it is new. Raises `StorageError` or `DiskFullError`."""
        directory = self.directory_of(topic_partition)
        if directory is not None and directory.logs.topic_id_of(topic_partition) not in (topic_id, None):
            directory.set_aside(topic_partition)  # It is left from another topic of the same name.
            directory = None
        if directory is None:
            directory = min(self._online_for(topic_partition, topic_id), key=len)
            directory.create(topic_partition, topic_id)
        log = directory.get(topic_partition, topic_id)
        assert log is not None
        return log

    def _online_for(self, topic_partition: TopicPartition, topic_id: TopicId) -> list[LogDirectory]:
        """Where a new log can be; there is one at least."""
        if self._missing and (topic_partition, topic_id) in self._missing:
            raise StorageError(f"It may be in {', '.join(self._unusable)}, which could not be opened.")
        online = self.online
        if not online:
            raise StorageError("No data directory is usable. Check the disks, then restart the broker.")
        return online

    def facts_of(self, topic_partition: TopicPartition, topic_id: TopicId) -> LogFacts | None:
        """What is known of a log that is not open; None where it must be opened for that. Raises as
        `open_log` does. Nothing is made, and no log stays open."""
        directory = self.directory_of(topic_partition)
        if directory is not None:
            facts = directory.logs.facts_of(topic_partition)
            if facts is None or facts.topic_id in (topic_id, None):
                return facts
            # It is left from another topic of the same name, and set aside when this one is written to.
        self._online_for(topic_partition, topic_id)
        return NOTHING

    def look_inside(self, topic_partition: TopicPartition, topic_id: TopicId) -> AbstractContextManager[Log]:
        """A log that is not open and has facts, opened for a moment."""
        directory = self.directory_of(topic_partition)
        assert directory is not None
        return directory.logs.look_inside(topic_partition)

    @property
    def has_failed(self) -> bool:
        """Whether there are directories that cannot be used, opened or not."""
        return bool(self._unusable) or len(self.online) < len(self._directories)

    def on_failure(self, listener: Callable[[], None]) -> None:
        """Have it called whenever a directory fails, from whichever thread finds out."""
        for directory in self._directories:
            directory.health.on_failure(lambda reason: listener())

    def on_closed_cut(self, listener: Callable[[TopicPartition], None]) -> None:
        """Have it called when retention takes something from a log that is closed."""
        for directory in self._directories:
            directory.upkeep.on_closed_cut = listener

    def offline(self) -> Iterator[tuple[TopicPartition, TopicId]]:
        """What belongs here and is in a directory that has failed, or may be."""
        for partition, topic_id in self._hosted():
            directory = self.directory_of(partition)
            is_failed = directory is not None and not directory.is_online
            if is_failed or (directory is None and (partition, topic_id) in self._missing):
                yield partition, topic_id

    def note_missing(self) -> None:
        """Call once, before anything is opened: a partition that is in none of the directories may be in one
        that could not be opened. It is served when that one is back, and never begun anew meanwhile."""
        if self._unusable:
            self._note_change()
            self._missing = frozenset(each for each in self._hosted() if self.directory_of(each[0]) is None)

    def holds_log(self, topic_partition: TopicPartition) -> bool:
        return self.directory_of(topic_partition) is not None

    def has_directory(self, path: str) -> bool:
        return any(each.path == path for each in self._directories)

    def at(self, path: str) -> LogDirectory:
        return next(each for each in self._directories if each.path == path)

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """With the copy of it that may be on its way into another directory."""
        for directory in self._directories:
            try:
                directory.futures.discard(topic_partition)
                directory.delete(topic_partition)
            except (StorageError, DiskFullError) as error:
                if topic_partition in directory:
                    _logger.error("%s could not be deleted: %s", topic_partition, error)

    def settle_moves(self) -> "list[tuple[LogDirectory, TopicPartition]]":
        """Copies that an earlier run left unfinished and whose originals are here; the others go."""
        settle_moves(self.online)
        unfinished: list[tuple[LogDirectory, TopicPartition]] = []
        for directory in self.online:
            for partition in directory.futures:
                if self.directory_of(partition) in (None, directory):
                    directory.futures.discard(partition)
                else:
                    unfinished.append((directory, partition))
        return unfinished

    def describe(self, wanted: Collection[TopicPartition] | None) -> Pieces[Sequence[DescribedDirectory]]:
        described: list[DescribedDirectory] = []
        for directory in self._directories:
            try:
                described.append((yield from self._describe(directory, wanted)))
            except StorageError:
                described.append(_offline(directory.path))  # It failed meanwhile, which was told.
        return [*described, *map(_offline, self._unusable)]

    def _describe(
        self, directory: LogDirectory, wanted: Collection[TopicPartition] | None
    ) -> Pieces[DescribedDirectory]:
        if not directory.is_online:
            return _offline(directory.path)
        sizes = yield from self._sizes_in(directory, wanted)
        if directory is self._directories[0]:
            # Partitions that nobody has used yet have no directory; they will be somewhere, and are empty.
            unused = yield from self._unused(wanted)
            for topic, indexes in unused.items():
                sizes.setdefault(topic, {}).update((index, 0) for index in indexes)
                yield None
        space = self._loop.run_in_executor(
            self._thread, lambda: (directory.total_bytes, directory.free_bytes)
        )
        yield space
        return DescribedDirectory(
            directory.path,
            sizes,
            *space.result(),
            futures={
                log.topic_partition: FutureReplica(log.size_bytes, self._lag_of(log))
                for log in directory.futures.opened()
                if wanted is None or log.topic_partition in wanted
            },
        )

    def _sizes_in(
        self, directory: LogDirectory, wanted: Collection[TopicPartition] | None
    ) -> Pieces[dict[str, dict[int, int]]]:
        """Of those that have a directory, by topic; files are looked at where nobody has done so before."""
        sizes: dict[str, dict[int, int]] = {}
        unknown: list[str] = []
        in_order = (yield from sorted_in_pieces(directory.names())) if wanted is None else map(str, wanted)
        for name in in_order:
            yield None
            if not directory.has(name):
                continue
            partition = partition_of(name)
            size = directory.logs.size_of(name)
            if size is None:
                unknown.append(name)
            sizes.setdefault(partition.topic, {})[partition.partition] = size or 0
        for start in range(0, len(unknown), _MEASURED_AT_ONCE):
            some = unknown[start : start + _MEASURED_AT_ONCE]
            measuring = self._loop.run_in_executor(self._thread, directory.logs.measure, some)
            yield measuring
            directory.logs.note_sizes(measuring.result())
            for name in some:
                partition = partition_of(name)
                size = directory.logs.size_of(name)
                if size is None:
                    sizes[partition.topic].pop(partition.partition)  # It is gone meanwhile.
                else:
                    sizes[partition.topic][partition.partition] = size
        return sizes

    def _unused(self, wanted: Collection[TopicPartition] | None) -> Pieces[dict[str, list[int]]]:
        """Partitions that belong here and have no directory, by topic, in order."""
        found: dict[str, list[int]] = {}
        for partition, topic_id in self._hosted():
            yield None
            is_wanted = wanted is None or partition in wanted
            is_missing = bool(self._missing) and (partition, topic_id) in self._missing
            if is_wanted and not is_missing and self.directory_of(partition) is None:
                found.setdefault(partition.topic, []).append(partition.partition)
        in_order = yield from sorted_in_pieces(found)
        return {topic: found[topic] for topic in in_order}

    def _lag_of(self, future: Log) -> int:
        """How far a copy is behind. Its original is open as long as it is copied."""
        home = self.directory_of(future.topic_partition)
        original = None if home is None else home.get(future.topic_partition)
        return 0 if original is None else max(original.log_end_offset - future.log_end_offset, 0)

    async def recover(self) -> list[TopicPartition]:
        """Open every log that was not closed cleanly, before anything is served; those in which a transaction
        is open."""
        has_open: list[TopicPartition] = []
        for directory in self.online:
            if directory.unrecovered_count:
                _logger.warning(
                    "%s was not shut down cleanly; recovering %d logs",
                    directory.path,
                    directory.unrecovered_count,
                )
                has_open += await self.in_thread(lambda each=directory: _recover(each))  # type: ignore[misc]
                # A power cut may have taken what the high watermarks of before count: what is written in its
                # place would be taken for committed by the next start.
                await self.in_thread(partial(unless_failing, directory.begin_checkpoint()))
        return has_open

    async def apply_retention(self) -> None:
        """Log by log, with a turn of the event loop for the others after each."""
        for directory in self.online:
            for deleted in directory.upkeep.retention_steps(self._clock.wall_ms()):
                if deleted:
                    _logger.info("%s: retention let %d segments go", directory.path, deleted)
                await asyncio.sleep(0)

    def flush_due(self) -> None:
        for directory in self.online:
            for log in directory.upkeep.flush_due(self._clock.wall_ms()):
                self._flusher.request(log.sync)

    async def write_checkpoints(self) -> None:
        for directory in self.online:
            for _ in directory.note_offsets():
                await asyncio.sleep(0)
            await self.in_thread(directory.begin_checkpoint_of_noted())

    async def remove_deleted(self) -> None:
        for directory in self.online:
            removal = directory.begin_removal(self._clock.wall_ms())
            if removal is not None:
                await self.in_thread(removal)

    def expire_producers(self) -> None:
        for directory in self.online:
            directory.upkeep.expire_producers(self._clock.wall_ms())

    async def run_what_is_due(self) -> None:
        """All of it now; return when it is done, and when closed segments are on disk, as compaction wants
        them to be."""
        self.expire_producers()
        self.flush_due()
        await self.apply_retention()
        await self.remove_deleted()
        await self._flusher.drain()

    async def close(self, *, clean: bool, broker_epoch: BrokerEpoch | None = None) -> None:
        """Close them all, at the end of this registration; raises the first failure afterwards.

        A full disk is none: everything acknowledged is in the log, and the next start recovers the rest.
        """
        failures: list[StorageError] = []
        for directory in self._directories:
            try:
                await self._close(directory, clean, broker_epoch)
            except DiskFullError as error:
                _logger.error(
                    "%s has no room for a clean shutdown and is recovered at the next start: %s",
                    directory.path,
                    error,
                )
            except StorageError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    async def _close(self, directory: LogDirectory, clean: bool, broker_epoch: BrokerEpoch | None) -> None:
        try:
            if clean and directory.is_online:
                await save(directory.path, directory.begin_close(), self._savers)
                await self.in_thread(lambda: directory.finish_close(broker_epoch))
        finally:
            await self.in_thread(directory.let_go)

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        return next((each for each in self._directories if topic_partition in each), None)

    @property
    def open_count(self) -> int:
        """How many logs are open."""
        return sum(each.open_count for each in self._directories)

    def is_open(self, log: Log) -> bool:
        """Whether it is still what is here."""
        directory = self.directory_of(log.topic_partition)
        return directory is not None and directory.logs.is_open(log)

    def close_saved(self, log: Log) -> None:
        """Close a log that is open, and of which all is on disk."""
        directory = self.directory_of(log.topic_partition)
        assert directory is not None
        directory.logs.close_saved(log)

    async def note_closed(self, partitions: Collection[TopicPartition]) -> None:
        """These were closed so, and unless they are opened again need no recovery after a crash."""
        for directory in self.online:
            await self.in_thread(directory.begin_leaving(each for each in partitions if each in directory))
            directory.finish_leaving()

    def _run_blocking(self, work: Callable[[], None]) -> None:
        self._loop.run_in_executor(self._thread, work)

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await self._loop.run_in_executor(self._thread, work)


def _offline(path: str) -> DescribedDirectory:
    return DescribedDirectory(path, {}, 0, 0, is_offline=True)


def _recover(directory: LogDirectory) -> list[TopicPartition]:
    has_open: list[TopicPartition] = []
    for log in directory.recover():
        if log.cut_bytes:
            _logger.warning("%s: %d bytes of an unfinished write were cut off", log.directory, log.cut_bytes)
        if log.producers.open_transactions():
            has_open.append(log.topic_partition)
    return has_open


def _report(path: str, reason: str) -> None:
    _logger.error("%s goes offline: %s. Check the disk, then restart the broker.", path, reason)
