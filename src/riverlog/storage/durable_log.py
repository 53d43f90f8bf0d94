"""The state of one partition's log and its durability: bounds, roll, sync, close.

The lower half of `Log`. A roll and a sync keep what recovery relies on: everything below the recovery point
is on disk, with the indexes, snapshot and leader epochs that describe it. See `syncing` for the steps of a
sync.
"""

from collections.abc import Callable
from typing import Self
from uuid import UUID

from riverlog.model.clock import Clock
from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import Disk, DiskFile
from riverlog.model.errors import StorageError
from riverlog.model.ids import TopicPartition
from riverlog.storage import names
from riverlog.storage.deleted_files import DeletedFiles
from riverlog.storage.guarded_disk import DirectoryHealth, GuardedDisk
from riverlog.storage.loading import LogLoader
from riverlog.storage.open_files import Files, OpenFiles
from riverlog.storage.partition_metadata import read_topic_id, write_topic_id
from riverlog.storage.producer_state import ProducerStates
from riverlog.storage.segment import Segment
from riverlog.storage.syncing import SyncGate, SyncTask


class DurableLog:
    __slots__ = (
        "_clock",
        "_deleted",
        "_directory_is_durable",
        "_epochs",
        "_files",
        "_flushed_offset",
        "_gate",
        "_health",
        "_is_touched",
        "_last_sync_ms",
        "_on_synced",
        "_request_sync",
        "_segments",
        "_snapshots",
        "_truncations",
        "_unsynced",
        "cleaned_offset",
        "config",
        "cut_bytes",
        "directory",
        "high_watermark",
        "is_moving",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        *,
        config: LogConfig,
        files: Files,
        health: DirectoryHealth,
        clock: Clock,
        topic_id: UUID | None = None,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int = 0,
        clean: bool = True,
        deleted: DeletedFiles | None = None,
        request_sync: "Callable[[DurableLog], None] | None" = None,
        on_synced: "Callable[[DurableLog], None] | None" = None,
    ) -> None:
        self.directory = directory
        self.topic_partition = topic_partition
        self.config = config
        self._files, self._health, self._clock = files, health, clock
        self._deleted = deleted if deleted is not None else DeletedFiles()
        self._request_sync = request_sync
        self._on_synced = on_synced
        self._gate = SyncGate()
        self.is_moving = False
        """Being copied to another data directory: compaction, which would change it meanwhile, waits."""
        self._truncations = 0
        self._last_sync_ms = clock.wall_ms()
        files.disk.make_directories(directory)
        self.topic_id = self._agree_on_topic_id(topic_id, clean=clean)
        self.cleaned_offset = cleaned_offset
        loader = LogLoader(
            directory,
            config,
            files,
            recovery_point,
            log_start_offset,
            clean,
            clock.wall_ms(),
            cleaned_offset=cleaned_offset,
        )
        loaded = loader.load()
        self._segments, self._snapshots = loaded.segments, loaded.snapshots
        self._epochs = loaded.epochs
        self.producers: ProducerStates = loaded.producers
        self.cut_bytes = loaded.cut_bytes
        self._is_touched = not clean or loaded.recovered_from < len(self._segments)
        # Closed segments whose indexes and snapshot are not yet known to be on disk.
        self._unsynced = self.segments[loaded.recovered_from : -1]
        self.log_end_offset = self._segments.active.next_offset
        self.log_start_offset = max(log_start_offset, self._segments[0].base_offset)
        self._flushed_offset = self.log_end_offset if clean else min(recovery_point, self.log_end_offset)
        self._directory_is_durable = clean
        self.high_watermark = self.log_start_offset
        if self.log_start_offset > self.log_end_offset:
            # Everything that is left lies below the log start, so there is nothing to keep.
            self._begin_again(self.log_start_offset)
        self._epochs.truncate_from_start(self.log_start_offset)

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        *,
        config: LogConfig,
        disk: Disk,
        clock: Clock,
        topic_id: UUID | None = None,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int = 0,
        clean: bool = False,
        open_files: OpenFiles | None = None,
        request_sync: "Callable[[DurableLog], None] | None" = None,
    ) -> Self:
        """A log of its own, without a data directory around it; `LogDirectory` opens the others."""
        health = DirectoryHealth(directory)
        return cls(
            directory,
            topic_partition,
            config=config,
            files=Files(GuardedDisk(disk, health), open_files or OpenFiles()),
            health=health,
            clock=clock,
            topic_id=topic_id,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            cleaned_offset=cleaned_offset,
            clean=clean,
            request_sync=request_sync,
        )

    def _agree_on_topic_id(self, topic_id: UUID | None, *, clean: bool) -> UUID | None:
        stored = read_topic_id(self._files.disk, self.directory, clean=clean)
        if stored is None and topic_id is not None:
            write_topic_id(self._files.disk, self.directory, topic_id)
        elif stored is not None and topic_id is not None and stored != topic_id:
            raise StorageError(
                f"{self.directory} belongs to topic id {stored}, not {topic_id}: a topic of the same name "
                "was deleted. Move the directory away."
            )
        return stored or topic_id

    @property
    def last_stable_offset(self) -> int:
        if not self.producers:
            return self.high_watermark
        unstable = self.producers.first_unstable_offset()
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    @property
    def flushed_offset(self) -> int:
        """Everything below is on disk, whatever happens to the machine."""
        return self._flushed_offset

    @property
    def recovery_point(self) -> int:
        return self._flushed_offset

    @property
    def active_base_offset(self) -> int:
        return self._segments.active.base_offset

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def latest_leader_epoch(self) -> int | None:
        return self._epochs.latest

    @property
    def leader_epochs(self) -> tuple[tuple[int, int], ...]:
        return self._epochs.entries

    @property
    def segments(self) -> tuple[Segment, ...]:
        """For checks and tools; nobody else changes them."""
        return tuple(self._segments)

    @property
    def _parent(self) -> str:
        return self.directory.rpartition("/")[0]

    @property
    def is_online(self) -> bool:
        return self._health.is_online and not self._gate.is_closed

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._segments.active.room = None

    def set_high_watermark(self, offset: int) -> None:
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        if self.producers.unreplicated:
            self.producers.pass_high_watermark(self.high_watermark)

    def commit_all(self) -> None:
        """Everything that is in the log may be read."""
        self.high_watermark = end = self.log_end_offset
        if self.producers.unreplicated:
            self.producers.pass_high_watermark(end)

    def assign_leader_epoch(self, epoch: int) -> None:
        """This replica leads from here on."""
        self._epochs.assign(epoch, self.log_end_offset)

    def roll(self, base_offset: int | None = None) -> None:
        """Begin a new segment. When the disk is full nothing changes, and the next append tries again."""
        base = self.log_end_offset if base_offset is None else base_offset
        old = self._segments.active
        if base == old.base_offset:
            return
        old.save_indexes()
        if base not in self._snapshots.offsets:
            self._snapshots.write(base, self.producers)
        fresh = Segment(self.directory, base, self._files, created_ms=self._clock.wall_ms())
        fresh.log.get(create=True)
        self._segments.add(fresh)
        self._unsynced = (*self._unsynced, old)
        self._is_touched = True
        self._ask_for_sync()

    def _ask_for_sync(self) -> None:
        if self._request_sync is not None:
            self._request_sync(self)
        else:
            self.flush()

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether `flush.ms` has passed since the last sync and there is something to sync."""
        flush_ms = self.config.flush_ms
        return (
            flush_ms is not None
            and self._flushed_offset < self.log_end_offset
            and now_ms - self._last_sync_ms >= flush_ms
        )

    def begin_sync(self) -> SyncTask:
        """Decide what makes the log durable up to its present end, and open it."""
        self._require_online()
        disk, active = self._files.disk, self._segments.active
        files: list[DiskFile] = [active.log.get(create=True)]
        for segment in self._unsynced:
            files.append(segment.log.get())
            files.extend(segment.open_indexes())
            if segment.next_offset in self._snapshots.offsets:
                files.append(disk.open(self._snapshots.path(segment.next_offset)))
        directories = [] if active.is_durable_entry else [self.directory]
        metadata = f"{self.directory}/{names.PARTITION_METADATA}"
        if not self._directory_is_durable:
            directories = [self.directory, self._parent]
            if disk.exists(metadata):
                files.append(disk.open(metadata))
        epochs = None
        if self._epochs.is_dirty:
            self._epochs.is_dirty = False
            epochs = (f"{self.directory}/{names.LEADER_EPOCHS}", self._epochs.encode())
        return SyncTask(
            self.log_end_offset,
            self._truncations,
            files,
            self._unsynced,
            active,
            directories,
            epochs,
            disk,
            self._gate,
        )

    def finish_sync(self, task: SyncTask) -> None:
        """Take note of a sync that ran. One that failed, or that a truncation overtook, moves nothing."""
        if not task.is_done:
            self._epochs.is_dirty = self._epochs.is_dirty or task.epochs is not None
            return
        for segment in (*task.closed, task.active):
            segment.is_durable_entry = True
        self._unsynced = tuple(segment for segment in self._unsynced if segment not in task.closed)
        self._directory_is_durable = True
        self._last_sync_ms = self._clock.wall_ms()
        if task.truncations == self._truncations:
            self._flushed_offset = max(self._flushed_offset, task.end_offset)
            if self._on_synced is not None:
                self._on_synced(self)

    def flush(self) -> None:
        """Make everything durable, here and now. Blocks."""
        task = self.begin_sync()
        try:
            task.run()
        finally:
            self.finish_sync(task)

    def write_state(self) -> None:
        """Write, without syncing it, what a clean shutdown relies on. Blocks; can be repeated."""
        if not self._has_changed():
            return
        self._segments.active.save_indexes()
        if self._snapshots.latest != self.log_end_offset:
            self._snapshots.write(self.log_end_offset, self.producers)

    def _save(self) -> None:
        """Write and sync everything. Blocks; the log must have no other user."""
        if not self._has_changed():
            return
        self.write_state()
        task = self.begin_sync()
        task.files.extend(self._segments.active.open_indexes())
        task.files.append(self._files.disk.open(self._snapshots.path(self.log_end_offset)))
        task.directories = task.directories or [self.directory]
        task.run()
        self.finish_sync(task)

    def _has_changed(self) -> bool:
        return self._is_touched or self._epochs.is_dirty or not self._directory_is_durable

    def close(self, *, clean: bool = True) -> None:
        """Close; `clean` saves everything first and blocks. Slices that were handed out stay readable."""
        if self._gate.is_closed:
            return
        if clean and self._health.is_online:
            self._save()
        self._gate.close()
        for segment in self._segments:
            segment.forget_files()

    def rename_for_deletion(self, new_directory: str) -> None:
        """Move the directory out of the way and close; waits for a sync in progress."""
        self.close(clean=False)
        self._deleted.drop_below(self.directory)
        self._files.disk.rename(self.directory, new_directory)
        self.directory = new_directory

    def _require_online(self) -> None:
        if self._health.failure is not None or self._gate.is_closed:
            self._health.require_online()
            raise StorageError(f"The log {self.directory} is closed.")

    def _begin_again(self, offset: int) -> None:
        """Drop every segment and continue, empty, at `offset`."""
        now_ms = self._clock.wall_ms()
        self._discard(self._segments.take_first(len(self._segments)), now_ms)
        self._segments.add(Segment(self.directory, offset, self._files, created_ms=now_ms))
        self.log_start_offset = self.log_end_offset = offset
        self._flushed_offset = min(self._flushed_offset, offset)
        self._truncations += 1
        self._epochs.truncate_from_end(0)
        self._snapshots.remove_after(-1)
        self.producers = ProducerStates()

    def _discard(self, segments: list[Segment], now_ms: int) -> None:
        """Rename the files of segments that are no longer in the list; they are removed later."""
        disk, due_ms = self._files.disk, now_ms + self.config.file_delete_delay_ms
        self._unsynced = tuple(segment for segment in self._unsynced if segment not in segments)
        for segment in segments:
            segment.forget_files()
            for suffix in names.SEGMENT_FILES:
                path = names.segment_path(self.directory, segment.base_offset, suffix)
                if disk.exists(path):
                    disk.rename(path, path + names.DELETED)
                    self._deleted.add(path + names.DELETED, due_ms)
