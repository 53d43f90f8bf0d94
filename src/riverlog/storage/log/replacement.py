"""Putting a cleaned segment in place of others, and how far compaction may go.

Invariant: at every step of a replacement loading finds the old segments or the cleaned one, whole. It is done
by renames on the event loop, in an order that loading understands: the cleaned files become `.swap`, the log
file last, which decides that they stand; the segments they replace go; then `.swap` is taken off, the log
file first. Slices of replaced segments stay readable, since they hold their files open.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from riverlog.storage.cleaning.output import CleanedSegment
from riverlog.storage.files import names
from riverlog.storage.log.cutting import LogCutting
from riverlog.storage.log.opening import LogEnvironment
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.state import LogState
from riverlog.storage.log.syncing import LogSync


@dataclass(slots=True, eq=False)
class LogReplacement:
    _state: LogState
    _sync: LogSync
    _cutting: LogCutting
    _environment: LogEnvironment
    is_moving: bool = False
    """Being copied to another data directory: compaction, which would change it meanwhile, waits."""

    @property
    def settled_offset(self) -> int:
        """Compaction stops here: what follows may still be taken back, belong to an open transaction, or be
        in the page cache only.
        """
        state, sync = self._state, self._sync
        settled = min(state.last_stable_offset, sync.flushed_offset, state.segments.active.base_offset)
        return min((settled, *(segment.base_offset for segment in sync.unsynced)))

    def open_cleaned(self, base_offset: int, *, buffer_max: int) -> CleanedSegment:
        """The files of a segment that is to replace the one that begins there, and perhaps some after it."""
        self._sync.gate.require_open()
        files, now_ms = self._environment.files, self._environment.clock.wall_ms()
        return CleanedSegment(self._state.directory, base_offset, files, now_ms=now_ms, buffer_max=buffer_max)

    def replace_segments(self, old: Sequence[Segment], cleaned: CleanedSegment) -> bool:
        """Put a finished segment in the place of `old`; False when those have changed, or must not."""
        self._sync.gate.require_open()
        state = self._state
        if self.is_moving or not state.segments.holds(old):
            return False
        fresh = self._segment_of(cleaned, next_offset=old[-1].next_offset)
        cleaned.forget_files()
        suffixes = [names.LOG, names.INDEX, names.TIME_INDEX]
        if cleaned.transactions.count:
            suffixes.append(names.TRANSACTION_INDEX)
        else:
            self._environment.files.disk.unlink(cleaned.transactions.path)
        for suffix in reversed(suffixes):
            self._rename(fresh, suffix + names.CLEANED, suffix + names.SWAP)
        state.segments.replace(old, fresh)
        self._cutting.discard(old, self._environment.clock.wall_ms())
        for suffix in suffixes:
            self._rename(fresh, suffix + names.SWAP, suffix)
        for segment in old[1:]:
            state.snapshots.remove(segment.base_offset)
        return True

    def directory_sync(self) -> Callable[[], None]:
        """Makes the renames of a replacement durable. Blocks; any thread; does nothing once closed."""
        gate, disk, directory = self._sync.gate, self._environment.files.disk, self._state.directory

        def sync() -> None:
            with gate.lock:
                if not gate.is_closed:
                    disk.sync_directory(directory)

        return sync

    def _segment_of(self, cleaned: CleanedSegment, *, next_offset: int) -> Segment:
        segment = Segment(
            self._state.directory,
            cleaned.base_offset,
            self._environment.files,
            created_ms=cleaned.created_ms,
            size_bytes=cleaned.size_bytes,
        )
        segment.next_offset = next_offset
        segment.first_timestamp_ms = cleaned.first_timestamp_ms
        segment.max_timestamp_ms = cleaned.max_timestamp_ms
        segment.max_timestamp_offset = cleaned.max_timestamp_offset
        segment.is_durable_entry = True
        segment.forget_checked(0)
        return segment

    def _rename(self, segment: Segment, old: str, new: str) -> None:
        base, directory = segment.base_offset, self._state.directory
        self._environment.files.disk.rename(
            names.segment_path(directory, base, old), names.segment_path(directory, base, new)
        )
