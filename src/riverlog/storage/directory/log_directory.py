"""One data directory (`log.dirs`): its owner, its lock, and the logs in it.

Logs are opened when they are touched. After a clean shutdown a start reads one listing and three
checkpoints, however many partitions there are. After a crash each log is recovered when it is opened
(`recover` opens them all); those that nobody opened before the next clean shutdown are remembered as
unrecovered.

Everything is called on the event loop, apart from what is said to block: `open`, `recover`, `close`, and
the functions that the methods named `begin_` return. Not here: which partitions belong on this node.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from uuid import UUID

from riverlog.model.clock import Clock
from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import DirectoryLock, Disk
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.ids import BrokerEpoch, NodeId, TopicId, TopicPartition
from riverlog.storage.directory.checkpoints import DirectoryCheckpoints, RollCheckpoints
from riverlog.storage.directory.claim import own, take
from riverlog.storage.directory.cleaner_offsets import CleanerOffsets
from riverlog.storage.directory.closing import close_saved, write_states
from riverlog.storage.directory.directory_logs import DirectoryLogs
from riverlog.storage.directory.future_logs import FutureLogs
from riverlog.storage.directory.log_opener import LogOpener
from riverlog.storage.directory.opened_logs import OpenedLogs
from riverlog.storage.directory.present_logs import PresentLogs
from riverlog.storage.directory.state import (
    is_closed_properly,
    read_shutdown_state,
    remove_unfinished,
    write_shutdown_state,
)
from riverlog.storage.directory.upkeep import Upkeep
from riverlog.storage.disk.guarded import GuardedDisk
from riverlog.storage.disk.open_files import OpenFiles
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import partition_of
from riverlog.storage.files.deleted_files import remove
from riverlog.storage.files.meta_properties import MetaProperties, write_meta_properties
from riverlog.storage.files.partition_metadata import write_topic_id
from riverlog.storage.log.log import Log
from riverlog.storage.log.opening import LogEnvironment

_logger = logging.getLogger(__name__)

_NOTED_PER_TURN: Final = 500
"""So many open logs are looked at in a millisecond, or less."""


class LogDirectory:
    """Use `open`. `rolls.run_blocking` and the environment's `request_sync` take work off the loop; without
    them it blocks."""

    def __init__(
        self,
        path: str,
        *,
        environment: LogEnvironment,
        meta: MetaProperties,
        lock: DirectoryLock,
        config_for: Callable[[str], LogConfig],
        new_uuid: Callable[[], UUID],
        boot_id: str = "",
    ) -> None:
        self.path = path
        self.meta = meta
        self.health = environment.health
        self.environment = environment
        disk = self._disk = environment.files.disk
        assert isinstance(disk, GuardedDisk)
        self._clock = environment.clock
        self._lock = lock
        self._new_uuid = new_uuid
        self._deleted = environment.deleted
        self._checkpoints = DirectoryCheckpoints(path, disk)
        self._cleaned = CleanerOffsets(path, disk)
        opener = self._opener = LogOpener(path, environment, config_for, self._checkpoints, self._cleaned)
        self.futures = FutureLogs(path, disk, self._deleted, new_uuid, self._open_future)
        known = self._find_partitions()
        # `left_by` is the epoch of the registration under which it was closed with all of it on disk.
        is_marked = is_closed_properly(disk, path)
        dirty, self.left_by = read_shutdown_state(disk, path, known | self.futures.names, boot_id)
        self.futures.distrust(dirty)
        known -= remove_unfinished(disk, path, dirty & known)
        here = self._here = PresentLogs(known, dirty)
        self.was_clean = not here.unrecovered and (is_marked or not known)
        noted = self._opened = OpenedLogs(path, disk, boot_id, here.unrecovered | self.futures.names)
        self.logs = DirectoryLogs(path, disk, here, noted, opener, self._checkpoints, self._cleaned)
        self.upkeep = Upkeep(self.logs, noted, config_for)
        self.rolls = RollCheckpoints(self._checkpoints, self.logs.opened)
        environment.on_synced = self.rolls.note_synced

    @classmethod
    def open(
        cls,
        path: str,
        *,
        disk: Disk,
        clock: Clock,
        node_id: NodeId,
        cluster_id: str | None,
        new_uuid: Callable[[], UUID],
        config_for: Callable[[str], LogConfig] = lambda topic: LogConfig(),
        open_files: OpenFiles | None = None,
        boot_id: str = "",
    ) -> "LogDirectory":
        """Lock and read a data directory, or make a new one. `cluster_id` None takes what is found. Without a
        `boot_id` every log is recovered after a crash."""
        lock = take(disk, path)
        environment = LogEnvironment.at(path, disk, clock, open_files)
        try:
            meta = own(environment.files.disk, path, node_id, cluster_id, new_uuid)
            return cls(
                path,
                environment=environment,
                meta=meta,
                lock=lock,
                config_for=config_for,
                new_uuid=new_uuid,
                boot_id=boot_id,
            )
        except BaseException:
            lock.release()
            raise

    def join(self, cluster_id: str) -> None:
        """Take the id of the cluster that a new node has found; there is no partition here yet."""
        assert not self._here
        if self.meta.cluster_id != cluster_id:
            self.meta = self.meta._replace(cluster_id=cluster_id)
            write_meta_properties(self._disk, self.path, self.meta)

    def _find_partitions(self) -> set[str]:
        known = set[str]()
        for name in self._disk.list(self.path):
            if name.endswith(names.DELETED_DIRECTORY) and "." in name:
                self._deleted.add(f"{self.path}/{name}", 0)
            elif names.parse_partition_directory(name) is not None:
                known.add(name)
            elif (partition := names.parse_future_directory(name)) is not None:
                self.futures.found(partition, name)
        return known

    @property
    def is_online(self) -> bool:
        return self.health.is_online

    @property
    def unrecovered_count(self) -> int:
        return len(self._here.unrecovered)

    @property
    def open_count(self) -> int:
        return len(self.logs.opened)

    def __len__(self) -> int:
        return len(self._here)

    def __contains__(self, partition: TopicPartition) -> bool:
        return str(partition) in self._here

    def has(self, name: str) -> bool:
        return name in self._here

    def names(self) -> list[str]:
        """Of the directories of the partitions that are here, in no order."""
        return list(self._here)

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition that has a directory here, opened or not; in the order of their names."""
        return self._here.partitions()

    def opened(self) -> list[Log]:
        return list(self.logs.opened.values())

    def create(self, partition: TopicPartition, topic_id: TopicId | None) -> None:
        """Make the directory of a new partition. It is opened, and its files made, on first use."""
        self.health.require_online()
        name = str(partition)
        if name in self._here:
            return
        self._checkpoints.forget(name)
        self._cleaned.forget(name)
        if not self._checkpoints.forgotten(name):
            self.begin_checkpoint_of_noted()()
        directory = f"{self.path}/{name}"
        self._opened.note(name)
        self._disk.make_directories(directory)
        if topic_id is not None:
            try:
                write_topic_id(self._disk, directory, topic_id)
            except DiskFullError:
                # It may be made in another directory next, and would be found in both after a clean shutdown.
                self._disk.remove_tree(directory)
                raise
        self._here.add(name, is_new=True)

    def get(self, partition: TopicPartition, topic_id: TopicId | None = None) -> Log | None:
        """The log of a partition, opened (and recovered) now if it was not; None when there is none.

        `topic_id` is what the cluster metadata says: written where a crash took it, an error where the
        directory belongs to another topic of that name.
        """
        return self.logs.get(partition, topic_id)

    def begin_leaving(self, partitions: Iterable[TopicPartition]) -> Callable[[], None]:
        """These were closed so: the result writes that down, and blocks; `finish_leaving` follows it. Those
        that are still closed then are not recovered after a crash."""
        self._opened.begin_leaving(
            [name for each in partitions if (name := str(each)) not in self.logs.opened]
        )
        return self.begin_checkpoint_of_noted()

    def finish_leaving(self) -> None:
        self._opened.finish_leaving()

    def _open_future(self, name: str, partition: TopicPartition, topic_id: TopicId, *, clean: bool) -> Log:
        self.health.require_online()
        self._opened.note(name)
        return self._opener.open_future(name, partition, topic_id, is_clean=clean)

    def begin_adoption(self, partition: TopicPartition) -> Callable[[], None]:
        """Take the offsets of a log on its way in; the result writes them and blocks."""
        self._checkpoints.note(str(partition), self.futures[partition])
        return self.begin_checkpoint_of_noted()

    def adopt(self, partition: TopicPartition, cleaned_offset: int) -> Log:
        """Take in a copy that is whole, durable and closed. Blocks for a sync and to read its directory."""
        name = str(partition)
        self._checkpoints.note(name, self.futures[partition])
        self._opened.note(name)
        self.futures.complete(partition)
        self._here.add(name, is_new=False)
        log = self.logs.open(name, partition)
        self.logs.keep(name, log)
        log.state.cleaned_offset = cleaned_offset
        return log

    def release(self, partition: TopicPartition) -> None:
        """Let go of a log that was moved away; where the disk fails its files stay until the next start."""
        try:
            self.delete(partition)
        except (StorageError, DiskFullError):
            self.logs.forget(str(partition))
            if (log := self.logs.let_go(str(partition))) is not None:
                log.close(clean=False)

    def sync_names(self) -> None:
        """Make what was renamed last. Blocks; any thread."""
        self._disk.sync_directory(self.path)

    def recover(self) -> Iterator[Log]:
        """Open, one by one, every log that needs recovery. Blocks while a large one is scanned."""
        for name in sorted(self._here.unrecovered):
            if self._here.is_unrecovered(name) and (log := self.get(partition_of(name))) is not None:
                yield log

    def delete(self, partition: TopicPartition) -> None:
        """Take a partition out of the directory; its files are removed later."""
        if partition not in self:
            return
        renamed = f"{self.path}/{names.deleted_directory(str(partition), self._new_uuid().hex)}"
        self._take_out(str(partition), renamed)
        delay_ms = self._opener.config_for(partition.topic).file_delete_delay_ms
        self._deleted.add(renamed, self._clock.wall_ms() + delay_ms)

    def set_aside(self, partition: TopicPartition) -> None:
        """Take a partition that is here out of the directory but keep its files, under another name."""
        renamed = names.stray_directory(partition, self._new_uuid().hex)
        self._take_out(str(partition), f"{self.path}/{renamed}")
        self._disk.sync_directory(self.path)
        _logger.warning(
            "%s/%s belongs to no partition of this node and is now %s; `riverlog log strays` can remove it",
            self.path,
            partition,
            renamed,
        )

    def _take_out(self, name: str, renamed: str) -> None:
        self.health.require_online()
        if (log := self.logs.let_go(name)) is not None:
            log.rename_and_close(renamed)
        else:
            self._disk.rename(f"{self.path}/{name}", renamed)
        self.logs.forget(name)
        self._checkpoints.forget(name)
        self._cleaned.forget(name)

    @property
    def free_bytes(self) -> int:
        return self._disk.free_bytes(self.path)

    @property
    def total_bytes(self) -> int:
        return self._disk.total_bytes(self.path)

    def note_offsets(self) -> Iterator[None]:
        """Note those of all open logs for the next checkpoint; others may have their turn at each step."""
        opened = self.logs.opened
        for number, (name, log) in enumerate(list(opened.items()), 1):
            if opened.get(name) is log:
                self._checkpoints.note(name, log)
            if not number % _NOTED_PER_TURN:
                yield

    def begin_checkpoint_of_noted(self) -> Callable[[], None]:
        """Take the offsets as they were noted last; the result writes them and blocks."""
        return self._checkpoints.begin()

    def begin_checkpoint(self) -> Callable[[], None]:
        """Take all offsets now; the result writes them and blocks."""
        deque(self.note_offsets(), maxlen=0)
        return self._checkpoints.begin()

    def begin_cleaner_checkpoint(self) -> Callable[[], None]:
        """Take how far each log has been cleaned; the result writes it and blocks."""
        return self._cleaned.begin(self.logs.opened.items())

    def begin_removal(self, now_ms: int) -> Callable[[], None] | None:
        """Files that are due to go; the result removes them and blocks. None when there are none."""
        due = self._deleted.take_due(now_ms)
        return (lambda: remove(self._disk, due)) if due else None

    def begin_close(self) -> list[Log]:
        """What is to be saved (see `closing`) before `finish_close`. No sync may be in progress."""
        self.rolls.is_closed = True
        return [*self.opened(), *self.futures.opened()]

    def finish_close(self, broker_epoch: BrokerEpoch | None) -> None:
        """All logs are saved: write the rest. Blocks. `broker_epoch` is of the registration that ends."""
        self._disk.sync_directory(self.path)
        self.begin_checkpoint()()
        self._opened.remove()
        write_shutdown_state(self._disk, self.path, self._here.unrecovered, broker_epoch)

    def let_go(self) -> None:
        """Close what is open as it is, and release the directory. Blocks."""
        for log in (*self.opened(), *self.futures.opened()):
            log.close(clean=False)
        self.logs.opened.clear()
        self._lock.release()

    def close(self, *, clean: bool = True) -> None:
        """All of it here and now, for who has no event loop. Blocks. A log that cannot be saved, because the
        disk is full, leaves the directory to be recovered at the next start."""
        try:
            if clean and self.health.is_online:
                logs = self.begin_close()
                write_states(logs)
                close_saved(logs)
                self.finish_close(None)
        finally:
            self.let_go()
