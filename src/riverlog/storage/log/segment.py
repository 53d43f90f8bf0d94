"""One segment: a log file and its indexes.

Knows sizes and the newest timestamps in memory and opens files when they are needed. Appends only at the
end; whether to append or to roll is the log's decision, by `should_roll`. Invariants: `size_bytes` counts
whole batches only; the index entries of a batch are added after the batch is written, so they never point
past it. Finding places in it is in `segment_lookup`.
"""

from typing import Final, NamedTuple

from riverlog.model.clock import Clock
from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.model.errors import DamagedLogError, DiskFullError
from riverlog.model.ids import LeaderEpoch
from riverlog.model.named_tuples import maker_of
from riverlog.records.batch import BatchHeader
from riverlog.storage.disk.open_files import Files
from riverlog.storage.files.index_files import OffsetIndex, TimeIndex
from riverlog.storage.log.appends import RELATIVE_OFFSET_MAX
from riverlog.storage.log.segment_lookup import SegmentLookup

_HEADROOM_BYTES_MAX: Final = 8 * 1024  # Bounds what is put off until the next closer look.


class Headroom(NamedTuple):
    """What a segment takes with nothing else to do: up to here it need not be rolled or indexed.

    Neither is a leader epoch new that is the one given here.
    """

    end_bytes: int
    newest_ms: int
    last_offset: int
    leader_epoch: LeaderEpoch


_headroom: Final = maker_of(Headroom)


