"""A real disk that fails on request: full, broken, slow to sync, or holding the cleaner within a pass."""

import errno
import os
import threading
from typing import Any

from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.storage.disk.local import LocalDisk


class FaultyDisk(LocalDisk):
    """Faults concern files whose name ends in `.log`, and what the cleaner writes; everything else works."""

    def __init__(self) -> None:
        self.is_full = False
        self.fails_to_sync = False
        self.broken: str | None = None
        """Writing, reading and syncing files below this path fails."""
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.syncs = 0
        self.may_clean = threading.Event()
        self.may_clean.set()
        self.held_passes: set[str] = set()
        """The cleaned segments that wait for `may_clean`, written and not yet put in place."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        file = super().open(path, create=create)
        if path.endswith(".log.cleaned"):
            return HeldFile(file, self, path)
        return FaultyFile(file, self, path) if path.endswith(".log") else file


class HeldFile:
    def __init__(self, file: Any, disk: FaultyDisk, path: str) -> None:
        self._file = file
        self._disk = disk
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def datasync(self) -> None:
        # Every cleaned segment is synced, also one that nothing was left to write to.
        self._disk.held_passes.add(self._path)
        assert self._disk.may_clean.wait(240), "the test ends what it holds"
        self._disk.held_passes.discard(self._path)
        self._file.datasync()


class FaultyFile:
    def __init__(self, file: Any, disk: FaultyDisk, path: str) -> None:
        self._file = file
        self._disk = disk
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def pwrite(self, data: ReadableBuffer, position: int) -> int:
        self._fail_if_broken()
        if self._disk.is_full:
            if len(data) > 10:
                # As a real disk does: what fits is written, and the next write fails.
                self._file.pwrite(memoryview(data)[:10], position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return int(self._file.pwrite(data, position))

    def pread(self, length: int, position: int) -> bytes:
        self._fail_if_broken()
        return bytes(self._file.pread(length, position))

    def bring_in(self, position: int, length: int) -> None:
        self._fail_if_broken()
        self._file.bring_in(position, length)

    def datasync(self) -> None:
        self._fail_if_broken()
        self._disk.may_sync.wait(30)
        if self._disk.fails_to_sync:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._disk.syncs += 1
        self._file.datasync()

    def _fail_if_broken(self) -> None:
        if self._disk.broken is not None and self._path.startswith(self._disk.broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
