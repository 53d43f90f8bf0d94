"""The three offset checkpoints of a data directory: recovery points, high watermarks, log starts.

Kept by name of the partition's directory, and only where they are not 0, so that idle partitions cost
nothing. A checkpoint is taken on the event loop as a copy and written by the function that this returns,
which blocks. Writers take turns, and one that was taken earlier never replaces a later one.
"""

import threading
from collections.abc import Callable, Iterable

from riverlog.model.disk import Disk
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import decode_offsets, encode_offsets, replace_file
from riverlog.storage.log.log import Log

_Contents = tuple[tuple[str, dict[str, int]], ...]


class DirectoryCheckpoints:
    __slots__ = (
        "_disk",
        "_lock",
        "_path",
        "_taken",
        "_written",
        "_written_contents",
        "high_watermarks",
        "log_starts",
        "recovery_points",
    )

    def __init__(self, path: str, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._lock = threading.Lock()
        self._taken = 0
        self._written = 0
        self._written_contents: _Contents | None = None
        """What the files hold, once written: an idle node does not write and sync the same again."""
        self.recovery_points = self._read(names.RECOVERY_POINTS)
        self.high_watermarks = self._read(names.HIGH_WATERMARKS)
        self.log_starts = self._read(names.LOG_STARTS)

    def _read(self, name: str) -> dict[str, int]:
        path = f"{self._path}/{name}"
        return decode_offsets(self._disk.read(path), path) if self._disk.exists(path) else {}

    def forget(self, name: str) -> None:
        for offsets in (self.recovery_points, self.high_watermarks, self.log_starts):
            offsets.pop(name, None)

    def note(self, name: str, log: Log) -> None:
        for offsets, offset in (
            (self.recovery_points, log.flushed_offset),
            (self.high_watermarks, log.high_watermark),
            (self.log_starts, log.log_start_offset),
        ):
            if offset:
                offsets[name] = offset
            else:
                offsets.pop(name, None)

    def begin(self, logs: Iterable[tuple[str, Log]]) -> Callable[[], None]:
        """Take the present offsets; the result writes them. Call it in a thread."""
        for name, log in logs:
            self.note(name, log)
        self._taken += 1
        number = self._taken
        contents = (
            (names.RECOVERY_POINTS, dict(self.recovery_points)),
            (names.HIGH_WATERMARKS, dict(self.high_watermarks)),
            # Kafka lists a log start only where it differs from what the segments say; 0 says the same.
            (names.LOG_STARTS, dict(self.log_starts)),
        )

        def write() -> None:
            with self._lock:
                if number < self._written or contents == self._written_contents:
                    return
                for name, offsets in contents:
                    replace_file(self._disk, f"{self._path}/{name}", encode_offsets(offsets))
                self._written = number
                self._written_contents = contents

        return write


def unless_failing(write: Callable[[], None]) -> None:
    """Write a checkpoint that is better than the one of before, though that one still holds."""
    try:
        write()
    except (DiskFullError, StorageError):
        return  # A crash only scans more, and the next one tries again.
