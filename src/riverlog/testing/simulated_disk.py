"""A disk in memory that behaves as badly as a real one may.

It keeps apart what was written and what was synced, for the content of files and for directory entries.
`crash` takes the power away: of the writes to a file that were not synced, some survive, some are lost,
some are torn; of the changes to a directory that were not synced, only the first few survive. `kill` ends
the process only, so everything written stays. Failures are injected by `fail` and `capacity_bytes`;
`power_off_after` stops at the n-th change, so that a test can crash after each of them. The same seed gives
the same crash.
"""

import builtins
import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal
from weakref import WeakSet

from riverlog.model.disk import DirectoryLock, DiskFile, ReadableBuffer
from riverlog.testing.disk_contents import Directory, Inode, Losses

Operation = Literal["open", "read", "write", "truncate", "sync", "sync_directory", "rename", "unlink"]


class PowerOff(BaseException):
    """The power went; nothing may run any more on this disk until `crash`."""


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
        self._root = Directory()
        self._failures: dict[str, tuple[int, int]] = {}
        self._locks: set[str] = set()
        self._boot = 0
        self._used_bytes = 0
        self._named: set[Inode] | None = None
        """The files that are counted in `_used_bytes`; None when names have changed since."""
        self.is_dead = False
        """Every operation fails."""
        self._dead: tuple[str, ...] = ()
        """Every operation fails at what begins so."""
        self.losses = Losses()
        self.cold_reads = 0
        self.failed: Counter[int] = Counter()
        """Operations that have failed, by errno."""
        self.named: Counter[str] = Counter()
        """Names that were made, by what stands behind the last dot."""
        self._open: WeakSet[SimulatedFile] = WeakSet()

    def fail(self, operation: Operation, error: int = errno.EIO, *, after: int = 0) -> None:
        """Let the operation fail with an errno, once, after it has succeeded `after` times more."""
        self._failures[operation] = (after, error)

    def mend(self) -> None:
        """Nothing fails any more that was told to."""
        self._failures.clear()

    def die(self, directory: str) -> None:
        """From now on every operation fails that has to do with something in it."""
        self._dead += (f"{directory}/",)

    def has_died(self, directory: str) -> bool:
        return f"{directory}/" in self._dead

    def crash(self, seed: int) -> None:
        """Take the power away and come back with what a disk may have kept."""
        chance = random.Random(seed)
        for each in self._root.walk():  # A directory is torn before what is left in it is looked at.
            each.tear(chance, self.losses)
        self._named = None
        self.kill()
        self.drop_caches()

    def unplug(self) -> None:
        """From here to `kill` or `crash` every operation fails: for what a process leaves behind."""
        self.power_off_after = 0

    def drop_caches(self) -> None:
        """Nothing is in memory any more."""
        for inode in self._files():
            inode.cold_end = len(inode.content)
            inode.warm_pages.clear()

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
        inode.unsynced = []

    def lose(self, path: str) -> None:
        """Another, empty disk is put in where the directory is. Nothing may be open."""
        directory = self._directory(path)
        directory.entries, directory.durable, directory.unsynced = {}, {}, []
        self._named = None

    def peek(self, path: str) -> bytearray:
        """What is in a file, for whoever looks from outside: no operation is counted and none fails."""
        return self._inode(path).content

    def peek_if_there(self, path: str) -> bytearray | None:
        found = self._find(path)
        return found.content if isinstance(found, Inode) else None

    def used_bytes(self) -> int:
        if self._named is None:
            self._named = set(self._files())
            self._used_bytes = sum(len(inode.content) for inode in self._named)
        return self._used_bytes

    def grew(self, inode: Inode, size_bytes: int) -> None:
        """A file has become larger, or smaller; one without a name takes no room."""
        if self._named is not None and inode in self._named:
            self._used_bytes += size_bytes

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        self.step("open", path)
        inode = self._find(path)
        if not isinstance(inode, Inode):
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            inode = Inode(modified_ms=self._now_ms())
            self._change_names(_parent(path), {_name(path): inode})
        file = SimulatedFile(self, path, inode, self._boot)
        self._open.add(file)
        return file

    def open_files(self) -> builtins.list[str]:
        """Those that the process has neither closed nor let go of, by their paths."""
        return sorted(file.path for file in self._open if self.is_current(file.boot))

    def read(self, path: str) -> bytes:
        self.step("read", path)
        return bytes(self._inode(path).content)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._inode(path).content)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def list(self, path: str) -> list[str]:
        return list(self._directory(path).entries)

    def make_directories(self, path: str) -> None:
        if isinstance(self._find(path), Directory):
            return
        self.make_directories(_parent(path))
        self._change_names(_parent(path), {_name(path): Directory()})

    def rename(self, old: str, new: str) -> None:
        self.step("rename", old)
        moved = self._find(old)
        if moved is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        if _parent(old) == _parent(new):
            self._change_names(_parent(new), {_name(old): None, _name(new): moved})
        else:
            self._change_names(_parent(new), {_name(new): moved})
            self._change_names(_parent(old), {_name(old): None})

    def unlink(self, path: str) -> None:
        self.step("unlink", path)
        if isinstance(self._find(path), Inode):
            self._change_names(_parent(path), {_name(path): None})

    def remove_tree(self, path: str) -> None:
        if self.exists(path):
            self._change_names(_parent(path), {_name(path): None})

    def sync_directory(self, path: str) -> None:
        self.step("sync_directory", f"{path}/")
        directory = self._directory(path)
        self.count_change()
        if not self.syncs_are_ignored:
            directory.sync()

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

    def step(self, operation: Operation, path: str = "") -> None:
        """Count an operation, and fail if it was told to."""
        if self.power_off_after is not None and self.operations >= self.power_off_after:
            raise PowerOff
        self.counts[operation] = self.counts.get(operation, 0) + 1
        if self.is_dead or (self._dead and path.startswith(self._dead)):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        waiting = self._failures.get(operation)
        if waiting is None:
            return
        after, error = waiting
        if after > 0:
            self._failures[operation] = (after - 1, error)
            return
        del self._failures[operation]
        self.failed[error] += 1
        raise OSError(error, os.strerror(error))

    def count_change(self) -> None:
        """Every change to the disk passes here; the power may go right after it."""
        self.operations += 1
        if self.power_off_after is not None and self.operations >= self.power_off_after:
            raise PowerOff

    def _change_names(self, directory: str, names: dict[str, Inode | Directory | None]) -> None:
        if self.power_off_after is not None and self.operations >= self.power_off_after:
            raise PowerOff
        if self._dead and f"{directory}/".startswith(self._dead):
            raise OSError(errno.EIO, os.strerror(errno.EIO), directory)
        self._directory(directory).change(names)
        for name, made in names.items():
            if made is not None:
                self.named[name.rpartition(".")[2]] += 1
        self._named = None
        self.count_change()

    def _find(self, path: str) -> Inode | Directory | None:
        found: Inode | Directory | None = self._root
        for name in path.split("/"):
            if name:
                if type(found) is not Directory:
                    return None
                found = found.entries.get(name)
        return found

    def _directory(self, path: str) -> Directory:
        found = self._find(path)
        if not isinstance(found, Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return found

    def _inode(self, path: str) -> Inode:
        found = self._find(path)
        if not isinstance(found, Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found

    def _files(self) -> Iterator[Inode]:
        return (each for each in self._root.walk() if isinstance(each, Inode))

    def room_for(self, inode: Inode, position: int, length: int) -> int:
        """How many of `length` bytes fit."""
        if self.capacity_bytes is None:
            return length
        growth_max = self.capacity_bytes - self.used_bytes()
        return max(min(length, len(inode.content) + growth_max - position), 0)

    def is_current(self, boot: int) -> bool:
        return boot == self._boot

    def now_ms(self) -> int:
        return self._now_ms()

    def closed(self, file: "SimulatedFile") -> None:
        self._open.discard(file)


class SimulatedFile:
    """An open file; useless after `kill` or `crash`, as a descriptor of a dead process is."""

    __slots__ = ("__weakref__", "_disk", "_inode", "_path", "boot")

    def __init__(self, disk: SimulatedDisk, path: str, inode: Inode, boot: int) -> None:
        self._disk, self._path, self._inode, self.boot = disk, path, inode, boot

    @property
    def path(self) -> str:
        return self._path

    def fileno(self) -> None:
        """There is no file that the operating system knows of."""

    def size(self) -> int:
        return len(self._inode.content)

    def pread(self, length: int, position: int) -> bytes:
        self._step("read")
        return bytes(self._inode.content[position : position + length])

    def read_if_warm(self, length: int, position: int) -> bytes | None:
        if not self._inode.is_warm(position, length):
            return None
        data = self.pread(length, position)
        return data if len(data) == length else None

    def is_warm(self, position: int, length: int) -> bool:
        self._step("read")
        return position + length <= len(self._inode.content) and self._inode.is_warm(position, length)

    def bring_in(self, position: int, length: int) -> None:
        self._step("read")
        self._disk.cold_reads += 1
        self._inode.bring_in(position, length)

    def pwrite(self, data: ReadableBuffer, position: int) -> int:
        self._step("write")
        disk, whole = self._disk, bytes(data)
        taken = whole[: disk.room_for(self._inode, position, len(whole))]
        if whole and not taken:
            disk.failed[errno.ENOSPC] += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        if disk.short_writes is not None and len(taken) > 1:
            taken = taken[: disk.short_writes.randint(1, len(taken))]
        before = len(self._inode.content)
        self._inode.write(position, taken)
        self._inode.modified_ms = disk.now_ms()
        disk.grew(self._inode, len(self._inode.content) - before)
        disk.count_change()
        return len(taken)

    def truncate(self, size: int) -> None:
        self._step("truncate")
        before = len(self._inode.content)
        self._inode.set_size(size)
        self._disk.grew(self._inode, size - before)
        self._disk.count_change()

    def datasync(self) -> None:
        self._step("sync")
        if not self._disk.syncs_are_ignored:
            self._inode.unsynced = []
        self._disk.count_change()

    def close(self) -> None:
        self._disk.closed(self)

    def _step(self, operation: Operation) -> None:
        if not self._disk.is_current(self.boot):
            raise OSError(errno.EBADF, "the process that opened this file has ended", self._path)
        self._disk.step(operation, self._path)


class _SimulatedLock:
    def __init__(self, locks: set[str], path: str) -> None:
        self._locks, self._path = locks, path

    def release(self) -> None:
        self._locks.discard(self._path)


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
