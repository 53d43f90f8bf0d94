"""Sparse indexes of a segment: offset to position, and timestamp to offset.

Entries are big-endian and ascend in both fields; offsets are relative to the segment's base. New entries
wait in memory until a page of them is there (or the segment is rolled, flushed or closed), since recovery
rebuilds the index of any segment that was not synced. Unlike Kafka's, the files are not preallocated: they
hold exactly their entries. Not here: which batches get an entry (`segment`).
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NewType, TypeVar

from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.storage.disk.open_files import Files, LazyFile

_OFFSET_ENTRY: Final = struct.Struct(">II")
_TIME_ENTRY: Final = struct.Struct(">qI")
_PAGE_ENTRIES: Final = 512
_NEIGHBOURS: Final = 8

OffsetEntry = NewType("OffsetEntry", tuple[int, int])
"""Last offset of a batch, relative to the base of the segment, and the position where the batch begins."""
TimeEntry = NewType("TimeEntry", tuple[int, int])
"""A timestamp, and the last offset (relative) of the batch that has it."""
E = TypeVar("E", bound=tuple[int, int])


class EntryFile(Generic[E]):
    """A file of fixed-size entries of two ascending numbers, searched a page at a time."""

    __slots__ = ("_entry", "_file", "_is_torn", "_last", "_near", "_tail", "_written")

    def __init__(self, path: str, files: Files, entry: struct.Struct) -> None:
        self._file = LazyFile(path, files)
        self._entry = entry
        self._tail = bytearray()
        self._written, torso_bytes = divmod(self._file.size_on_disk(), entry.size)
        self._is_torn = torso_bytes > 0
        self._last: E | None = None
        self._near = -1
        """Number of the page that was searched last; negative while none of them is remembered."""

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def count(self) -> int:
        return self._written + len(self._tail) // self._entry.size

    @property
    def last(self) -> E | None:
        if self._last is None and self.count:
            self._last = self._get(self.count - 1)
        return self._last

    def append(self, first: int, second: int) -> None:
        self._tail += self._entry.pack(first, second)
        last: Any = (first, second)
        self._last = last

    @property
    def has_full_page(self) -> bool:
        return len(self._tail) >= _PAGE_ENTRIES * self._entry.size

    def save(self) -> None:
        """Write what waits in memory; an empty index gets its file too. May raise `DiskFullError`."""
        file = self._file.get(create=True)
        if self._tail:
            file.pwrite(self._tail, self._written * self._entry.size)
            self._written += len(self._tail) // self._entry.size
            self._tail = bytearray()

    def open(self) -> DiskFile:
        return self._file.get(create=True)

    def keep(self, count: int) -> None:
        """Drop every entry from number `count` on."""
        if self._is_torn:
            # Half an entry, left by a power cut, is in nobody's count and goes with the first change.
            self._file.get().truncate(self._written * self._entry.size)
            self._is_torn = False
        if count >= self.count:
            return
        if count < self._written:
            self._file.get(create=True).truncate(count * self._entry.size)
            self._written = count
            self._forget_pages()
            self._tail = bytearray()
        else:
            del self._tail[(count - self._written) * self._entry.size :]
        self._last = None

    def floor(self, target: int, field: int) -> int:
        """Number of the last entry whose field 0 or 1 is at most `target`; -1 when there is none."""
        return self._search(target, field)[0]

    def _search(self, target: int, field: int) -> tuple[int, E | None]:
        """That entry, too."""
        entry = self._entry
        page: ReadableBuffer
        if self._tail and entry.unpack_from(self._tail)[field] <= target:
            low, page = self._written, self._tail
        elif not self._written:
            return -1, None
        else:
            low, page = self._page_with(target, field)
        count = _count_up_to(page, entry, target, field)
        found: Any = entry.unpack_from(page, (count - 1) * entry.size) if count else None
        return low + count - 1, found

    def _page_with(self, target: int, field: int) -> tuple[int, ReadableBuffer]:
        """The page of the file to search, and the number of its first entry.

        A reader that moves through the log asks for the page of its last question again, or for the next.
        """
        entry = self._entry
        near, end_page = self._near, -(-self._written // _PAGE_ENTRIES)
        for number in (near, near + 1):
            if near >= 0 and number < end_page:
                page = self._whole_page(number)
                if entry.unpack_from(page)[field] > target:
                    break
                if number + 1 == end_page or entry.unpack_from(page, len(page) - entry.size)[field] > target:
                    self._near = number
                    return number * _PAGE_ENTRIES, page
        # A long index costs one short read per halving and one page in the end.
        first_page = 0
        while end_page - first_page > 1:
            middle = (first_page + end_page) // 2
            if self._get(middle * _PAGE_ENTRIES)[field] <= target:
                first_page = middle
            else:
                end_page = middle
        self._near = first_page
        return first_page * _PAGE_ENTRIES, self._whole_page(first_page)

    def _whole_page(self, number: int) -> ReadableBuffer:
        """A page of what is in the file, which is remembered."""
        low = number * _PAGE_ENTRIES
        high = min(low + _PAGE_ENTRIES, self._written)
        pages = self._file.files.open_files.pages
        page = pages.get((self, low, high))
        if page is None:
            page = self._page(low, high)
            pages.add((self, low, high), page)
        return page

    def entry(self, number: int) -> E:
        return self._get(number)

    def entries(self) -> Iterator[E]:
        entries_in: Callable[[ReadableBuffer], Iterator[Any]] = self._entry.iter_unpack
        for low in range(0, self._written, _PAGE_ENTRIES):
            yield from entries_in(self._page(low, min(low + _PAGE_ENTRIES, self._written)))
        yield from entries_in(bytes(self._tail))

    def forget(self) -> None:
        self._file.forget()
        self._forget_pages()

    def _forget_pages(self) -> None:
        if self._near >= 0:
            self._near = -1
            self._file.files.open_files.pages.forget(self)

    def _get(self, number: int) -> E:
        fields: Any = self._entry.unpack_from(self._page(number, number + 1))
        entry: E = fields
        return entry

    def _page(self, low: int, high: int) -> ReadableBuffer:
        size = self._entry.size
        if low >= self._written:
            return self._tail[(low - self._written) * size : (high - self._written) * size]
        high = min(high, self._written)
        if high <= low:
            return b""
        return self._file.get().pread((high - low) * size, low * size)


def _count_up_to(page: ReadableBuffer, entry: struct.Struct, target: int, field: int) -> int:
    low, high = 0, len(page) // entry.size
    while low < high:
        middle = (low + high) // 2
        if entry.unpack_from(page, middle * entry.size)[field] <= target:
            low = middle + 1
        else:
            high = middle
    return low


class OffsetIndex(EntryFile[OffsetEntry]):
    """Last offset of a batch (relative) to the position where the batch begins."""

    __slots__ = ()

    ENTRY_BYTES: Final = 8

    def __init__(self, path: str, files: Files) -> None:
        super().__init__(path, files, _OFFSET_ENTRY)

    def entry_for(self, relative_offset: int) -> OffsetEntry | None:
        """The entry of a batch that ends at the offset or before it, as near as may be."""
        return self._search(relative_offset, 0)[1]

    def entry_before(self, position: int) -> OffsetEntry | None:
        """The last entry of a batch that begins at `position` or before it."""
        return self._search(position, 1)[1]

    def entries_before(self, relative_offset: int) -> Iterator[OffsetEntry]:
        """A few entries before the one that is found for an offset, backwards: one of them may be wrong."""
        number = self.floor(relative_offset, 0)
        for earlier in range(number - 1, max(number - 1 - _NEIGHBOURS, -1), -1):
            yield self._get(earlier)

    def keep_below(self, relative_offset: int) -> None:
        self.keep(self.floor(relative_offset - 1, 0) + 1)


class TimeIndex(EntryFile[TimeEntry]):
    """Greatest timestamp so far to the last offset (relative) of the batch that has it."""

    __slots__ = ()

    ENTRY_BYTES: Final = 12

    def __init__(self, path: str, files: Files) -> None:
        super().__init__(path, files, _TIME_ENTRY)

    def note(self, timestamp_ms: int, relative_offset: int) -> None:
        """Add an entry if the timestamp is greater than the last one."""
        last = self.last
        if timestamp_ms >= 0 and (last is None or timestamp_ms > last[0]):
            self.append(timestamp_ms, relative_offset)

    def entry_before(self, timestamp_ms: int) -> TimeEntry | None:
        """Its offset has nothing as late as `timestamp_ms` in the batches before its own."""
        return self._search(timestamp_ms, 0)[1]

    def keep_below(self, relative_offset: int) -> None:
        self.keep(self.floor(relative_offset - 1, 1) + 1)
