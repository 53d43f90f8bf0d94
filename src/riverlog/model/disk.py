"""The disk port: everything the log engine asks of a file system.

Calls block; the caller decides which of them may run on the event loop. `OSError` passes through to the
storage layer, which translates it once. A real adapter is in `riverlog.storage.disk.local`; the simulated
one, which loses unsynced writes, tears them and fails on request, is in `riverlog.testing`.
"""

from typing import NamedTuple, Protocol

ReadableBuffer = bytes | bytearray | memoryview


class DiskFile(Protocol):
    """An open file."""

    @property
    def path(self) -> str: ...

    def fileno(self) -> int | None:
        """A descriptor that the operating system can send from; None when the file is not one of its."""
        ...

    def size(self) -> int: ...

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def read_if_warm(self, length: int, position: int) -> bytes | bytearray | None:
        """The bytes, or None when reading them now would wait for the disk (or ends before `length`)."""
        ...

    def is_warm(self, position: int, length: int) -> bool:
        """Whether the first and the last byte of a range can be read without waiting for the disk."""
        ...

    def bring_in(self, position: int, length: int) -> None:
        """Have a range in memory, so that reading it does not wait for the disk; it may end earlier."""
        ...

    def pwrite(self, data: ReadableBuffer, position: int) -> int:
        """Write and return the number of bytes written, which may be fewer than given."""
        ...

    def truncate(self, size: int) -> None: ...

    def datasync(self) -> None: ...

    def close(self) -> None: ...


class FileSlice(NamedTuple):
    """Bytes of a file that are sent without being copied. Holding the slice keeps the file open."""

    file: DiskFile
    position: int
    length: int


class DirectoryLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are absolute or relative to the working directory, as strings."""

    def open(self, path: str, *, create: bool = False) -> DiskFile: ...

    def read(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def list(self, path: str) -> list[str]:
        """Names of the entries of a directory, unsorted."""
        ...

    def make_directories(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None: ...

    def unlink(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def remove_tree(self, path: str) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...

    def lock(self, path: str) -> DirectoryLock:
        """Take an exclusive lock on a file; raises `BlockingIOError` when another process holds it."""
        ...
