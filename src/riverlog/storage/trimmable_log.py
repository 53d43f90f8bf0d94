"""Taking records away from a log: at the front by retention and deletion, at the end by truncation; and
taking over where another log stands.

The middle part of `Log`. At the front only whole segments below the high watermark go; their files are
renamed at once and removed after `file.delete.delay.ms`.
"""

from riverlog.model.errors import DiskFullError
from riverlog.storage.appends import OffsetOutOfRange
from riverlog.storage.durable_log import DurableLog
from riverlog.storage.leader_epochs import LeaderEpochs
from riverlog.storage.loading import replay_producers
from riverlog.storage.producer_state import ProducerStates
from riverlog.storage.retention import decide_retention


class TrimmableLog(DurableLog):
    __slots__ = ()

    def delete_records(self, before_offset: int) -> int | OffsetOutOfRange:
        """Move the log start up; returns where it is now. Segments wholly below it go at once."""
        self._require_online()
        if not 0 <= before_offset <= self.high_watermark:
            return OffsetOutOfRange(self.log_start_offset, self.high_watermark)
        self._move_start(before_offset)
        self.apply_retention(self._clock.wall_ms(), only_below_start=True)
        return self.log_start_offset

    def _move_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._epochs.truncate_from_start(offset)
            self.set_high_watermark(self.high_watermark)

    def apply_retention(self, now_ms: int, *, only_below_start: bool = False) -> int:
        """Delete what retention lets go; returns how many segments. Files are renamed and removed later."""
        self._require_online()
        count = decide_retention(
            self._segments,
            self.config,
            high_watermark=self.high_watermark,
            log_start_offset=self.log_start_offset,
            now_ms=now_ms,
            only_below_start=only_below_start,
        )
        if count == len(self._segments):
            try:
                self.roll()
            except DiskFullError:
                count -= 1  # There is no room for a new segment yet; the others make it.
        if count:
            self._move_start(self._segments[count].base_offset)
            taken = self._segments.take_first(count)
            self._discard(taken, now_ms)
            for segment in taken:
                self._snapshots.remove(segment.base_offset)
        return count

    def truncate_to(self, offset: int) -> None:
        """Drop everything from `offset` on. The caller must write the recovery point checkpoint after it."""
        self._require_online()
        if offset >= self.log_end_offset:
            return
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._discard(self._segments.take_after(offset), self._clock.wall_ms())
        self._segments.active.truncate_to(offset)
        self._segments.forget_recent()
        self._cut_state(self._segments.active.next_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin again, empty, at `offset`. Checkpoint the recovery point after it too."""
        self._require_online()
        self._begin_again(offset)
        self._is_touched = True
        self.set_high_watermark(self.high_watermark)

    def skip_to(self, offset: int) -> None:
        """Continue at `offset`, past the end, where the original has nothing in between any more."""
        self._require_online()
        if self._segments.size_bytes == 0:
            self.truncate_fully_and_start_at(offset)
        else:
            self.roll(offset)
            self.log_end_offset = offset

    def take_over(self, original: DurableLog) -> None:
        """Be to producers and readers what `original`, whose records these are, is to them. Writes, unsynced.

        Its producers may be of records that are gone, and its epochs may have none, so that the records do
        not tell.
        """
        self._require_online()
        assert self.log_end_offset == original.log_end_offset
        self.producers = original.producers
        self._epochs = LeaderEpochs(list(original.leader_epochs))
        self._epochs.is_dirty = self._is_touched = True
        self._snapshots.write(self.log_end_offset, self.producers)
        self.set_high_watermark(original.high_watermark)
        self._move_start(original.log_start_offset)

    def _cut_state(self, end_offset: int) -> None:
        self._truncations += 1
        self._is_touched = True
        self.log_end_offset = end_offset
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self._flushed_offset = min(self._flushed_offset, end_offset)
        self._epochs.truncate_from_end(end_offset)
        self._snapshots.remove_after(end_offset)
        self.producers = ProducerStates()
        replay_producers(
            list(self._segments),
            self.producers,
            self._snapshots,
            start=self.log_start_offset,
            end=end_offset,
            oldest_ms=self._clock.wall_ms() - self.config.producer_id_expiration_ms,
        )
        self.set_high_watermark(self.high_watermark)

    def expire_producers(self, now_ms: int) -> int:
        return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
