"""Logs on their way into a data directory from another one: copies under a name of their own.

A copy that is complete loses that name by one rename and is the partition's log from then on. It carries a
note of where it came from until its original is gone, so that after a crash in between nobody takes the
original for the log. Not here: the copying (`log_move`), and the log that a copy becomes (`LogDirectory`).
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol
from uuid import UUID

from riverlog.model.disk import Disk
from riverlog.model.errors import StorageError
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import replace_file
from riverlog.storage.files.deleted_files import DeletedFiles
from riverlog.storage.log.log import Log

_NAME_MAX: Final = 255


class OpenFuture(Protocol):
    def __call__(self, name: str, partition: TopicPartition, topic_id: TopicId, *, clean: bool) -> Log: ...


class FutureLogs:
    """Of one data directory. Used on the event loop, apart from what is said to block."""

    def __init__(
        self,
        path: str,
        disk: Disk,
        deleted: DeletedFiles,
        new_uuid: Callable[[], UUID],
        open_log: "OpenFuture",
    ) -> None:
        self._path = path
        self._disk = disk
        self._deleted = deleted
        self._new_uuid = new_uuid
        self._open_log = open_log
        self._names: dict[TopicPartition, str] = {}
        self._logs: dict[TopicPartition, Log] = {}
        self._distrusted: set[str] = set()

    @property
    def names(self) -> set[str]:
        """Of the directories."""
        return set(self._names.values())

    def distrust(self, unclean: set[str]) -> None:
        """Name what no clean shutdown left behind: nobody knows how much of it is on disk."""
        self._distrusted = unclean & self.names

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(tuple(self._names))

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._names

    def __getitem__(self, partition: TopicPartition) -> Log:
        """A log that was begun or resumed since the start."""
        return self._logs[partition]

    def get(self, partition: TopicPartition) -> Log | None:
        return self._logs.get(partition)

    def opened(self) -> list[Log]:
        return list(self._logs.values())

    def found(self, partition: TopicPartition, name: str) -> None:
        """What an earlier run left behind."""
        if partition in self._names:
            self._discard_directory(name)
        else:
            self._names[partition] = name

    def begin(self, partition: TopicPartition, topic_id: TopicId) -> Log:
        """An empty log. Whatever copy was here before goes."""
        self.discard(partition)
        name = names.future_directory(partition, self._new_uuid().hex)
        if len(name) > _NAME_MAX:
            raise StorageError(f"{name} is too long for a directory; {partition} stays where it is.")
        log = self._logs[partition] = self._open_log(name, partition, topic_id, clean=False)
        self._names[partition] = name
        return log

    def resume(self, partition: TopicPartition, topic_id: TopicId, *, is_trusted: bool) -> Log:
        """The copy that an earlier run left behind, if its shutdown was clean for both logs; or a new one."""
        name = self._names[partition]
        if name in self._distrusted or not is_trusted:
            return self.begin(partition, topic_id)
        log = self._logs[partition] = self._open_log(name, partition, topic_id, clean=True)
        return log

    def discard(self, partition: TopicPartition) -> None:
        name = self._names.pop(partition, None)
        log = self._logs.pop(partition, None)
        if log is not None:
            log.close(clean=False)
            self._deleted.drop_below(log.directory)
        if name is not None:
            self._discard_directory(name)

    def complete(self, partition: TopicPartition) -> None:
        """Give a copy that is whole, durable and closed the name of the partition."""
        name = self._names[partition]
        self._deleted.drop_below(f"{self._path}/{name}")
        self._disk.rename(f"{self._path}/{name}", f"{self._path}/{partition}")
        self._disk.sync_directory(self._path)
        del self._names[partition], self._logs[partition]

    def note_origin(self, partition: TopicPartition, origin: str) -> None:
        """Say where the copy comes from, before it takes over. Blocks; any thread."""
        replace_file(self._disk, f"{self._path}/{self._names[partition]}/{names.MOVED_FROM}", origin.encode())

    def has_origin(self, partition: TopicPartition) -> bool:
        """Whether the partition's log here was moved in and its original may still be somewhere."""
        return self._disk.exists(f"{self._path}/{partition}/{names.MOVED_FROM}")

    def forget_origin(self, partition: TopicPartition) -> None:
        """The original is gone for good. Blocks; any thread."""
        if self.has_origin(partition):
            self._disk.unlink(f"{self._path}/{partition}/{names.MOVED_FROM}")
            self._disk.sync_directory(f"{self._path}/{partition}")

    def _discard_directory(self, name: str) -> None:
        renamed = f"{self._path}/{names.deleted_directory(name, self._new_uuid().hex)}"
        self._disk.rename(f"{self._path}/{name}", renamed)
        self._deleted.add(renamed, 0)
