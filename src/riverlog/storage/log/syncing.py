"""Making a log durable up to an offset, in three steps; and beginning new segments, which calls for it.

`LogSync.begin` decides on the event loop what to sync and opens it; `SyncTask.run` blocks, in any thread, and
touches nothing but the files it was given; `LogSync.finish`, again on the loop, moves the flushed offset. The
recovery point must not pass anything that recovery would rely on, so closed segments are synced with their
indexes and snapshot, new files with their directory, and the leader epochs with the data.
"""

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from riverlog.model.disk import Disk, DiskFile
from riverlog.model.errors import StorageError
from riverlog.storage.disk.guarded import DirectoryHealth
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import replace_file
from riverlog.storage.log.opening import LogEnvironment, LogToOpen
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.state import LogState


@dataclass(slots=True)
class LogGate:
    """Whether a log may be used: its data directory is online, and nobody has closed it.

    Closing waits for a sync in progress, and none begins after that.
    """

    directory: str
    health: DirectoryHealth
    is_closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_open(self) -> bool:
        return self.health.is_online and not self.is_closed

    def require_open(self) -> None:
        if self.health.failure is not None or self.is_closed:
            self.health.require_online()
            raise StorageError(f"The log {self.directory} is closed.")

    def close(self) -> None:
        with self.lock:
            self.is_closed = True


@dataclass(slots=True)
class SyncTask:
    """What to sync. Does nothing once the log is closed: its directory may have moved or gone."""

    end_offset: int
    generation: int
    files: list[DiskFile]
    closed: tuple[Segment, ...]
    """Segments that are synced whole, with their indexes: nothing is added to them any more."""
    active: Segment
    """Synced as far as it was written; it may grow, and even be rolled, meanwhile."""
    directories: list[str]
    epochs: tuple[str, bytes] | None
    disk: Disk
    gate: LogGate
    is_done: bool = False

    def run(self) -> None:
        """Raises `StorageError` when a sync failed, which ends the data directory, or `DiskFullError`."""
        with self.gate.lock:
            if self.gate.is_closed:
                return
            for file in self.files:
                file.datasync()
            directories = self.directories
            if self.epochs is not None:
                replace_file(self.disk, *self.epochs)
                in_directory = self.epochs[0].rpartition("/")[0]  # Which is synced by that.
                directories = [each for each in directories if each != in_directory]
            for directory in directories:
                self.disk.sync_directory(directory)
            self.is_done = True


