"""The segments of one log in order of their base offsets, and reading across them.

Looks up by bisection in a list of base offsets. The beginnings of the newest batches are kept in memory, so
that a consumer at the tail needs neither index nor read to find its place, and so are the ends of the last
reads elsewhere, where the next ones begin. There is always an active segment, the last one. Not here: what
may be read (high watermark, log start); the caller bounds it.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from riverlog.model.disk import FileSlice
from riverlog.model.errors import DamagedLogError
from riverlog.model.named_tuples import maker_of
from riverlog.storage.log.segment import Segment

_RECENT_MAX: Final = 128
_RECENT_KEPT: Final = 64
_ENDS_MAX: Final = 8
IsWarm = Callable[[FileSlice], bool]
"""Whether bytes of a file can be read without waiting for the disk."""


class LogRead(NamedTuple):
    """What a read found. `upper_offset` bounds the offsets in `records` from above, exclusively."""

    records: FileSlice | None
    upper_offset: int
    cold: FileSlice | None = None
    """What must be in memory first: there are records in it, which have to be checked."""

    @property
    def size_bytes(self) -> int:
        return self.records.length if self.records is not None else 0


_file_slice, _log_read = maker_of(FileSlice), maker_of(LogRead)


class SegmentList:
    __slots__ = ("_base_offsets", "_ends", "_segments", "active", "recent_offsets", "recent_positions")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = list(segments)
        self.active = self._segments[-1]
        self._base_offsets = [segment.base_offset for segment in self._segments]
        self.recent_offsets = array("q")  # As lists they would be the largest part of a small log.
        """The first offsets of the batches written last; the log adds to both, others only read."""
        self.recent_positions = array("q")
        """Where they begin in the active segment."""
        self._ends: dict[int, tuple[Segment, int]] | None = None
        """Where the batch begins that begins with an offset, for those at which the last reads have ended."""

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, number: int) -> Segment:
        return self._segments[number]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """Make `segment` the active one."""
        assert not self._segments or segment.base_offset > self._base_offsets[-1]
        self._segments.append(segment)
        self.active = segment
        self._base_offsets.append(segment.base_offset)
        self.forget_recent()

    def take_first(self, count: int) -> list[Segment]:
        taken, self._segments = self._segments[:count], self._segments[count:]
        del self._base_offsets[:count]
        self._ends = None
        return taken

    def take_after(self, offset: int) -> list[Segment]:
        """Remove the segments that begin after `offset`."""
        number = bisect_right(self._base_offsets, offset)
        taken, self._segments = self._segments[number:], self._segments[:number]
        self.active = self._segments[-1]
        self.active.headroom = None
        del self._base_offsets[number:]
        self.forget_recent()
        return taken

    def holds(self, segments: Sequence[Segment]) -> bool:
        """Whether these are closed segments of the list, one after the other."""
        number = self.number_at(segments[0].base_offset)
        found = self._segments[number : number + len(segments)]
        return found == list(segments) and segments[-1] is not self.active

    def replace(self, old: Sequence[Segment], fresh: Segment) -> None:
        """Put one segment in the place of some that `holds` is true of."""
        number = self.number_at(old[0].base_offset)
        self._segments[number : number + len(old)] = [fresh]
        self._base_offsets[number : number + len(old)] = [fresh.base_offset]
        self._ends = None

    def number_at(self, offset: int) -> int:
        """Number of the segment that holds `offset`, or the first one for anything older."""
        return max(bisect_right(self._base_offsets, offset) - 1, 0)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds `offset` and all after it."""
        return self._segments[self.number_at(offset) :]

    def note_newest(self, base_offset: int, position: int) -> None:
        """Remember where the batch begins that was just written."""
        offsets, positions = self.recent_offsets, self.recent_positions
        offsets.append(base_offset)
        positions.append(position)
        if len(offsets) > _RECENT_MAX:
            del offsets[:-_RECENT_KEPT], positions[:-_RECENT_KEPT]

    def forget_recent(self) -> None:
        """Before any batch that is remembered goes, or is not in the active segment any more."""
        self.recent_offsets, self.recent_positions = array("q"), array("q")
        self._ends = None

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        end_offset: int,
        at_least_one_batch: bool,
        is_warm: IsWarm | None = None,
    ) -> LogRead:
        """Batches from the one that holds `offset`, below `end_offset`. Never splits a batch.

        Headers that must be checked are read now, or only where `is_warm`.
        """
        if self.recent_offsets and offset >= self.recent_offsets[0]:
            return self._read_recent(offset, max_bytes, end_offset, at_least_one_batch)
        if self._ends is not None and (known := self._ends.get(offset)) is not None:
            segment, start = known
            read = self._read_from(segment, start, start, max_bytes, end_offset, at_least_one_batch)
            return self._checked(segment, read, is_warm) if start < segment.unchecked_end else read
        number = self.number_at(offset)
        while number < len(self._segments) and (segment := self._segments[number]).base_offset < end_offset:
            found = segment.locate(offset)
            if found is not None:
                start, first_end = found
                read = self._read_from(segment, start, first_end, max_bytes, end_offset, at_least_one_batch)
                return self._checked(segment, read, is_warm) if start < segment.unchecked_end else read
            number += 1
        return LogRead(None, end_offset)

    def _read_from(
        self, segment: Segment, start: int, first_end: int, max_bytes: int, end_offset: int, one: bool
    ) -> LogRead:
        """Batches from the one that begins at `start` and ends not before `first_end`.

        Where there is damage among them, those before it.
        """
        try:
            end, upper = self._end(segment, end_offset), min(end_offset, segment.next_offset)
            if end - start > max_bytes:
                end, upper = self._cut(segment, start, first_end, max_bytes, one)
        except DamagedLogError as damage:
            segment.files.damage.note(damage)
            limit = min(start + max_bytes, damage.position)
            end, upper = segment.before_damage(start, limit, at_least_one=one)
        if end <= start:
            return LogRead(None, end_offset)
        return LogRead(FileSlice(segment.log.get(), start, end - start), upper)

    def _checked(self, segment: Segment, read: LogRead, is_warm: IsWarm | None) -> LogRead:
        """Of what was found on disk at the start, as much as is sound."""
        piece = read.records
        if piece is None:
            return read
        file, start, length = piece
        if is_warm is not None and not segment.is_checked(start, start + length) and not is_warm(piece):
            return LogRead(None, read.upper_offset, piece)
        sound = segment.sound_until(start, start + length)
        if sound is None:
            return read
        end, upper = sound
        return LogRead(FileSlice(file, start, end - start), upper)

    def _read_recent(self, offset: int, max_bytes: int, end_offset: int, at_least_one_batch: bool) -> LogRead:
        """The same from memory, for a reader at the tail."""
        segment, offsets, positions = self._segments[-1], self.recent_offsets, self.recent_positions
        next_offset = segment.next_offset
        if offset >= end_offset or offset >= next_offset:
            return LogRead(None, end_offset)
        number = bisect_right(offsets, offset)
        start = positions[number - 1]
        end, upper = segment.size_bytes, next_offset
        if end_offset < next_offset:
            end, upper = positions[bisect_right(offsets, end_offset) - 1], end_offset
        if end - start > max_bytes:
            last = bisect_right(positions, start + max_bytes) - 1
            if last < number and at_least_one_batch:
                last = number
            if last < len(positions):
                end, upper = positions[last], offsets[last]
            else:
                end, upper = segment.size_bytes, next_offset
        if end <= start:
            return LogRead(None, end_offset)
        records = _file_slice((segment.log.get(), start, end - start))
        return _log_read((records, upper, None))

    def _end(self, segment: Segment, end_offset: int) -> int:
        if end_offset >= segment.next_offset:
            return segment.size_bytes
        recent = self.recent_offsets
        if recent and end_offset >= recent[0] and segment is self._segments[-1]:
            return self.recent_positions[bisect_right(recent, end_offset) - 1]
        located = segment.locate(end_offset)
        return located[0] if located is not None else segment.size_bytes

    def _cut(
        self, segment: Segment, start: int, first_end: int, max_bytes: int, one: bool
    ) -> tuple[int, int]:
        """Where the last whole batch within `max_bytes` ends, and the first offset after it.

        The first batch is sent anyway if asked.
        """
        limit = start + max_bytes
        positions = self.recent_positions
        if first_end > limit:
            end, upper = start, segment.base_offset
        elif positions and limit >= positions[0] and segment is self._segments[-1]:
            number = bisect_right(positions, limit) - 1
            return positions[number], self.recent_offsets[number]
        else:
            end, upper = segment.last_boundary(start, limit)
        if end == start and one:
            end, upper = segment.first_boundary(start)
        if end > start and upper < segment.next_offset:
            self._note_end(upper, segment, end)
        return end, upper

    def _note_end(self, offset: int, segment: Segment, position: int) -> None:
        ends = self._ends
        if ends is None:
            ends = self._ends = {}
        ends[offset] = segment, position
        if len(ends) > _ENDS_MAX:
            del ends[next(iter(ends))]
