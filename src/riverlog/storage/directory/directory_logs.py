"""The logs of one data directory: those that are open, and what is known of those that are closed.

A log is opened with what the checkpoints say of it, for good or for a moment. When it is closed again what it
says of itself is kept, until it is opened the next time: nothing changes a closed log. Not here: making,
renaming and removing directories (`log_directory`), and what time does to the logs (`upkeep`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from riverlog.model.ids import TopicId, TopicPartition
from riverlog.storage.directory.checkpoints import DirectoryCheckpoints
from riverlog.storage.directory.cleaner_offsets import CleanerOffsets
from riverlog.storage.directory.closed_logs import ClosedLogs
from riverlog.storage.directory.log_opener import LogOpener
from riverlog.storage.directory.opened_logs import OpenedLogs
from riverlog.storage.directory.present_logs import PresentLogs
from riverlog.storage.disk.guarded import GuardedDisk
from riverlog.storage.files.checkpoint import partition_of
from riverlog.storage.files.partition_metadata import read_topic_id, write_topic_id
from riverlog.storage.log.closed_log import NOTHING, LogFacts, facts_of
from riverlog.storage.log.log import Log


class DirectoryLogs:
    def __init__(
        self,
        path: str,
        disk: GuardedDisk,
        here: PresentLogs,
        noted: OpenedLogs,
        opener: LogOpener,
        checkpoints: DirectoryCheckpoints,
        cleaned: CleanerOffsets,
    ) -> None:
        self._path = path
        self._disk = disk
        self._here = here
        self._noted = noted
        self._opener = opener
        self._checkpoints = checkpoints
        self._cleaned = cleaned
        self._closed = ClosedLogs(path, disk)
        self.measure = self._closed.measure
        self.opened: dict[str, Log] = {}
        """By the names of their directories."""
        self.on_changed: Callable[[], None] = lambda: None  # `facts_of` may answer otherwise than before.

    def get(self, partition: TopicPartition, topic_id: TopicId | None = None) -> Log | None:
        """As `LogDirectory.get`."""
        name = str(partition)
        log = self.opened.get(name)
        if log is None and name in self._here:
            self._noted.note(name)
            log = self.opened[name] = self.open(name, partition, topic_id)
            self._here.note_opened(name)
        elif log is not None and log.topic_id is None and topic_id is not None:
            write_topic_id(self._disk, f"{self._path}/{name}", topic_id)
            log.topic_id = topic_id
        return log

    def topic_id_of(self, partition: TopicPartition) -> TopicId | None:
        """The topic id on disk, without opening the log."""
        log = self.opened.get(str(partition))
        if log is not None:
            return log.topic_id
        is_clean = not self._here.is_unrecovered(str(partition))
        return read_topic_id(self._disk, f"{self._path}/{partition}", clean=is_clean)

    def open(self, name: str, partition: TopicPartition, topic_id: TopicId | None = None) -> Log:
        """Open it now; the caller closes it, or has it kept open."""
        self._disk.health.require_online()
        self._closed.forget(name)
        self.on_changed()
        return self._opener.open(partition, topic_id, is_clean=self._here.is_clean(name))

    def keep(self, name: str, log: Log) -> None:
        """It stays open, so that a crash may find it half written."""
        self._noted.note(name)
        self.opened[name] = log

    def is_open(self, log: Log) -> bool:
        return self.opened.get(str(log.topic_partition)) is log

    def close(self, name: str, log: Log, *, is_saved: bool = False) -> None:
        """Close a log of which nothing is left to be synced; what is known of it stays."""
        self._checkpoints.note(name, log)
        self._cleaned.note(name, log)
        self._closed.note(name, facts_of(log), is_compacted=log.config.is_compacted)
        self.on_changed()
        try:
            log.close(clean=not is_saved)
        finally:
            log.close(clean=False)  # Where it could not be saved its files are let go all the same.

    def close_saved(self, log: Log) -> None:
        """Close a log that is open, and of which all is on disk (`LogSync.is_saved_by`)."""
        name = str(log.topic_partition)
        assert self.opened[name] is log
        del self.opened[name]
        self.close(name, log, is_saved=True)

    def let_go(self, name: str) -> Log | None:
        """It is not open any more; the caller closes it."""
        return self.opened.pop(name, None)

    def forget(self, name: str) -> None:
        """It is not here any more."""
        self._here.remove(name)
        self._closed.forget(name)
        self.on_changed()

    def is_closed(self, name: str) -> bool:
        """Whether there are records in it, and somebody has closed it as it should be."""
        is_closed = name in self._checkpoints.recovery_points and name not in self.opened
        return is_closed and name in self._here and not self._here.is_unrecovered(name)

    def closed(self) -> Iterator[TopicPartition]:
        """Those that are closed so, also when they are opened and closed meanwhile."""
        names = list(self._checkpoints.recovery_points)
        return (partition_of(name) for name in names if self.is_closed(name))

    def closed_to_clean(self) -> list[TopicPartition]:
        """The compacted logs that were closed since the start, some day to be looked at again."""
        return [partition_of(name) for name in self._closed.compacted]

    @contextmanager
    def open_for_a_moment(self, partition: TopicPartition) -> Iterator[Log]:
        name = str(partition)
        log = self.open(name, partition)
        try:
            yield log
        finally:
            self.close(name, log)

    @contextmanager
    def look_inside(self, partition: TopicPartition) -> Iterator[Log]:
        """Open a log for a moment; what it says of itself is kept."""
        name = str(partition)
        assert name not in self.opened
        assert not self._here.is_unrecovered(name)
        with self.open_for_a_moment(partition) as log:
            yield log

    def facts_of(self, partition: TopicPartition) -> LogFacts | None:
        """What is known of a log that is here and not open, which may take a look into it; None when it is
        open, or must be opened for good to be recovered."""
        self._disk.health.require_online()
        name = str(partition)
        facts = self._closed.facts_of(name)
        if facts is not None:
            return facts
        if name in self.opened or self._here.is_unrecovered(name):
            return None
        if self._here.is_new(name):
            return NOTHING._replace(topic_id=self.topic_id_of(partition))
        with self.look_inside(partition):
            pass
        return self._closed.facts_of(name)

    def size_of(self, name: str) -> int | None:
        """Bytes in the segments of a partition that is here; None where nobody has looked yet."""
        if (log := self.opened.get(name)) is not None:
            return log.size_bytes
        return 0 if self._here.is_new(name) else self._closed.size_of(name)

    def note_sizes(self, measured: dict[str, int]) -> None:
        for name, size_bytes in measured.items():
            if name in self._here and self.size_of(name) is None:
                self._closed.note_size(name, size_bytes)
