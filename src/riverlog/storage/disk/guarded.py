"""A disk whose failures are translated once: full means `DiskFullError`, anything else ends the directory.

After an I/O error nobody knows what the file system has kept, and after a failed fsync the kernel may have
dropped the pages that it could not write; so the directory goes offline for good and nothing is retried. A
full disk is different: the bytes that did not fit are known, so the caller cuts them off and goes on.
"""

import errno
from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from riverlog.model.disk import DirectoryLock, Disk, DiskFile, ReadableBuffer
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.storage.disk.damage import DamageReports

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
T = TypeVar("T")


class DirectoryHealth:
    """Whether one data directory can still be used. Goes offline once and stays so."""

    __slots__ = ("_listeners", "damage", "failure", "full_count", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.failure: str | None = None
        self.full_count = 0
        """How often something did not fit."""
        self.damage = DamageReports()
        self._listeners: list[Callable[[str], None]] = []

    @property
    def is_online(self) -> bool:
        return self.failure is None

    def require_online(self) -> None:
        if self.failure is not None:
            raise StorageError(f"{self.path} is offline: {self.failure}")

    def on_failure(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the reason once; from whichever thread met the failure."""
        self._listeners.append(listener)

    def fail(self, reason: str) -> None:
        if self.failure is not None:
            return
        self.failure = reason
        for listener in self._listeners:
            listener(reason)

    def translate(self, error: OSError, path: str) -> NoReturn:
        if error.errno in _FULL:
            self.full_count += 1
            raise DiskFullError(
                f"No room left for {path}: {error.strerror}. Free space or lower the retention; writing "
                "resumes by itself."
            ) from error
        self._end(f"{error.strerror or error} on {path}", error)

    def sync_failed(self, error: OSError, path: str) -> NoReturn:
        """Even "no space" is fatal here: the pages in question were acknowledged by write() and are gone."""
        self._end(f"fsync failed ({error.strerror or error}) on {path}", error)

    def _end(self, reason: str, error: OSError) -> NoReturn:
        self.fail(reason)
        raise StorageError(
            f"{self.path} goes offline: {reason}. Check the disk, then restart the broker."
        ) from error


class GuardedFile:
    """A file of a guarded disk. `pwrite` writes everything or raises."""

    __slots__ = ("_file", "_health")

    def __init__(self, file: DiskFile, health: DirectoryHealth) -> None:
        self._file = file
        self._health = health

    @property
    def path(self) -> str:
        return self._file.path

    def fileno(self) -> int | None:
        return self._file.fileno()

    def _run(self, operation: Callable[..., T], *arguments: int) -> T:
        """For what is not done at every request, which spares itself the call."""
        try:
            return operation(*arguments)
        except OSError as error:
            self._health.translate(error, self.path)

    def size(self) -> int:
        return self._run(self._file.size)

    def pread(self, length: int, position: int) -> bytes:
        try:
            return self._file.pread(length, position)
        except OSError as error:
            self._health.translate(error, self.path)

    def read_if_warm(self, length: int, position: int) -> bytes | bytearray | None:
        try:
            return self._file.read_if_warm(length, position)
        except OSError as error:
            self._health.translate(error, self.path)

    def is_warm(self, position: int, length: int) -> bool:
        return self._run(self._file.is_warm, position, length)

    def bring_in(self, position: int, length: int) -> None:
        self._run(self._file.bring_in, position, length)

    def pwrite(self, data: ReadableBuffer, position: int) -> int:
        try:
            written = self._file.pwrite(data, position)
            if written != len(data):
                rest = memoryview(data)
                while written < len(rest):
                    written += self._file.pwrite(rest[written:], position + written)
            return written
        except OSError as error:
            self._health.translate(error, self.path)

    def truncate(self, size: int) -> None:
        self._run(self._file.truncate, size)

    def datasync(self) -> None:
        try:
            self._file.datasync()
        except OSError as error:
            self._health.sync_failed(error, self.path)

    def close(self) -> None:
        self._file.close()


class GuardedDisk:
    """The disk port over another disk, for one data directory."""

    __slots__ = ("_disk", "health")

    def __init__(self, disk: Disk, health: DirectoryHealth) -> None:
        self._disk = disk
        self.health = health

    def _run(self, operation: Callable[[], T], path: str) -> T:
        try:
            return operation()
        except OSError as error:
            self.health.translate(error, path)

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        return GuardedFile(self._run(lambda: self._disk.open(path, create=create), path), self.health)

    def read(self, path: str) -> bytes:
        return self._run(lambda: self._disk.read(path), path)

    def exists(self, path: str) -> bool:
        return self._run(lambda: self._disk.exists(path), path)

    def size(self, path: str) -> int:
        return self._run(lambda: self._disk.size(path), path)

    def modified_ms(self, path: str) -> int:
        return self._run(lambda: self._disk.modified_ms(path), path)

    def list(self, path: str) -> list[str]:
        return self._run(lambda: self._disk.list(path), path)

    def list_if_there(self, path: str) -> Sequence[str] | None:
        """None for a directory that is gone: for who looks while another renames it. Any thread."""
        try:
            return self._disk.list(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.health.translate(error, path)

    def size_if_there(self, path: str) -> int | None:
        try:
            return self._disk.size(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.health.translate(error, path)

    def make_directories(self, path: str) -> None:
        self._run(lambda: self._disk.make_directories(path), path)

    def rename(self, old: str, new: str) -> None:
        self._run(lambda: self._disk.rename(old, new), old)

    def unlink(self, path: str) -> None:
        self._run(lambda: self._disk.unlink(path), path)

    def remove_tree(self, path: str) -> None:
        self._run(lambda: self._disk.remove_tree(path), path)

    def sync_directory(self, path: str) -> None:
        try:
            self._disk.sync_directory(path)
        except OSError as error:
            self.health.sync_failed(error, path)

    def free_bytes(self, path: str) -> int:
        return self._run(lambda: self._disk.free_bytes(path), path)

    def total_bytes(self, path: str) -> int:
        return self._run(lambda: self._disk.total_bytes(path), path)

    def lock(self, path: str) -> DirectoryLock:
        return self._disk.lock(path)