class Segment(SegmentLookup):
    __slots__ = (
        "_has_new_entry",
        "_indexed_bytes",
        "created_ms",
        "first_timestamp_ms",
        "headroom",
        "is_durable_entry",
        "max_timestamp_ms",
        "max_timestamp_offset",
    )

    def __init__(
        self, directory: str, base_offset: int, files: Files, *, created_ms: int, size_bytes: int = 0
    ) -> None:
        super().__init__(directory, base_offset, files, size_bytes)
        self.created_ms = created_ms
        self.first_timestamp_ms: int | None = None
        self.max_timestamp_ms: int | None = None
        self.max_timestamp_offset = base_offset
        self.is_durable_entry = False
        self.headroom: Headroom | None = None
        self._indexed_bytes = 0
        """Where the batch begins that the newest index entry stands for."""
        self._has_new_entry = True

    def should_roll(
        self, config: LogConfig, added_bytes: int, last_offset: int, timestamp_ms: int, clock: Clock
    ) -> bool:
        """Whether `added_bytes` that end at `last_offset` must go into a new segment."""
        size_bytes = self.size_bytes
        if (
            size_bytes + added_bytes > config.segment_bytes
            or last_offset - self.base_offset > RELATIVE_OFFSET_MAX
        ):
            return True
        if size_bytes == 0:
            return False
        first_ms = self.first_timestamp_ms
        if first_ms is not None and first_ms >= 0 and not config.segment_jitter_ms:
            if timestamp_ms - first_ms > config.roll_ms:
                return True
        elif self._waited_ms(timestamp_ms, clock) > config.roll_ms - self._jitter_ms(config):
            return True
        return self._has_new_entry and self._is_index_full(config)

    def _is_index_full(self, config: LogConfig) -> bool:
        entries = config.segment_index_bytes
        is_full = (self.index.count + 1) * OffsetIndex.ENTRY_BYTES > entries or (
            self.time_index.count + 2
        ) * TimeIndex.ENTRY_BYTES > entries
        self._has_new_entry = is_full
        return is_full

    def _waited_ms(self, timestamp_ms: int, clock: Clock) -> int:
        """Age of the segment at a record of `timestamp_ms`, counted from its first batch, as Kafka does."""
        first = self.first_batch_ms()
        return timestamp_ms - first if first >= 0 else clock.wall_ms() - self.created_ms

    def first_batch_ms(self) -> int:
        """Timestamp of the first batch; negative where there is none."""
        if self.first_timestamp_ms is None and self.size_bytes:
            try:
                self.first_timestamp_ms = next((header.max_timestamp_ms for _, header in self.headers(0)), -1)
            except DamagedLogError as damage:
                self.files.damage.note(damage)
                self.first_timestamp_ms = -1
        return -1 if self.first_timestamp_ms is None else self.first_timestamp_ms

    def _jitter_ms(self, config: LogConfig) -> int:
        # Spread by name and offset instead of by chance, so that a simulated run can be repeated.
        bound = min(config.segment_jitter_ms, config.roll_ms)
        return hash_of(self.log.path) % bound if bound > 0 else 0

    def write(self, data: ReadableBuffer) -> None:
        """Put bytes at the end; `account_for` must follow. When the disk is full the file is cut back."""
        log = self.log
        log.used = True
        file = log.file or log.get(create=True)
        try:
            file.pwrite(data, self.size_bytes)
        except DiskFullError:
            file.truncate(self.size_bytes)
            raise

    def write_within_headroom(self, data: ReadableBuffer, last_offset: int, timestamp_ms: int) -> None:
        """Write and account for a batch for which there is `headroom`."""
        self.write(data)
        newest_ms = self.max_timestamp_ms
        if newest_ms is None or timestamp_ms > newest_ms:
            self.max_timestamp_ms = timestamp_ms
            self.max_timestamp_offset = last_offset
        self.size_bytes += len(data)
        self.next_offset = last_offset + 1

    def renew_headroom(self, config: LogConfig, leader_epoch: LeaderEpoch) -> None:
        """After a batch of this epoch. None while every batch must be looked at more closely."""
        first_ms, size_bytes = self.first_timestamp_ms, self.size_bytes
        next_entry_bytes = self._indexed_bytes + config.index_interval_bytes
        if first_ms is None or first_ms < 0 or next_entry_bytes <= size_bytes:
            return
        if config.segment_jitter_ms or config.flush_messages is not None:
            return
        if self._has_new_entry and self._is_index_full(config):
            return
        end_bytes = min(config.segment_bytes, next_entry_bytes, size_bytes + _HEADROOM_BYTES_MAX)
        last_offset = self.base_offset + RELATIVE_OFFSET_MAX
        self.headroom = _headroom((end_bytes, first_ms + config.roll_ms, last_offset, leader_epoch))

    def look_closer(self) -> None:
        """At the next batch: the config has changed, so that there may be no room for it."""
        self.headroom = None
        self._has_new_entry = True

    def account_for(self, header: BatchHeader, last_offset: int, index_interval_bytes: int) -> None:
        """Account for a batch that is in the file at `size_bytes` and ends at `last_offset`."""
        self.headroom = None
        timestamp_ms, size_bytes = header.max_timestamp_ms, header.size_bytes
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = timestamp_ms
        if self.max_timestamp_ms is None or timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
            self.max_timestamp_offset = last_offset
        if self.size_bytes - self._indexed_bytes > index_interval_bytes:
            index, time_index = self.index, self.time_index
            index.append(last_offset - self.base_offset, self.size_bytes)
            time_index.note(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
            self._indexed_bytes = self.size_bytes
            self._has_new_entry = True
            if index.has_full_page or time_index.has_full_page:
                self._save_full_pages()
        self.size_bytes += size_bytes
        self.next_offset = last_offset + 1

    def _save_full_pages(self) -> None:
        try:
            for index in (self.index, self.time_index):
                if index.has_full_page:
                    index.save()
        except DiskFullError:
            return  # The entries stay in memory; the next page, the roll or the close tries again.

    def save_indexes(self) -> None:
        """Complete the index files, before a roll or a close. May raise `DiskFullError`; can be repeated."""
        if self.max_timestamp_ms is not None:
            self.time_index.note(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
        self.log.get(create=True)
        self.index.save()
        self.time_index.save()

    def find_newest(self) -> None:
        """By the headers, because the time index is damaged; as far as they can be read."""
        self.max_timestamp_ms = None
        try:
            for _, header in self.headers(0):
                self._note_timestamp(header)
        except DamagedLogError as damage:
            self.files.damage.note(damage)

    def _note_timestamp(self, header: BatchHeader) -> None:
        if self.max_timestamp_ms is None or header.max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = header.max_timestamp_ms
            self.max_timestamp_offset = header.last_offset

    def load_end(self) -> bool:
        """Find end offset and newest timestamp of a segment on disk; False when the file ends in a torso."""
        last = self.index.last
        if last is None or not self._load_end_from(last[1], self.base_offset + last[0]):
            self.max_timestamp_ms = None
            if not self._load_end_from(0, None):
                return False
        newest, found_ms = self.time_index.last, self.max_timestamp_ms
        if newest is not None and (
            newest[0] == found_ms or (newest[0] > (found_ms or 0) and self.bears_out(newest))
        ):
            self.max_timestamp_ms = newest[0]
            self.max_timestamp_offset = self.base_offset + newest[1]
        return True

    def _load_end_from(self, start: int, last_there: int | None) -> bool:
        """From a batch that ends at an offset, if that is known; False where one is not as it should be."""
        end = start
        try:
            for position, header in self.headers(start):
                if position == start and last_there not in (None, header.last_offset):
                    return False
                self._note_timestamp(header)
                self.next_offset = header.next_offset
                end = position + header.size_bytes
        except DamagedLogError:
            return False
        self._indexed_bytes = start
        return end == self.size_bytes

    def largest_timestamp_ms(self) -> int:
        """Newest timestamp; a segment without one is as old as its file."""
        if self.max_timestamp_ms is None and (newest := self.time_index.last) is not None:
            if self.bears_out(newest):
                self.max_timestamp_ms = newest[0]
                self.max_timestamp_offset = self.base_offset + newest[1]
            else:
                self.find_newest()
        if self.max_timestamp_ms is not None and self.max_timestamp_ms >= 0:
            return self.max_timestamp_ms
        disk = self.files.disk
        return disk.modified_ms(self.log.path) if disk.exists(self.log.path) else self.created_ms

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that ends at or after `offset`."""
        found = self.locate(offset)
        if found is not None:
            self.truncate_at(position=found[0], end_offset=offset)
        elif self.next_offset > offset:  # Compaction has taken the last batches out.
            self.truncate_at(position=self.size_bytes, end_offset=offset)

    def truncate_at(self, *, position: int, end_offset: int) -> None:
        """Cut the file at `position` and what the indexes say from `end_offset` on."""
        self.headroom = None
        self.log.get(create=True).truncate(position)
        self.size_bytes = position
        self.forget_checked(min(self.unchecked_end, position))
        relative = end_offset - self.base_offset
        self.index.keep_below(max(relative, 0))
        self.time_index.keep_below(max(relative, 0))
        self.transactions.keep_below(end_offset)
        self.next_offset = self.base_offset
        self.first_timestamp_ms = None
        self.max_timestamp_ms = None
        self.load_end()

    def reset_indexes(self) -> None:
        """Empty the indexes and counters, before they are rebuilt from the log file."""
        self.headroom = None
        self.index.keep(0)
        self.time_index.keep(0)
        self.transactions.keep_below(0)
        self.first_timestamp_ms = None
        self.max_timestamp_ms = None
        self.next_offset = self.base_offset
        self.size_bytes = 0
        self._indexed_bytes = 0
        self.forget_checked(0)

    def open_indexes(self) -> list[DiskFile]:
        """The index files, for a sync."""
        files = [self.index.open(), self.time_index.open()]
        if self.transactions.count:
            files.append(self.transactions.open())
        return files


def hash_of(text: str) -> int:
    """A number that depends on nothing but the text, unlike `hash`."""
    value = 0
    for character in text.encode():
        value = (value * 31 + character) & 0xFFFFFFFF
    return value
