"""Making a log durable up to an offset, in three steps.

`Log.begin_sync` decides on the event loop what to sync and opens it; `SyncTask.run` blocks, in any thread,
and touches nothing but the files it was given; `Log.finish_sync`, again on the loop, moves the flushed
offset. The recovery point must not pass anything that recovery would rely on, so closed segments are synced
with their indexes and snapshot, new files with their directory, and the leader epochs with the data.
"""

import threading
from dataclasses import dataclass

from riverlog.model.disk import Disk, DiskFile
from riverlog.storage.checkpoint import replace_file
from riverlog.storage.segment import Segment


@dataclass(slots=True)
class SyncTask:
    """`lock` is the log's: whoever moves or closes the log's directory waits for a sync in progress."""

    end_offset: int
    truncations: int
    files: list[DiskFile]
    segments: tuple[Segment, ...]
    directories: list[str]
    epochs: tuple[str, bytes] | None
    disk: Disk
    lock: threading.Lock
    is_done: bool = False

    def run(self) -> None:
        """Raises `StorageError` when a sync failed, which ends the data directory, or `DiskFullError`."""
        with self.lock:
            for file in self.files:
                file.datasync()
            if self.epochs is not None:
                replace_file(self.disk, *self.epochs)
            for directory in self.directories:
                self.disk.sync_directory(directory)
            self.is_done = True
