"""Making a log durable up to an offset, in three steps.

`Log.begin_sync` decides on the event loop what to sync and opens it; `SyncTask.run` blocks, in any thread,
and touches nothing but the files it was given; `Log.finish_sync`, again on the loop, moves the flushed
offset. The recovery point must not pass anything that recovery would rely on, so closed segments are synced
with their indexes and snapshot, new files with their directory, and the leader epochs with the data.
"""

import threading
from dataclasses import dataclass, field

from riverlog.model.disk import Disk, DiskFile
from riverlog.storage.checkpoint import replace_file
from riverlog.storage.segment import Segment


@dataclass(slots=True)
class SyncGate:
    """Between a log and its syncs: closing it waits for one in progress, and none begins after that."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    is_closed: bool = False

    def close(self) -> None:
        with self.lock:
            self.is_closed = True


@dataclass(slots=True)
class SyncTask:
    """What to sync. Does nothing once the log is closed: its directory may have moved or gone."""

    end_offset: int
    truncations: int
    files: list[DiskFile]
    closed: tuple[Segment, ...]
    """Segments that are synced whole, with their indexes: nothing is added to them any more."""
    active: Segment
    """Synced as far as it was written; it may grow, and even be rolled, meanwhile."""
    directories: list[str]
    epochs: tuple[str, bytes] | None
    disk: Disk
    gate: SyncGate
    is_done: bool = False

    def run(self) -> None:
        """Raises `StorageError` when a sync failed, which ends the data directory, or `DiskFullError`."""
        with self.gate.lock:
            if self.gate.is_closed:
                return
            for file in self.files:
                file.datasync()
            if self.epochs is not None:
                replace_file(self.disk, *self.epochs)
            for directory in self.directories:
                self.disk.sync_directory(directory)
            self.is_done = True
