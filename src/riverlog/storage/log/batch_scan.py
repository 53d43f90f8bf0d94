"""Walking the batches of a segment file: headers only for lookups, whole batches for recovery and dumps.

Reads are bounded: a lookup reads a few kilobytes at a time, a scan a few megabytes or one batch, and never
more than the file holds, whatever a corrupt length field claims. A walk checks that each batch lies within
the file and that offsets ascend, which no CRC covers, and raises `DamagedLogError` where that is not so. Only
then is a CRC looked at, to tell which of two batches is the damaged one.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from riverlog.model.disk import DiskFile
from riverlog.model.errors import DamagedLogError
from riverlog.records import batch as batches
from riverlog.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, BatchHeader

_LOOKUP_BYTES: Final = 8 * 1024
_SHAPE: Final = struct.Struct(">qi4xb6xi")
_unpack_shape = _SHAPE.unpack_from
_SCAN_BYTES: Final = 2 * 1024 * 1024
_OFFSET_MAX: Final = 2**63 - 1
_CRC_BYTES_MAX: Final = 64 * 1024 * 1024
_NOT_A_BATCH: Final = "the batch that is due there has another length, format or offset than was written"

ScannedBatch = tuple[int, BatchHeader, bytes, int]
"""Position in the file, header, and the bytes: a whole batch begins at the last number in them."""

Shape = tuple[int, int, int, int]
"""Position, size, base and last offset of a batch."""


class Bounds(NamedTuple):
    """What is known about the batches of a walk."""

    end: int
    """Where the last one ends."""
    first_offset: int = 0
    """No offset is lower."""
    end_offset: int = _OFFSET_MAX
    """Every offset is lower."""
    begins_there: bool = False
    """Unless compaction has been there, the first one begins with `first_offset`."""
    ends_with: int | None = None
    """The last offset of the first one, where an index tells it."""


def walk_headers(file: DiskFile, position: int, bounds: Bounds) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from `position`, which must be a batch's beginning, up to the end."""
    window = _Window(file)
    for at, _, _, _ in walk_shapes(window, position, bounds):
        yield at, window.header(at)


def walk_shapes(file: "DiskFile | _Window", position: int, bounds: Bounds) -> Iterator[Shape]:
    """The shape of each batch from `position`, which must be a batch's beginning, up to the end."""
    end, expected, end_offset, is_due, ends_with = bounds
    chunk, chunk_at, length_read = b"", position, 0
    before: Shape | None = None
    while position < end:
        at = position - chunk_at
        if at + HEADER_BYTES > length_read:
            # Behind a batch that is larger than a chunk there may be another such.
            wanted = _LOOKUP_BYTES if before is None or before[1] < _LOOKUP_BYTES else HEADER_BYTES
            chunk, chunk_at, at = file.pread(min(wanted, end - position), position), position, 0
            length_read = len(chunk)
            if length_read < HEADER_BYTES:
                raise _misfit(file, before, position, expected, "the file ends within a batch")
        base_offset, length, magic, last_offset_delta = _unpack_shape(chunk, at)
        size = length + LOG_OVERHEAD_BYTES
        last_offset = base_offset + last_offset_delta
        if (
            magic != MAGIC
            or size < HEADER_BYTES
            or size > end - position
            or base_offset < expected
            or last_offset_delta < 0
            or last_offset >= end_offset
            or (ends_with is not None and ends_with != last_offset)
        ):
            raise _misfit(file, before, position, expected, _NOT_A_BATCH)
        if base_offset > expected and is_due:
            _require_vouched(
                file,
                position=position,
                next_at=position + size,
                end=end,
                expected=expected,
                last_offset=last_offset,
            )
        before = position, size, base_offset, last_offset
        yield before
        position += size
        expected, is_due, ends_with = last_offset + 1, True, None


def scan_batches(file: DiskFile, position: int, end: int) -> Iterator[ScannedBatch]:
    """Each whole batch from `position` to `end`; stops before the first that cannot be one or is cut off."""
    while end - position >= HEADER_BYTES:
        chunk = file.pread(min(_SCAN_BYTES, end - position), position)
        at = 0
        while len(chunk) - at >= HEADER_BYTES:
            header = batches.read_header(chunk, at)
            size = header.size_bytes
            if size < HEADER_BYTES or size > end - position or header.magic != batches.MAGIC:
                return
            if size > len(chunk) - at:
                break
            yield position, header, chunk, at
            at += size
            position += size
        if at == 0:
            whole = _read_large(file, position, end)
            if whole is None:
                return
            yield whole
            position += whole[1].size_bytes


class _Window:
    """A file that remembers what was read of it last."""

    __slots__ = ("_chunk", "_chunk_at", "_file", "path")

    def __init__(self, file: DiskFile) -> None:
        self.path = file.path
        self._file = file
        self._chunk, self._chunk_at = b"", 0

    def pread(self, length: int, position: int) -> bytes:
        self._chunk, self._chunk_at = self._file.pread(length, position), position
        return self._chunk

    def header(self, position: int) -> BatchHeader:
        at = position - self._chunk_at
        if at < 0 or at + HEADER_BYTES > len(self._chunk):
            return batches.read_header(self._file.pread(HEADER_BYTES, position))
        return batches.read_header(self._chunk, at)


def crc_holds(file: DiskFile | _Window, position: int, size: int) -> bool:
    """Whether the batch at `position` is what was written, as far as its CRC covers it."""
    view = file.pread(size, position)
    if len(view) < HEADER_BYTES:
        return False
    header = batches.read_header(view)
    return header.magic == MAGIC and header.size_bytes == size and batches.crc_is_valid(view, 0, header)


def _misfit(
    file: DiskFile | _Window, before: Shape | None, position: int, expected: int, what: str
) -> DamagedLogError:
    """Where a batch does not fit the one before it, the length of that one may be what is wrong."""
    if before is not None:
        before_at, size, base_offset, _ = before
        if size > _CRC_BYTES_MAX or not crc_holds(file, before_at, size):
            return DamagedLogError(file.path, before_at, base_offset, "the CRC of the batch there is wrong")
    return DamagedLogError(file.path, position, expected, what)


def _require_vouched(
    file: DiskFile | _Window, *, position: int, next_at: int, end: int, expected: int, last_offset: int
) -> None:
    """Compaction leaves gaps, but a gap may also be a flipped bit: no CRC covers the base offset.

    The batch behind it vouches for one that begins later than is due, by not beginning before its end.
    """
    if end - next_at < HEADER_BYTES:
        return
    base_offset, _, magic, _ = _unpack_shape(file.pread(_SHAPE.size, next_at))
    if magic == MAGIC and base_offset <= last_offset:
        raise DamagedLogError(file.path, position, expected, _NOT_A_BATCH)


def _read_large(file: DiskFile, position: int, end: int) -> ScannedBatch | None:
    """A batch that is larger than a chunk. Its claimed size was found to lie within the file."""
    head = file.pread(HEADER_BYTES, position)
    if len(head) < HEADER_BYTES:
        return None
    header = batches.read_header(head)
    view = file.pread(min(header.size_bytes, end - position), position)
    return (position, header, view, 0) if len(view) == header.size_bytes else None
