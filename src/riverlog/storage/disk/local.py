"""The disk port on a real file system.

A file is closed when the last reference to it goes, so that a slice which is still being sent keeps its
descriptor however many others have been evicted or deleted meanwhile.

Whether bytes are in the page cache is told by a read with RWF_NOWAIT, which fails instead of waiting for the
disk. File systems that cannot tell (or systems without the call) count as warm.
"""

import errno
import fcntl
import os
import shutil
from typing import Final

from riverlog.model.disk import DirectoryLock, DiskFile, ReadableBuffer

_NOWAIT: Final[int | None] = getattr(os, "RWF_NOWAIT", None)
_CANNOT_TELL: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_PROBE: Final = [bytearray(1)]


class LocalFile:
    """A descriptor and the path that it was opened by."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @property
    def path(self) -> str:
        return self._path

    def fileno(self) -> int:
        return self._descriptor

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def pread(self, length: int, position: int) -> bytes:
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        missing = length - len(data)
        while missing and (more := os.pread(self._descriptor, missing, position + length - missing)):
            parts.append(more)
            missing -= len(more)
        return b"".join(parts)

    def read_if_warm(self, length: int, position: int) -> bytes | bytearray | None:
        if _NOWAIT is None:
            return os.pread(self._descriptor, length, position)
        buffer = bytearray(length)
        try:
            count = os.preadv(self._descriptor, [buffer], position, _NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno in _CANNOT_TELL:
                return os.pread(self._descriptor, length, position)
            raise
        return buffer if count == length else None

    def is_warm(self, position: int, length: int) -> bool:
        if _NOWAIT is None:
            return True
        descriptor = self._descriptor
        try:
            return (
                os.preadv(descriptor, _PROBE, position, _NOWAIT) == 1
                and os.preadv(descriptor, _PROBE, position + length - 1, _NOWAIT) == 1
            )
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in _CANNOT_TELL:
                return True
            raise

    def bring_in(self, position: int, length: int) -> None:
        """Sent to nowhere, it is read and copied to nobody."""
        end = position + length
        with open(os.devnull, "wb", buffering=0) as nowhere:
            while position < end and (
                count := os.sendfile(nowhere.fileno(), self._descriptor, position, end - position)
            ):
                position += count

    def pwrite(self, data: ReadableBuffer, position: int) -> int:
        return os.pwrite(self._descriptor, data, position)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def datasync(self) -> None:
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class LocalLock:
    """An advisory lock that the kernel drops when the process dies."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class LocalDisk:
    def open(self, path: str, *, create: bool = False) -> DiskFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return LocalFile(path, os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        with open(path, "rb", buffering=0) as file:
            return file.read() or b""

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def list(self, path: str) -> list[str]:
        return os.listdir(path)

    def make_directories(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        if os.path.exists(path):
            shutil.rmtree(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, path: str) -> int:
        statistics = os.statvfs(path)
        return statistics.f_bavail * statistics.f_frsize

    def total_bytes(self, path: str) -> int:
        statistics = os.statvfs(path)
        return statistics.f_blocks * statistics.f_frsize

    def lock(self, path: str) -> DirectoryLock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            # A POSIX record lock is what Java's FileLock takes, so a Kafka broker is kept out as well. It
            # does not keep out this very process, hence the flock beside it.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise BlockingIOError(error.errno, "the lock is held", path) from error
        return LocalLock(descriptor)
