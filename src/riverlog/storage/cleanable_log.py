"""Compaction's part of a log: how far it may go, and putting a cleaned segment in place of others.

The upper part of `Log` but one. Replacing is done by renames on the event loop, in an order that loading
understands at every step: the cleaned files become `.swap`, the log file last, which decides that they
stand; the segments they replace go; then `.swap` is taken off, the log file first. Slices of replaced
segments stay readable, since they hold their files open.
"""

from collections.abc import Callable, Sequence

from riverlog.storage import names
from riverlog.storage.cleaning.filtering import LastRecord
from riverlog.storage.cleaning.output import CleanedSegment
from riverlog.storage.segment import Segment
from riverlog.storage.transaction_index import AbortedTransaction
from riverlog.storage.trimmable_log import TrimmableLog


class CleanableLog(TrimmableLog):
    __slots__ = ()

    @property
    def generation(self) -> int:
        """Changes when the end of the log is cut off."""
        return self._truncations

    @property
    def settled_offset(self) -> int:
        """Compaction stops here: what follows may still be taken back, belong to an open transaction, or be
        in the page cache only.
        """
        settled = min(self.last_stable_offset, self._flushed_offset, self._segments.active.base_offset)
        return min((settled, *(segment.base_offset for segment in self._unsynced)))

    def last_records(self) -> dict[int, LastRecord]:
        """Where each producer stands that may still write."""
        return {
            producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
            for producer_id, entry in self.producers
        }

    def aborted_between(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch a range."""
        found: list[AbortedTransaction] = []
        for segment in self._segments.from_offset(start_offset):
            for aborted in segment.transactions:
                if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= end_offset:
                    return found
        return found

    def open_cleaned(self, base_offset: int, *, buffer_max: int) -> CleanedSegment:
        """The files of a segment that is to replace the one that begins there, and perhaps some after it."""
        self._require_online()
        now_ms = self._clock.wall_ms()
        return CleanedSegment(self.directory, base_offset, self._files, now_ms=now_ms, buffer_max=buffer_max)

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Whether these are still closed segments of the log, one after the other."""
        return self._segments.holds(segments)

    def replace_segments(self, old: Sequence[Segment], cleaned: CleanedSegment) -> bool:
        """Put a finished segment in the place of `old`; False when those have changed, or must not."""
        self._require_online()
        if self.is_moving or not self.holds(old):
            return False
        fresh = self._segment_of(cleaned, next_offset=old[-1].next_offset)
        cleaned.forget_files()
        suffixes = [names.LOG, names.INDEX, names.TIME_INDEX]
        if cleaned.transactions.count:
            suffixes.append(names.TRANSACTION_INDEX)
        else:
            self._files.disk.unlink(cleaned.transactions.path)
        for suffix in reversed(suffixes):
            self._rename(fresh, suffix + names.CLEANED, suffix + names.SWAP)
        self._segments.replace(old, fresh)
        self._discard(list(old), self._clock.wall_ms())
        for suffix in suffixes:
            self._rename(fresh, suffix + names.SWAP, suffix)
        for segment in old[1:]:
            self._snapshots.remove(segment.base_offset)
        return True

    def directory_sync(self) -> Callable[[], None]:
        """Makes the renames of a replacement durable. Blocks; any thread; does nothing once closed."""
        gate, disk, directory = self._gate, self._files.disk, self.directory

        def sync() -> None:
            with gate.lock:
                if not gate.is_closed:
                    disk.sync_directory(directory)

        return sync

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(offset)
        self.cleaned_offset = min(self.cleaned_offset, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        super().truncate_fully_and_start_at(offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)

    def _segment_of(self, cleaned: CleanedSegment, *, next_offset: int) -> Segment:
        segment = Segment(
            self.directory,
            cleaned.base_offset,
            self._files,
            created_ms=cleaned.created_ms,
            size_bytes=cleaned.size_bytes,
        )
        segment.next_offset = next_offset
        segment.first_timestamp_ms = cleaned.first_timestamp_ms
        segment.max_timestamp_ms = cleaned.max_timestamp_ms
        segment.max_timestamp_offset = cleaned.max_timestamp_offset
        segment.is_durable_entry = True
        return segment

    def _rename(self, segment: Segment, old: str, new: str) -> None:
        base, directory = segment.base_offset, self.directory
        self._files.disk.rename(
            names.segment_path(directory, base, old), names.segment_path(directory, base, new)
        )
