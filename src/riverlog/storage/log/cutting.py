"""Taking records away from a log: at the front by retention and deletion, at the end by truncation.

Invariants: at the front only whole segments below the high watermark go; after a cut at the end nothing
speaks of what is gone, as if it had never been written. Files are renamed at once and removed after
`file.delete.delay.ms`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from riverlog.model.errors import DiskFullError
from riverlog.storage.files import names
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.storage.log.loading import replay_producers
from riverlog.storage.log.opening import LogEnvironment
from riverlog.storage.log.retention import decide_retention
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.state import LogState
from riverlog.storage.log.syncing import LogSync
from riverlog.storage.producers.state import ProducerStates


@dataclass(slots=True, eq=False)
class LogCutting:
    _state: LogState
    _sync: LogSync
    _environment: LogEnvironment

    def delete_records(self, before_offset: int) -> int | OffsetOutOfRange:
        """Move the log start up; returns where it is now. Segments wholly below it go at once."""
        self._sync.gate.require_open()
        state = self._state
        if not 0 <= before_offset <= state.high_watermark:
            return OffsetOutOfRange(state.log_start_offset, state.high_watermark)
        state.move_start(before_offset)
        self.apply_retention(self._environment.clock.wall_ms(), only_below_start=True)
        return state.log_start_offset

    def apply_retention(self, now_ms: int, *, only_below_start: bool = False) -> int:
        """Delete what retention lets go; returns how many segments."""
        self._sync.gate.require_open()
        state = self._state
        count = self.decide_retention(now_ms, only_below_start=only_below_start)
        if count == len(state.segments):
            try:
                self._sync.roll()
            except DiskFullError:
                count -= 1  # There is no room for a new segment yet; the others make it.
        if count:
            state.move_start(state.segments[count].base_offset)
            taken = state.segments.take_first(count)
            self.discard(taken, now_ms)
            for segment in taken:
                state.snapshots.remove(segment.base_offset)
        return count

    def decide_retention(self, now_ms: int, *, only_below_start: bool = False) -> int:
        """How many segments retention lets go."""
        state = self._state
        return decide_retention(
            state.segments,
            state.config,
            high_watermark=state.high_watermark,
            log_start_offset=state.log_start_offset,
            now_ms=now_ms,
            only_below_start=only_below_start,
        )

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on. The caller must write the recovery point checkpoint after it."""
        self._sync.gate.require_open()
        state = self._state
        if offset >= state.log_end_offset:
            # This replica may have led without writing anything: its epoch begins at the end, and the leader
            # that it truncates for has another one there (KAFKA-10706).
            state.epochs.truncate_from_end(state.log_end_offset)
            return
        if offset < state.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        now_ms = self._environment.clock.wall_ms()
        self.discard(state.segments.take_after(offset), now_ms)
        state.segments.active.truncate_to(offset)
        state.segments.forget_recent()
        end_offset = state.segments.active.next_offset
        self._forget_from(end_offset)
        state.log_start_offset = min(state.log_start_offset, end_offset)
        replay_producers(
            list(state.segments),
            state.producers,
            state.snapshots,
            start=state.log_start_offset,
            end=end_offset,
            oldest_ms=now_ms - state.config.producer_id_expiration_ms,
        )
        state.set_high_watermark(state.high_watermark)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin again, empty, at `offset`. Checkpoint the recovery point after it too."""
        self._sync.gate.require_open()
        state, now_ms = self._state, self._environment.clock.wall_ms()
        self.discard(state.segments.take_first(len(state.segments)), now_ms)
        state.segments.add(Segment(state.directory, offset, self._environment.files, created_ms=now_ms))
        self._forget_from(offset)
        state.epochs.truncate_from_end(0)
        state.snapshots.remove_after(-1)
        state.log_start_offset = offset
        state.set_high_watermark(state.high_watermark)

    def _forget_from(self, end_offset: int) -> None:
        """Of producers everything: what they did before this must be replayed."""
        state = self._state
        state.generation += 1
        state.log_end_offset = end_offset
        state.cleaned_offset = min(state.cleaned_offset, end_offset)
        state.epochs.truncate_from_end(end_offset)
        state.snapshots.remove_after(end_offset)
        state.producers = ProducerStates()
        self._sync.lower(end_offset)

    def skip_to(self, offset: int) -> None:
        """Continue at `offset`, past the end, where the original has nothing in between any more."""
        self._sync.gate.require_open()
        if self._state.segments.size_bytes == 0:
            self.truncate_fully_and_start_at(offset)
        else:
            self._sync.roll(offset)
            self._state.log_end_offset = offset

    def discard(self, segments: Collection[Segment], now_ms: int) -> None:
        """Rename the files of segments that are no longer in the list; they are removed later."""
        state, disk = self._state, self._environment.files.disk
        due_ms = now_ms + state.config.file_delete_delay_ms
        self._sync.forget(segments)
        for segment in segments:
            segment.forget_files()
            for suffix in names.SEGMENT_FILES:
                path = names.segment_path(state.directory, segment.base_offset, suffix)
                if disk.exists(path):
                    disk.rename(path, path + names.DELETED)
                    self._environment.deleted.add(path + names.DELETED, due_ms)
