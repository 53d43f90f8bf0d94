"""The three offset checkpoints of a data directory: recovery points, high watermarks, log starts.

Kept by name of the partition's directory, and only where they are not 0, so that idle partitions cost
nothing. Offsets are noted log by log, which may take several turns of the event loop: each of them only has
to be one that its log had. A checkpoint is taken on the event loop as a copy of what is noted, and written by
the function that this returns, which blocks. Writers take turns, and one that was taken earlier never
replaces a later one. The files know a partition by its name only, so what they hold of one that is gone must
go before another of its name is made (`forgotten`): after a crash that one would begin where the other began
and be recovered from where the other was safe.
"""

import threading
from collections.abc import Callable, Mapping
from functools import partial

from riverlog.model.disk import Disk
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import decode_offsets, encode_offsets, replace_file
from riverlog.storage.log.log import Log
from riverlog.storage.log.syncing import LogSync

_Contents = tuple[tuple[str, dict[str, int]], ...]


class DirectoryCheckpoints:
    __slots__ = (
        "_disk",
        "_gone",
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
        self._gone: dict[str, int] = {}
        """Names that the files may hold still, each with the last checkpoint that was taken with it."""
        self.recovery_points = self._read(names.RECOVERY_POINTS)
        self.high_watermarks = self._read(names.HIGH_WATERMARKS)
        self.log_starts = self._read(names.LOG_STARTS)

    def _read(self, name: str) -> dict[str, int]:
        path = f"{self._path}/{name}"
        return decode_offsets(self._disk.read(path), path) if self._disk.exists(path) else {}

    def forget(self, name: str) -> None:
        for offsets in (self.recovery_points, self.high_watermarks, self.log_starts):
            self._drop(offsets, name)

    def _drop(self, offsets: dict[str, int], name: str) -> None:
        if offsets.pop(name, None) is not None:
            self._gone[name] = self._taken

    def forgotten(self, name: str) -> bool:
        """Whether the files hold nothing of it either, nor will by a checkpoint that is on its way."""
        taken = self._gone.get(name)
        return taken is None or taken < self._written

    def note(self, name: str, log: Log) -> None:
        for offsets, offset in (
            (self.recovery_points, log.flushed_offset),
            (self.high_watermarks, log.high_watermark),
            (self.log_starts, log.log_start_offset),
        ):
            if offset:
                offsets[name] = offset
            else:
                self._drop(offsets, name)

    def begin(self) -> Callable[[], None]:
        """Take what is noted; the result writes it. Call it in a thread."""
        self._gone = {name: taken for name, taken in self._gone.items() if taken >= self._written}
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
                if number < self._written:
                    return
                if contents != self._written_contents:
                    for name, offsets in contents:
                        replace_file(self._disk, f"{self._path}/{name}", encode_offsets(offsets))
                self._written = number
                self._written_contents = contents

        return write


class RollCheckpoints:
    """After a roll is on disk the recovery point is written, so that a crash scans one segment only.

    Not while another waits to be written: each holds all that is noted, and the next brings this."""

    __slots__ = ("_checkpoints", "_is_waiting", "_logs", "is_closed", "run_blocking")

    def __init__(self, checkpoints: DirectoryCheckpoints, logs: Mapping[str, Log]) -> None:
        """`logs` are those that are open."""
        self._checkpoints = checkpoints
        self._logs = logs
        self._is_waiting = False
        self.is_closed = False
        self.run_blocking: Callable[[Callable[[], None]], None] | None = None
        """Takes work off the event loop; without it that blocks."""

    def note_synced(self, synced: LogSync) -> None:
        name = synced.state.directory.rpartition("/")[2]
        if name not in self._logs or self.is_closed:
            return  # Of a log on its way in nothing is written until it has arrived.
        saved = self._checkpoints.recovery_points.get(name, 0)
        if saved < synced.state.segments.active.base_offset <= synced.flushed_offset:
            self._checkpoints.note(name, self._logs[name])
            if self.run_blocking is None:
                unless_failing(self._checkpoints.begin())
            elif not self._is_waiting:
                self._is_waiting = True
                self.run_blocking(partial(self._write_waiting, self._checkpoints.begin()))

    def _write_waiting(self, write: Callable[[], None]) -> None:
        self._is_waiting = False
        unless_failing(write)


def unless_failing(write: Callable[[], None]) -> None:
    """Write a checkpoint that is better than the one of before, though that one still holds."""
    try:
        write()
    except (DiskFullError, StorageError):
        return  # A crash only scans more, and the next one tries again.
