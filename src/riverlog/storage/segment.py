"""One segment: a log file and its indexes.

Knows sizes and the newest timestamps in memory and opens files when they are needed. Appends only at the
end; whether to append or to roll is the log's decision, by `should_roll`. Invariants: `size_bytes` counts
whole batches only; the index entries of a batch are added after the batch is written, so they never point
past it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from riverlog.model.clock import Clock
from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.model.errors import DiskFullError
from riverlog.records.batch import BatchHeader
from riverlog.storage import names
from riverlog.storage.appends import PlacedBatch
from riverlog.storage.batch_scan import walk_headers, walk_shapes
from riverlog.storage.index_files import OffsetIndex, TimeIndex
from riverlog.storage.open_files import Files, LazyFile
from riverlog.storage.transaction_index import TransactionIndex

_RELATIVE_MAX: Final = 2**31 - 1
_ROOM_BYTES_MAX: Final = 8 * 1024  # Bounds what is put off until the next closer look.


class Room(NamedTuple):
    """What a segment takes with nothing else to do: up to here it need not be rolled or indexed.

    Neither is a leader epoch new that is the one given here.
    """

    end_bytes: int
    newest_ms: int
    last_offset: int
    leader_epoch: int


class Segment:
    __slots__ = (
        "_has_new_entry",
        "_index",
        "_indexed_bytes",
        "_time_index",
        "_transactions",
        "base_offset",
        "created_ms",
        "directory",
        "files",
        "first_timestamp_ms",
        "is_durable_entry",
        "log",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "next_offset",
        "room",
        "size_bytes",
    )

    def __init__(
        self, directory: str, base_offset: int, files: Files, *, created_ms: int, size_bytes: int = 0
    ) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.files = files
        self.log = LazyFile(names.segment_path(directory, base_offset, names.LOG), files)
        self.size_bytes = size_bytes
        self.next_offset = base_offset
        self.created_ms = created_ms
        self.first_timestamp_ms: int | None = None
        self.max_timestamp_ms: int | None = None
        self.max_timestamp_offset = base_offset
        self.is_durable_entry = False
        self.room: Room | None = None
        self._indexed_bytes = 0
        """Where the batch begins that the newest index entry stands for."""
        self._has_new_entry = True
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._transactions: TransactionIndex | None = None

    @property
    def index(self) -> OffsetIndex:
        if self._index is None:
            self._index = OffsetIndex(self._path(names.INDEX), self.files)
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            self._time_index = TimeIndex(self._path(names.TIME_INDEX), self.files)
        return self._time_index

    @property
    def transactions(self) -> TransactionIndex:
        if self._transactions is None:
            self._transactions = TransactionIndex(self._path(names.TRANSACTION_INDEX), self.files)
        return self._transactions

    def should_roll(
        self, config: LogConfig, added_bytes: int, last_offset: int, timestamp_ms: int, clock: Clock
    ) -> bool:
        """Whether `added_bytes` that end at `last_offset` must go into a new segment."""
        size_bytes = self.size_bytes
        if size_bytes + added_bytes > config.segment_bytes or last_offset - self.base_offset > _RELATIVE_MAX:
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
            self.first_timestamp_ms = next((header.max_timestamp_ms for _, header in self.headers(0)), -1)
        return -1 if self.first_timestamp_ms is None else self.first_timestamp_ms

    def _jitter_ms(self, config: LogConfig) -> int:
        # Spread by name and offset instead of by chance, so that a simulated run can be repeated.
        bound = min(config.segment_jitter_ms, config.roll_ms)
        return hash_of(self.log.path) % bound if bound > 0 else 0

    def append(
        self, data: ReadableBuffer, placed: Sequence[PlacedBatch], *, index_interval_bytes: int
    ) -> None:
        """Write in one go, and note every batch."""
        self.write(data)
        for batch in placed:
            self.note(batch.header, batch.last_offset, index_interval_bytes)

    def write(self, data: ReadableBuffer) -> None:
        """Put bytes at the end; `note` must follow. When the disk is full the file is cut back."""
        log = self.log
        log.used = True
        file = log.file or log.get(create=True)
        try:
            file.pwrite(data, self.size_bytes)
        except DiskFullError:
            file.truncate(self.size_bytes)
            raise

    def take(self, data: ReadableBuffer, last_offset: int, timestamp_ms: int) -> None:
        """Write and note a batch for which there is `room`."""
        self.write(data)
        newest_ms = self.max_timestamp_ms
        if newest_ms is None or timestamp_ms > newest_ms:
            self.max_timestamp_ms = timestamp_ms
            self.max_timestamp_offset = last_offset
        self.size_bytes += len(data)
        self.next_offset = last_offset + 1

    def renew_room(self, config: LogConfig, leader_epoch: int) -> None:
        """After a batch of this epoch. None while every batch must be looked at more closely."""
        first_ms = self.first_timestamp_ms
        if first_ms is None or first_ms < 0 or self._has_new_entry:
            return
        if config.segment_jitter_ms or config.flush_messages is not None:
            return
        end_bytes = min(
            config.segment_bytes,
            self._indexed_bytes + config.index_interval_bytes,
            self.size_bytes + _ROOM_BYTES_MAX,
        )
        last_offset = self.base_offset + _RELATIVE_MAX
        self.room = Room(end_bytes, first_ms + config.roll_ms, last_offset, leader_epoch)

    def note(self, header: BatchHeader, last_offset: int, index_interval_bytes: int) -> None:
        """Account for a batch that is in the file at `size_bytes` and ends at `last_offset`."""
        self.room = None
        timestamp_ms, size_bytes = header.max_timestamp_ms, header.size_bytes
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = timestamp_ms
        if self.max_timestamp_ms is None or timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
            self.max_timestamp_offset = last_offset
        if self.size_bytes - self._indexed_bytes > index_interval_bytes:
            self.index.append(last_offset - self.base_offset, self.size_bytes)
            self.time_index.note(self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset)
            self._indexed_bytes = self.size_bytes
            self._has_new_entry = True
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

    def load_end(self) -> bool:
        """Find end offset and newest timestamp of a segment on disk; False when the file ends in a torso."""
        last = self.index.last
        start = end = last[1] if last is not None else 0
        if (newest := self.time_index.last) is not None:
            self.max_timestamp_ms = newest[0]
            self.max_timestamp_offset = self.base_offset + newest[1]
        for position, header in self.headers(start):
            if self.max_timestamp_ms is None or header.max_timestamp_ms > self.max_timestamp_ms:
                self.max_timestamp_ms = header.max_timestamp_ms
                self.max_timestamp_offset = header.last_offset
            self.next_offset = header.next_offset
            end = position + header.size_bytes
        self._indexed_bytes = start
        return end == self.size_bytes

    def largest_timestamp_ms(self) -> int:
        """Newest timestamp; a segment without one is as old as its file."""
        if self.max_timestamp_ms is None and (newest := self.time_index.last) is not None:
            self.max_timestamp_ms = newest[0]
            self.max_timestamp_offset = self.base_offset + newest[1]
        if self.max_timestamp_ms is not None and self.max_timestamp_ms >= 0:
            return self.max_timestamp_ms
        disk = self.files.disk
        return disk.modified_ms(self.log.path) if disk.exists(self.log.path) else self.created_ms

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        if self.size_bytes == 0:
            return iter(())
        return walk_headers(self.log.get(), position, self.size_bytes)

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Where the first batch begins and ends that holds `offset` or comes after it."""
        if not self.size_bytes:
            return None
        start = self.index.position_for(max(offset - self.base_offset, 0))
        for position, size, _, last_offset in walk_shapes(self.log.get(), start, self.size_bytes):
            if last_offset >= offset:
                return position, position + size
        return None

    def last_boundary(self, start: int, limit: int) -> tuple[int, int]:
        """Where the last batch ends that ends at or before `limit`, and the first offset after it.

        `start` is where a batch begins.
        """
        boundary = max(start, self.index.position_before(limit))
        for position, size, base_offset, _ in walk_shapes(self.log.get(), boundary, self.size_bytes):
            if position + size > limit:
                return position, base_offset
            boundary = position + size
        return boundary, self.next_offset

    def first_boundary(self, start: int) -> tuple[int, int]:
        """Where the batch ends that begins at `start`, and the first offset after it."""
        end = start
        for position, size, base_offset, _ in walk_shapes(self.log.get(), start, self.size_bytes):
            if position > start:
                return position, base_offset
            end = position + size
        return end, self.next_offset

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that ends at or after `offset`."""
        found = self.locate(offset)
        if found is None:
            return
        self.truncate_at(found[0], offset)

    def truncate_at(self, position: int, end_offset: int) -> None:
        """Cut the file at `position` and what the indexes say from `end_offset` on."""
        self.room = None
        self.log.get(create=True).truncate(position)
        self.size_bytes = position
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
        self.room = None
        self.index.keep(0)
        self.time_index.keep(0)
        self.transactions.keep_below(0)
        self.first_timestamp_ms = None
        self.max_timestamp_ms = None
        self.next_offset = self.base_offset
        self.size_bytes = 0
        self._indexed_bytes = 0

    def open_indexes(self) -> list[DiskFile]:
        """The index files, for a sync."""
        files = [self.index.open(), self.time_index.open()]
        if self.transactions.count:
            files.append(self.transactions.open())
        return files

    def forget_files(self) -> None:
        self.log.forget()
        for index in (self._index, self._time_index, self._transactions):
            if index is not None:
                index.forget()

    def _path(self, suffix: str) -> str:
        return names.segment_path(self.directory, self.base_offset, suffix)


def hash_of(text: str) -> int:
    """A number that depends on nothing but the text, unlike `hash`."""
    value = 0
    for character in text.encode():
        value = (value * 31 + character) & 0xFFFFFFFF
    return value
