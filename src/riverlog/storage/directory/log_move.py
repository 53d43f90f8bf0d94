"""Moving a log to another data directory while it is written and read (`AlterReplicaLogDirs`).

Batches are copied whole and in order, in pieces: ask for the next piece, read it wherever is best, write it.
Once the copy is level it takes over by a rename. At every moment exactly one of the two is the log: the
original until that rename, and from then on the copy, which by then has everything on disk. Used on the event
loop, apart from what is said to block. Not here: when to move, how fast, and who uses the log
(`replication.log_moves`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from riverlog.model.disk import FileSlice
from riverlog.model.errors import DamagedLogError, StorageError
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.records import batch as batches
from riverlog.records.rules import Accepted
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.log.appends import AppendOrigin, OffsetOutOfRange, Refused
from riverlog.storage.log.log import Log

PIECE_BYTES: Final = 256 * 1024
"""Writing a piece holds the event loop up; of the smallest batches it has a few thousand."""


class LogMove:
    def __init__(self, original: Log, source: LogDirectory, target: LogDirectory, future: Log) -> None:
        """`future` is the beginning of a copy, in `target`."""
        self.topic_partition = original.topic_partition
        self.future = future
        self.is_decided = False
        """The rename was begun: from here on the original must not be written to, whatever happens."""
        self._original = original
        self._source, self._target = source, target
        self._generation = original.generation
        original.replacement.is_moving = True
        if self.lag < 0:
            future.cutting.truncate_fully_and_start_at(0)

    @property
    def target(self) -> LogDirectory:
        return self._target

    @property
    def lag(self) -> int:
        return self._original.log_end_offset - self.future.log_end_offset

    def next_piece(self) -> FileSlice | None:
        """None when the copy is level. Raises `StorageError` when either log is gone, or cannot be read."""
        original, future = self._original, self.future
        if original.generation != self._generation:
            self._generation = original.generation
            future.cutting.truncate_fully_and_start_at(0)
        end_offset = original.log_end_offset
        if future.log_end_offset >= end_offset:
            return None
        try:
            found = original.read(
                max(future.log_end_offset, original.log_start_offset),
                max_bytes=min(PIECE_BYTES, future.config.segment_bytes),
                end_offset=end_offset,
            )
        except DamagedLogError as damage:
            raise StorageError(f"{self.topic_partition} cannot be copied: {damage}") from damage
        if isinstance(found, OffsetOutOfRange) or found.records is None:
            future.cutting.skip_to(end_offset)
            return None
        return found.records

    def write(self, piece: bytes) -> None:
        """Append the latest piece as it was read. Raises `StorageError`, `DiskFullError`, `CorruptBatch`."""
        view, future = memoryview(piece), self.future
        found = tuple(batches.walk(view))
        first_offset = found[0][1].base_offset
        if not future.size_bytes and future.log_end_offset < first_offset:
            future.cutting.truncate_fully_and_start_at(first_offset)
        future.state.update_config(self._original.config)
        accepted = Accepted(
            view,
            found,
            sum(header.record_count for _, header in found),
            max(header.max_timestamp_ms for _, header in found),
        )
        outcome = future.append(accepted, leader_epoch=LeaderEpoch(0), origin=AppendOrigin.REPLICATION)
        if isinstance(outcome, Refused):
            raise StorageError(f"{self.topic_partition} cannot be copied: {outcome.message}")

    def prepare(self) -> Callable[[], None]:
        """What must be on disk before the copy may take over; the result writes it and blocks."""
        partition, source, target = self.topic_partition, self._source, self._target
        self.future.state.set_high_watermark(self._original.high_watermark)
        self.future.cutting.delete_records(self._original.log_start_offset)
        write_offsets = target.begin_adoption(partition)

        def write() -> None:
            source.futures.forget_origin(partition)
            target.futures.note_origin(partition, source.path)
            write_offsets()

        return write

    def finish(self) -> Log:
        """Let the copy, which is level, take over; returns the log from now on. Blocks for a few syncs."""
        self.future.take_over(self._original)
        self.future.close()
        self.is_decided = True
        return self._target.adopt(self.topic_partition, self._original.state.cleaned_offset)

    def begin_removal(self) -> Callable[[], None]:
        """Take the original away, once nobody uses it any more; the result makes it last and blocks."""
        partition, source, target = self.topic_partition, self._source, self._target
        source.release(partition)

        def settle() -> None:
            source.sync_names()
            target.futures.forget_origin(partition)

        return settle

    def give_up(self) -> None:
        """The original stays; the copy goes."""
        self._original.replacement.is_moving = False
        if self._target.is_online:
            self._target.futures.discard(self.topic_partition)


def settle_moves(directories: Sequence[LogDirectory]) -> None:
    """After a start: where a crash left both the copy that took over and its original, the copy stands.

    Blocks. Of two logs of which neither says that it was moved the first directory's is used, as ever.
    """
    places: dict[TopicPartition, list[LogDirectory]] = {}
    for directory in directories if len(directories) > 1 else ():
        for partition in directory.partitions():
            places.setdefault(partition, []).append(directory)
    for partition, holders in places.items():
        moved = [each for each in holders if len(holders) > 1 and each.futures.has_origin(partition)]
        if len(moved) == 1:
            for original in holders:
                if original is not moved[0]:
                    original.release(partition)
                    original.sync_names()
            moved[0].futures.forget_origin(partition)
