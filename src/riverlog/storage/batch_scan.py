"""Walking the batches of a segment file: headers only for lookups, whole batches for recovery and dumps.

Reads are bounded: a lookup reads a few kilobytes at a time, a scan a few megabytes or one batch, and never
more than the file holds, whatever a corrupt length field claims. Neither checks a CRC.
"""

import struct
from collections.abc import Iterator
from typing import Final

from riverlog.model.disk import DiskFile
from riverlog.model.errors import CorruptLogError
from riverlog.records import batch as batches
from riverlog.records.batch import HEADER_BYTES, BatchHeader

_LOOKUP_BYTES: Final = 8 * 1024
_SHAPE: Final = struct.Struct(">qi4xb6xi")
_SCAN_BYTES: Final = 2 * 1024 * 1024


ScannedBatch = tuple[int, BatchHeader, bytes, int]
"""Position in the file, header, and the bytes: a whole batch begins at the last number in them."""


def walk_headers(file: DiskFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch from `position`, which must be a batch's beginning, up to `end`."""
    chunk, chunk_at = b"", position
    while end - position >= HEADER_BYTES:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_at, at = file.pread(min(_LOOKUP_BYTES, end - position), position), position, 0
            if len(chunk) < HEADER_BYTES:
                return
        header = batches.read_header(chunk, at)
        if header.size_bytes < HEADER_BYTES or header.magic != batches.MAGIC:
            raise _no_batch(file, position)
        yield position, header
        position += header.size_bytes


def walk_shapes(file: DiskFile, position: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Position, size, base and last offset of each batch, as `walk_headers` but quicker: for lookups."""
    chunk, chunk_at = b"", position
    while end - position >= HEADER_BYTES:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_at, at = file.pread(min(_LOOKUP_BYTES, end - position), position), position, 0
            if len(chunk) < HEADER_BYTES:
                return
        base_offset, length, magic, last_offset_delta = _SHAPE.unpack_from(chunk, at)
        size = length + batches.LOG_OVERHEAD_BYTES
        if size < HEADER_BYTES or magic != batches.MAGIC:
            raise _no_batch(file, position)
        yield position, size, base_offset, base_offset + last_offset_delta
        position += size


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


def _no_batch(file: DiskFile, position: int) -> CorruptLogError:
    return CorruptLogError(
        f"{file.path} has no batch at byte {position}. Restore the partition from a replica or a backup, or "
        "cut the log there; `riverlog log verify` shows what is left."
    )


def _read_large(file: DiskFile, position: int, end: int) -> ScannedBatch | None:
    """A batch that is larger than a chunk. Its claimed size was found to lie within the file."""
    head = file.pread(HEADER_BYTES, position)
    if len(head) < HEADER_BYTES:
        return None
    header = batches.read_header(head)
    view = file.pread(min(header.size_bytes, end - position), position)
    return (position, header, view, 0) if len(view) == header.size_bytes else None
