"""What it takes to open a log: what it shares with others, and what is known of it. Values only."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from riverlog.model.clock import Clock
from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import Disk
from riverlog.model.ids import TopicId, TopicPartition
from riverlog.storage.disk.guarded import DirectoryHealth, GuardedDisk
from riverlog.storage.disk.open_files import Files, OpenFiles
from riverlog.storage.files.deleted_files import DeletedFiles

if TYPE_CHECKING:
    from riverlog.storage.log.syncing import LogSync


@dataclass(slots=True, eq=False)
class LogEnvironment:
    """What the logs of one data directory share."""

    files: Files
    health: DirectoryHealth
    clock: Clock
    deleted: DeletedFiles = field(default_factory=DeletedFiles)
    request_sync: "Callable[[LogSync], None] | None" = None
    """Has a log synced soon, off the event loop; without it a log is synced at once, which blocks."""
    on_synced: "Callable[[LogSync], None] | None" = None
    """Told of every sync that has moved the flushed offset."""

    @classmethod
    def at(cls, path: str, disk: Disk, clock: Clock, open_files: OpenFiles | None = None) -> "LogEnvironment":
        """For the logs at or below a path, which go offline together."""
        health = DirectoryHealth(path)
        return cls(Files(GuardedDisk(disk, health), open_files or OpenFiles(), health.damage), health, clock)


@dataclass(frozen=True, slots=True)
class LogToOpen:
    """One log, and what checkpoints and the cluster's metadata say about it; the files say the rest."""

    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    topic_id: TopicId | None = None
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int | None = None
    """None where nobody knows."""
    cleaned_offset: int = 0
    """Compaction has been here, and may have left gaps below."""
    is_clean: bool = False
    """It was closed cleanly: what is on disk need not be checked."""
