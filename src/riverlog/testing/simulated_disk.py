"""A disk in memory that behaves as badly as a real one may.

It keeps apart what was written and what was synced, for the content of files and for directory entries.
`crash` takes the power away: of the writes to a file that were not synced, some survive, some are lost,
some are torn; of the changes to a directory that were not synced, only the first few survive. `kill` ends
the process only, so everything written stays. Failures are injected by `fail` and `capacity_bytes`;
`power_off_after` stops at the n-th change, so that a test can crash after each of them. The same seed gives
the same crash.
"""

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from riverlog.model.disk import DirectoryLock, DiskFile, ReadableBuffer

Operation = Literal["open", "read", "write", "truncate", "sync", "sync_directory", "rename", "unlink"]


class PowerOff(BaseException):
    """The power went; nothing may run any more on this disk until `crash`."""


@dataclass(slots=True)
class _Write:
    position: int
    data: bytes


@dataclass(slots=True)
class _Truncate:
    size: int


@dataclass(slots=True, eq=False)
class _Inode:
    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""
    unsynced: list[_Write | _Truncate] = field(default_factory=list)
    modified_ms: int = 0

    def tear(self, chance: random.Random) -> None:
        """What is left after the power went."""
        content = bytearray(self.synced)
        for change in self.unsynced:
            fate = chance.random()
            if fate < 0.3:
                continue
            match change:
                case _Truncate(size):
                    _set_size(content, size)
                case _Write(position, data):
                    kept = data if fate < 0.8 else data[: chance.randrange(len(data) + 1)]
                    _put(content, position, kept)
        self.content, self.synced, self.unsynced = content, bytes(content), []


@dataclass(slots=True)
class _Names:
    """Directories, and files by path."""

    directories: set[str] = field(default_factory=lambda: {"/"})
    files: dict[str, _Inode] = field(default_factory=dict)

    def copy(self) -> "_Names":
        return _Names(set(self.directories), dict(self.files))

    def create(self, path: str, inode: _Inode) -> None:
        self.files[path] = inode

    def make_directory(self, path: str) -> None:
        self.directories.add(path)

    def reachable(self) -> "_Names":
        """Without what lies in a directory that is itself not there."""
        directories = {path for path in self.directories if self._leads_to_root(path)}
        files = {path: inode for path, inode in self.files.items() if _parent(path) in directories}
        return _Names(directories, files)

    def _leads_to_root(self, path: str) -> bool:
        return path == "/" or (path in self.directories and self._leads_to_root(_parent(path)))

    def rename(self, old: str, new: str) -> None:
        if old in self.files:
            self.files[new] = self.files.pop(old)
        elif old in self.directories:
            self.directories = {_moved(path, old, new) for path in self.directories}
            self.files = {_moved(path, old, new): inode for path, inode in self.files.items()}

    def remove(self, path: str) -> None:
        self.files.pop(path, None)
        if path in self.directories:
            self.directories = {name for name in self.directories if not _is_below(name, path)}
            self.files = {name: inode for name, inode in self.files.items() if not _is_below(name, path)}


@dataclass(slots=True)
class _NameChange:
    directory: str
    apply: Callable[[_Names], None]


