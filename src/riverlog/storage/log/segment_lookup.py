"""Finding places in a segment: where a batch begins that holds an offset, where the last one ends that fits.

The log file is the truth; an index only says where to begin to look, and an entry that the log does not bear
out is passed over and reported. What was on disk when the segment was opened has its headers walked once
before it is handed out, since a flipped bit in a base offset is covered by no CRC; what this process has
written itself has not. Raises `DamagedLogError` where the log file itself is damaged. Not here: writing.
"""

from collections.abc import Iterator
from typing import Final

from riverlog.model.errors import DamagedLogError
from riverlog.records.batch import BatchHeader
from riverlog.storage.disk.open_files import Files, LazyFile
from riverlog.storage.files import names
from riverlog.storage.files.index_files import OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from riverlog.storage.files.transaction_index import TransactionIndex
from riverlog.storage.log.batch_scan import Bounds, Shape, crc_holds, walk_headers, walk_shapes

_CHECKED_PER_READ_MAX: Final = 16_384
"""Headers that one read may have to walk; it gives what lies before."""


class SegmentLookup:
    __slots__ = (
        "_checked_from",
        "_checked_offset",
        "_checked_to",
        "_index",
        "_time_index",
        "_transactions",
        "base_offset",
        "directory",
        "files",
        "log",
        "next_offset",
        "size_bytes",
        "unchecked_end",
    )

    def __init__(self, directory: str, base_offset: int, files: Files, size_bytes: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.files = files
        self.log = LazyFile(names.segment_path(directory, base_offset, names.LOG), files)
        self.size_bytes = size_bytes
        self.next_offset = base_offset
        self.unchecked_end = size_bytes
        """What lies before was found on disk, and nobody has vouched for it yet but `sound_until`."""
        self._checked_from = self._checked_to = 0
        self._checked_offset = base_offset
        """The first offset behind what was checked."""
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

    def locate(self, offset: int) -> tuple[int, int] | None:
        """Where the first batch begins and ends that holds `offset` or comes after it.

        None when there is no such batch.
        """
        if not self.size_bytes:
            return None
        entry = self.index.entry_for(max(offset - self.base_offset, 0))
        if entry is None:
            return self._locate_from(0, offset)
        if entry[1] < self.size_bytes:
            try:
                return self._locate_from(entry[1], offset, entry)
            except DamagedLogError as damage:
                if damage.position != entry[1]:
                    raise
        return self._locate_without(entry, offset)

    def _locate_without(self, entry: OffsetEntry, offset: int) -> tuple[int, int] | None:
        """From an earlier place, because the entry and the log do not agree. One of the two is damaged."""
        relative, position = entry
        start = 0
        for earlier in self.index.entries_before(relative):
            if earlier[0] < relative and self._is_borne_out(earlier):
                start = earlier[1]
                break
        try:
            found = self._locate_from(start, offset)
        except DamagedLogError as damage:
            if damage.position == position:
                raise
            self._report_entry(entry)
            raise
        self._report_entry(entry)
        return found

    def _locate_from(
        self, start: int, offset: int, entry: OffsetEntry | None = None
    ) -> tuple[int, int] | None:
        """From a place where a batch begins, and ends as the index entry says if there is one."""
        before: Shape | None = None
        for shape in walk_shapes(self.log.get(), start, self._bounds(start, entry)):
            position, size, base_offset, last_offset = shape
            if last_offset >= offset:
                if base_offset > offset:
                    self._require_gap(before)
                return position, position + size
            before = shape
        self._require_gap(before)
        return None

    def _is_borne_out(self, entry: OffsetEntry) -> bool:
        """Whether a batch begins at the position of an index entry that ends at its offset."""
        position = entry[1]
        if position >= self.size_bytes:
            return False
        try:
            next(walk_shapes(self.log.get(), position, self._bounds(position, entry)))
        except DamagedLogError:
            return False
        return True

    def bears_out(self, entry: TimeEntry) -> bool:
        """Whether the batch at the offset of an entry of the time index has its timestamp; reported if not.

        An entry that points at damage is believed.
        """
        timestamp_ms, relative = entry
        offset = self.base_offset + relative
        try:
            located = self.locate(offset)
            header = next(self.headers(located[0]))[1] if located is not None else None
        except DamagedLogError:
            return True
        if header is not None and header.last_offset == offset and header.max_timestamp_ms == timestamp_ms:
            return True
        number = max(self.time_index.floor(timestamp_ms, 0), 0)
        self.files.damage.note_index(
            self.time_index.path,
            number * TimeIndex.ENTRY_BYTES,
            f"no batch of the log that ends at offset {offset} has the timestamp {timestamp_ms}",
        )
        return False

    def _report_entry(self, entry: OffsetEntry) -> None:
        relative, position = entry
        index = self.index
        number = index.floor(relative, 0)
        self.files.damage.note_index(
            index.path,
            max(number, 0) * OffsetIndex.ENTRY_BYTES,
            f"no batch of the log that ends at offset {self.base_offset + relative} is at byte {position}",
        )

    def _require_gap(self, before: Shape | None) -> None:
        """No batch holds an offset that was asked for: compaction has taken it, or the batch before says that
        it ends too early. Its CRC tells.
        """
        if before is None or before[0] >= self.unchecked_end:
            return
        position, size, base_offset, _ = before
        file = self.log.get()
        if not crc_holds(file, position, size):
            raise DamagedLogError(file.path, position, base_offset, "the CRC of the batch there is wrong")

    def last_boundary(self, start: int, limit: int) -> tuple[int, int]:
        """Where the last batch ends that ends at or before `limit`, and the first offset after it.

        `start` is where a batch begins.
        """
        entry = self.index.entry_before(limit)
        if entry is not None and start < entry[1] < self.size_bytes:
            try:
                return self._last_boundary_from(entry[1], limit, entry)
            except DamagedLogError as damage:
                if damage.position != entry[1]:
                    raise
            found = self._last_boundary_from(start, limit)
            self._report_entry(entry)
            return found
        return self._last_boundary_from(start, limit)

    def _last_boundary_from(
        self, start: int, limit: int, entry: OffsetEntry | None = None
    ) -> tuple[int, int]:
        boundary = start
        for position, size, base_offset, _ in walk_shapes(self.log.get(), start, self._bounds(entry=entry)):
            if position + size > limit:
                return position, base_offset
            boundary = position + size
        return boundary, self.next_offset

    def first_boundary(self, start: int) -> tuple[int, int]:
        """Where the batch ends that begins at `start`, and the first offset after it."""
        end = start
        for position, size, base_offset, _ in walk_shapes(self.log.get(), start, self._bounds()):
            if position > start:
                return position, base_offset
            end = position + size
        return end, self.next_offset

    def is_checked(self, start: int, end: int) -> bool:
        return self._checked_from <= start and end <= self._checked_to

    def sound_until(self, start: int, end: int) -> tuple[int, int] | None:
        """How far batches follow each other as they should, from one that begins at `start` up to one that
        ends at `end`, and the first offset after them; None when all of them do.

        Raises `DamagedLogError` when the first does not.
        """
        is_known = self._checked_from <= start <= self._checked_to
        begin = self._checked_to if is_known else start
        if begin >= end:
            return None
        if not is_known:
            self._checked_from, self._checked_offset = start, self.base_offset
        bounds = Bounds(self.size_bytes, self._checked_offset, self.next_offset, is_known)
        count = 0
        try:
            for position, size, _, last_offset in walk_shapes(self.log.get(), begin, bounds):
                if position >= end or count == _CHECKED_PER_READ_MAX:
                    break
                count += 1
                self._checked_to, self._checked_offset = position + size, last_offset + 1
        except DamagedLogError as damage:
            self.files.damage.note(damage)
            if damage.position < end:
                self._checked_to, self._checked_offset = max(damage.position, start), damage.offset
            if damage.position <= start:
                raise
        return (self._checked_to, self._checked_offset) if self._checked_to < end else None

    def forget_checked(self, unchecked_end: int) -> None:
        """The bytes from here on are new, and known to be sound; what lies before is to be checked anew."""
        self.unchecked_end = unchecked_end
        self._checked_from = self._checked_to = 0
        self._checked_offset = self.base_offset

    def before_damage(self, start: int, limit: int, *, at_least_one: bool) -> tuple[int, int]:
        """Where the last batch ends that ends at or before `limit` and lies before any damage.

        And the first offset after it; `start` is where a batch begins. Raises where that is damaged.
        """
        end, upper = start, self.base_offset
        try:
            for position, size, _, last_offset in walk_shapes(self.log.get(), start, self._bounds()):
                if position + size > limit and not (at_least_one and position == start):
                    break
                end, upper = position + size, last_offset + 1
        except DamagedLogError as damage:
            if damage.position <= start:
                raise
            return min((end, upper), (damage.position, damage.offset))
        return end, upper

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Each batch from the one that begins at `position`."""
        if self.size_bytes == 0:
            return iter(())
        return walk_headers(self.log.get(), position, Bounds(self.size_bytes, self.base_offset))

    def _bounds(self, start: int | None = None, entry: OffsetEntry | None = None) -> Bounds:
        """Of a walk from `start`, if that is told, where the index has the entry, if there is one."""
        ends_with = None if entry is None else self.base_offset + entry[0]
        return Bounds(self.size_bytes, self.base_offset, self.next_offset, start == 0, ends_with)

    def forget_files(self) -> None:
        self.log.forget()
        for index in (self._index, self._time_index, self._transactions):
            if index is not None:
                index.forget()

    def _path(self, suffix: str) -> str:
        return names.segment_path(self.directory, self.base_offset, suffix)