class LogSync:
    """What of a log is on disk.

    Invariant: everything below `flushed_offset` is, whatever happens to the machine, with the indexes, the
    snapshots and the leader epochs that describe it; so it is the recovery point.
    """

    __slots__ = (
        "_directory_is_durable",
        "_environment",
        "_last_sync_ms",
        "_was_empty",
        "flushed_offset",
        "gate",
        "is_cut",
        "is_touched",
        "state",
        "unsynced",
    )

    def __init__(
        self,
        state: LogState,
        environment: LogEnvironment,
        opened: LogToOpen,
        recovered_from: int,
        *,
        is_new: bool,
    ) -> None:
        """`recovered_from` is the number of the first segment that was rebuilt, if any was."""
        self.state = state
        self._environment = environment
        self.gate = LogGate(state.directory, environment.health)
        end = state.log_end_offset
        self._was_empty = end == 0 and (is_new or opened.is_clean)
        self.flushed_offset = end if opened.is_clean else min(opened.recovery_point, end)
        self.unsynced = tuple(state.segments)[recovered_from:-1]
        """Closed segments whose indexes and snapshot are not yet known to be on disk."""
        self.is_touched = not opened.is_clean or recovered_from < len(state.segments)
        """There is something to be saved at a clean shutdown."""
        self.is_cut = False
        """It was cut off at its end, which a power cut may still undo: what was there would come back behind
        whatever is written in its place."""
        self._directory_is_durable = opened.is_clean
        self._last_sync_ms = environment.clock.wall_ms()

    def roll(self, base_offset: int | None = None) -> None:
        """Begin a new segment. When the disk is full nothing changes, and the next append tries again."""
        state, now_ms = self.state, self._environment.clock.wall_ms()
        base = state.log_end_offset if base_offset is None else base_offset
        old = state.segments.active
        if base == old.base_offset:
            return
        old.save_indexes()
        if base not in state.snapshots.offsets:
            state.snapshots.write(base, state.producers)
        fresh = Segment(state.directory, base, self._environment.files, created_ms=now_ms)
        fresh.log.get(create=True)
        state.segments.add(fresh)
        self.unsynced = (*self.unsynced, old)
        self.is_touched = True
        self.request()

    def request(self) -> None:
        """Have the log synced: soon, or now if nobody does it for us."""
        if self._environment.request_sync is not None:
            self._environment.request_sync(self)
        else:
            self.flush()

    def is_due(self, now_ms: int) -> bool:
        """Whether `flush.ms` has passed since the last sync and there is something to sync."""
        flush_ms = self.state.config.flush_ms
        return (
            flush_ms is not None
            and self.flushed_offset < self.state.log_end_offset
            and now_ms - self._last_sync_ms >= flush_ms
        )

    def begin(self) -> SyncTask:
        """Decide what makes the log durable up to its present end, and open it."""
        self.gate.require_open()
        state, disk = self.state, self._environment.files.disk
        directory, active, snapshots = state.directory, state.segments.active, state.snapshots
        files: list[DiskFile] = [active.log.get(create=True)]
        for segment in self.unsynced:
            files.append(segment.log.get())
            files.extend(segment.open_indexes())
            if segment.next_offset in snapshots.offsets:
                files.append(disk.open(snapshots.path(segment.next_offset)))
        directories = [] if active.is_durable_entry else [directory]
        if not self._directory_is_durable:
            directories = [directory, directory.rpartition("/")[0]]
            if disk.exists(metadata := f"{directory}/{names.PARTITION_METADATA}"):
                files.append(disk.open(metadata))
        epochs = None
        if state.epochs.is_dirty:
            state.epochs.is_dirty = False
            epochs = (f"{directory}/{names.LEADER_EPOCHS}", state.epochs.encode())
        return SyncTask(
            end_offset=state.log_end_offset,
            generation=state.generation,
            files=files,
            closed=self.unsynced,
            active=active,
            directories=directories,
            epochs=epochs,
            disk=disk,
            gate=self.gate,
        )

    def finish(self, task: SyncTask) -> None:
        """Take note of a sync that ran. One that failed, or that a truncation overtook, moves nothing."""
        state = self.state
        if not task.is_done:
            state.epochs.is_dirty = state.epochs.is_dirty or task.epochs is not None
            return
        for segment in (*task.closed, task.active):
            segment.is_durable_entry = True
        self.forget(task.closed)
        self._directory_is_durable = True
        self._last_sync_ms = self._environment.clock.wall_ms()
        if task.generation == state.generation:
            self.is_cut = False
            self.flushed_offset = max(self.flushed_offset, task.end_offset)
            if self._environment.on_synced is not None:
                self._environment.on_synced(self)

    def flush(self) -> None:
        """Make everything durable, here and now. Blocks."""
        task = self.begin()
        try:
            task.run()
        finally:
            self.finish(task)

    def forget(self, segments: Collection[Segment]) -> None:
        """These need no sync any more: they are on disk, or gone."""
        self.unsynced = tuple(segment for segment in self.unsynced if segment not in segments)

    def lower(self, end_offset: int) -> None:
        """The log was cut off here; segments that came after it have other names now."""
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.is_cut = True
        self._directory_is_durable = False
        self.is_touched = True

    def write_state(self) -> None:
        """Write, without syncing it, what a clean shutdown relies on. Blocks; can be repeated."""
        state = self.state
        if not self._has_changed() or self._is_unwritten():
            return
        state.segments.active.save_indexes()
        if state.snapshots.latest != state.log_end_offset:
            state.snapshots.write(state.log_end_offset, state.producers)

    def save(self, *, parent_is_synced: bool = False) -> None:
        """Write and sync everything. Blocks; the log must have no other user. `parent_is_synced`: the caller
        syncs the directory in which the log's own is, for many at once."""
        task = self.begin_save()
        if task is None:
            return
        if parent_is_synced:
            task.directories = [self.state.directory]
        task.run()
        self.finish(task)

    def begin_save(self) -> SyncTask | None:
        """As `save`, in steps, of a log that goes on being used: writes, and the result has it synced. None
        where nothing is to be saved."""
        if not self._has_changed():
            return None
        self.write_state()
        state, task = self.state, self.begin()
        task.directories = task.directories or [state.directory]
        if self._is_unwritten():
            state.epochs.is_dirty = state.epochs.is_dirty or task.epochs is not None
            task.epochs = None
            return task
        task.files.extend(state.segments.active.open_indexes())
        task.files.append(self._environment.files.disk.open(state.snapshots.path(task.end_offset)))
        return task

    def is_saved_by(self, task: SyncTask | None) -> bool:
        """Whether nothing has changed since `begin_save` and what it wanted is on disk, as far as `finish`
        was told: then the log can be closed as it is."""
        if task is None:
            return not self._has_changed()
        state = self.state
        is_unchanged = (task.end_offset, task.generation) == (state.log_end_offset, state.generation)
        is_described = not state.epochs.is_dirty or self._is_unwritten()
        return task.is_done and is_unchanged and not self.unsynced and is_described

    def _is_unwritten(self) -> bool:
        """Whether there never was a record, so that there is nothing for indexes, snapshots and epochs to
        describe: they would be found to say nothing at the next opening."""
        return self._was_empty and self.state.log_end_offset == 0 and self.state.generation == 0

    def _has_changed(self) -> bool:
        if self._is_unwritten():
            return not self._directory_is_durable
        return self.is_touched or self.state.epochs.is_dirty or not self._directory_is_durable