class SimulatedDisk:
    """The disk port in memory. Paths are absolute."""

    def __init__(self, *, capacity_bytes: int | None = None, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.capacity_bytes = capacity_bytes
        self.short_writes: random.Random | None = None
        self.operations = 0
        self.power_off_after: int | None = None
        self.syncs_are_ignored = False
        self.counts: dict[str, int] = {}
        self._now_ms = now_ms
        self._names = _Names()
        self._durable = _Names()
        self._pending: list[_NameChange] = []
        self._failures: dict[str, tuple[int, int]] = {}
        self._locks: set[str] = set()
        self._boot = 0

    def fail(self, operation: Operation, error: int = errno.EIO, *, after: int = 0) -> None:
        """Let the operation fail with an errno, once, after it has succeeded `after` times more."""
        self._failures[operation] = (after, error)

    def crash(self, seed: int) -> None:
        """Take the power away and come back with what a disk may have kept."""
        chance = random.Random(seed)
        survivors: dict[str, int] = {}
        for directory in {change.directory: None for change in self._pending}:
            total = sum(1 for change in self._pending if change.directory == directory)
            survivors[directory] = chance.randrange(total + 1)
        for change in self._pending:
            if survivors[change.directory] > 0:
                survivors[change.directory] -= 1
                change.apply(self._durable)
        self._pending = []
        self._durable = self._durable.reachable()
        self._names = self._durable.copy()
        for inode in dict.fromkeys(self._names.files.values()):
            inode.tear(chance)
        self.kill()

    def kill(self) -> None:
        """End the process: files that were open can no longer be used, but nothing written is lost."""
        self._boot += 1
        self._locks.clear()
        self._failures.clear()
        self.power_off_after = None

    def flip_bit(self, path: str, bit: int) -> None:
        """Let the medium rot, on disk and in memory."""
        inode = self._inode(path)
        inode.content[bit // 8] ^= 1 << (bit % 8)
        inode.synced = bytes(inode.content)
        inode.unsynced = []

    def used_bytes(self) -> int:
        return sum(len(inode.content) for inode in dict.fromkeys(self._names.files.values()))

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        self.step("open")
        if path not in self._names.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            if _parent(path) not in self._names.directories:
                raise FileNotFoundError(errno.ENOENT, "no such directory", path)
            inode = _Inode(modified_ms=self._now_ms())
            self._change_names(path, lambda names: names.create(path, inode))
        return SimulatedFile(self, path, self._names.files[path], self._boot)

    def read(self, path: str) -> bytes:
        self.step("read")
        return bytes(self._inode(path).content)

    def exists(self, path: str) -> bool:
        return path in self._names.files or path in self._names.directories

    def size(self, path: str) -> int:
        return len(self._inode(path).content)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def list(self, path: str) -> list[str]:
        if path not in self._names.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        names = (*self._names.files, *self._names.directories)
        return [name.rpartition("/")[2] for name in names if name != "/" and _parent(name) == path]

    def make_directories(self, path: str) -> None:
        if path in self._names.directories:
            return
        self.make_directories(_parent(path))
        self._change_names(path, lambda names: names.make_directory(path))

    def rename(self, old: str, new: str) -> None:
        self.step("rename")
        if not self.exists(old):
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        self._change_names(new, lambda names: names.rename(old, new))

    def unlink(self, path: str) -> None:
        self.step("unlink")
        if path in self._names.files:
            self._change_names(path, lambda names: names.remove(path))

    def remove_tree(self, path: str) -> None:
        self._change_names(path, lambda names: names.remove(path))

    def sync_directory(self, path: str) -> None:
        self.step("sync_directory")
        if path not in self._names.directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        self.count_change()
        if self.syncs_are_ignored:
            return
        for change in self._pending:
            if change.directory == path:
                change.apply(self._durable)
        self._pending = [change for change in self._pending if change.directory != path]

    def free_bytes(self, path: str) -> int:
        return self.total_bytes(path) - self.used_bytes()

    def total_bytes(self, path: str) -> int:
        return 1 << 40 if self.capacity_bytes is None else self.capacity_bytes

    def lock(self, path: str) -> DirectoryLock:
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, "the lock is held", path)
        self.open(path, create=True)
        self._locks.add(path)
        return _SimulatedLock(self._locks, path)

    def step(self, operation: Operation) -> None:
        """Count an operation, and fail if it was told to."""
        if self.power_off_after is not None and self.operations >= self.power_off_after:
            raise PowerOff
        self.counts[operation] = self.counts.get(operation, 0) + 1
        waiting = self._failures.get(operation)
        if waiting is None:
            return
        after, error = waiting
        if after > 0:
            self._failures[operation] = (after - 1, error)
            return
        del self._failures[operation]
        raise OSError(error, os.strerror(error))

    def count_change(self) -> None:
        """Every change to the disk passes here; the power may go right after it."""
        self.operations += 1
        if self.power_off_after is not None and self.operations >= self.power_off_after:
            raise PowerOff

    def _change_names(self, path: str, apply: Callable[[_Names], None]) -> None:
        apply(self._names)
        self._pending.append(_NameChange(_parent(path), apply))
        self.count_change()

    def _inode(self, path: str) -> _Inode:
        if path not in self._names.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self._names.files[path]

    def room_for(self, inode: _Inode, position: int, length: int) -> int:
        """How many of `length` bytes fit."""
        if self.capacity_bytes is None:
            return length
        growth_max = self.capacity_bytes - self.used_bytes()
        return max(min(length, len(inode.content) + growth_max - position), 0)

    def is_current(self, boot: int) -> bool:
        return boot == self._boot

    def now_ms(self) -> int:
        return self._now_ms()


class SimulatedFile:
    """An open file; useless after `kill` or `crash`, as a descriptor of a dead process is."""

    __slots__ = ("_boot", "_descriptor", "_disk", "_inode", "_path")

    def __init__(self, disk: SimulatedDisk, path: str, inode: _Inode, boot: int) -> None:
        self._disk, self._path, self._inode, self._boot = disk, path, inode, boot
        self._descriptor = -1

    @property
    def path(self) -> str:
        return self._path

    def fileno(self) -> int:
        """A real descriptor with the content of now, for `sendfile`."""
        self.close()
        self._descriptor = os.memfd_create(self._path.rpartition("/")[2])
        os.write(self._descriptor, self._inode.content)
        return self._descriptor

    def size(self) -> int:
        return len(self._inode.content)

    def pread(self, length: int, position: int) -> bytes:
        self._step("read")
        return bytes(self._inode.content[position : position + length])

    def bring_in(self, position: int, length: int) -> None:
        self._step("read")

    def pwrite(self, data: ReadableBuffer, position: int) -> int:
        self._step("write")
        disk, whole = self._disk, bytes(data)
        taken = whole[: disk.room_for(self._inode, position, len(whole))]
        if whole and not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        if disk.short_writes is not None and len(taken) > 1:
            taken = taken[: disk.short_writes.randint(1, len(taken))]
        _put(self._inode.content, position, taken)
        self._inode.unsynced.append(_Write(position, taken))
        self._inode.modified_ms = disk.now_ms()
        disk.count_change()
        return len(taken)

    def truncate(self, size: int) -> None:
        self._step("truncate")
        _set_size(self._inode.content, size)
        self._inode.unsynced.append(_Truncate(size))
        self._disk.count_change()

    def datasync(self) -> None:
        self._step("sync")
        if not self._disk.syncs_are_ignored:
            self._inode.synced, self._inode.unsynced = bytes(self._inode.content), []
        self._disk.count_change()

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _step(self, operation: Operation) -> None:
        if not self._disk.is_current(self._boot):
            raise OSError(errno.EBADF, "the process that opened this file has ended", self._path)
        self._disk.step(operation)


class _SimulatedLock:
    def __init__(self, locks: set[str], path: str) -> None:
        self._locks, self._path = locks, path

    def release(self) -> None:
        self._locks.discard(self._path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory + "/")


def _moved(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if _is_below(path, old) else path


def _set_size(content: bytearray, size: int) -> None:
    if size < len(content):
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


def _put(content: bytearray, position: int, data: bytes) -> None:
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data
