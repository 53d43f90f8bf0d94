"""A batch with some of its records taken out: for compaction.

Offsets, producer, flags and codec stay; what is left keeps its bytes. Where a delete horizon (KIP-534) is
set, it takes the place of the base timestamp, so that the timestamp of every record is rewritten. Not
here: which records stay.
"""

from collections.abc import Sequence
from typing import cast

from riverlog.model.disk import ReadableBuffer
from riverlog.records.aiokafka_codec import NativeDecodeError, decode_all
from riverlog.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    write_header,
)
from riverlog.records.compression import PADDING_BYTES, DecompressionError, compress
from riverlog.records.record import PlainBatch, plain_batch
from riverlog.records.record_area import decode_area, encode_varint, read_varint

RecordShape = tuple[int, int, bytes | None, bool]
"""Offset, timestamp, key, and whether there is a value."""


def open_batch(batch: ReadableBuffer, position: int, header: BatchHeader, limit_bytes: int) -> PlainBatch:
    """The batch uncompressed: where it is, if it never was compressed. Raises `CorruptBatch`."""
    end = position + header.size_bytes
    is_padded = len(batch) - end >= PADDING_BYTES
    if is_padded and not header.attributes & CODEC_MASK and header.size_bytes <= limit_bytes:
        return PlainBatch(header, memoryview(batch)[position:end])
    try:
        return plain_batch(batch, position, header, limit_bytes)
    except DecompressionError as error:
        raise CorruptBatch(str(error)) from error


def shapes_of(plain: PlainBatch) -> list[RecordShape]:
    """What decides about each record. Raises `CorruptBatch`."""
    try:
        return [
            (each.offset, -1 if each.timestamp is None else each.timestamp, each.key, each.value is not None)
            for each in decode_all(plain.view)
        ]
    except NativeDecodeError:
        return [
            (each.offset, each.timestamp_ms, each.key, each.value is not None)
            for each in decode_area(plain.area, plain.header)
        ]


def keys_of_plain(plain: PlainBatch) -> list[bytes] | None:
    """The keys of a batch in which every record has key and value and stands at the offset that its number
    says, in order; None for any other batch, `shapes_of` tells more of it."""
    header = plain.header
    try:
        records = decode_all(plain.view)
    except NativeDecodeError:
        return None
    if [each.offset for each in records] != list(range(header.base_offset, header.next_offset)):
        return None
    if True in [each.value is None for each in records]:
        return None
    keys = [each.key for each in records]
    return None if None in keys else cast(list[bytes], keys)


def retain(
    plain: PlainBatch,
    kept: Sequence[int],
    *,
    max_timestamp_ms: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """The batch with the records of these numbers, in order; at least one.

    `max_timestamp_ms` is that of the records, which is found by looking where it is not known.
    """
    header = plain.header
    attributes, base_timestamp_ms, shift_ms = header.attributes, header.base_timestamp_ms, 0
    if delete_horizon_ms is not None and header.delete_horizon_ms is None:
        shift_ms = base_timestamp_ms - delete_horizon_ms
        attributes, base_timestamp_ms = attributes | DELETE_HORIZON_FLAG, delete_horizon_ms
    pieces, largest_delta_ms = _pieces(plain.area, kept)
    if max_timestamp_ms is None:
        max_timestamp_ms = header.base_timestamp_ms + largest_delta_ms
    if shift_ms:
        pieces = [_shifted(memoryview(piece), shift_ms) for piece in pieces]
    area = compress(header.codec, b"".join(pieces))
    return _sealed(
        header._replace(
            attributes=attributes,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=header.max_timestamp_ms if header.is_log_append_time else max_timestamp_ms,
            record_count=len(pieces),
        ),
        area,
    )


def emptied(header: BatchHeader) -> bytearray:
    """The batch without records: what is left tells its offsets and the producer's last sequence."""
    return _sealed(
        header._replace(
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG),
            base_timestamp_ms=-1,
            record_count=0,
        ),
        b"",
    )


def _pieces(area: memoryview, kept: Sequence[int]) -> tuple[list[ReadableBuffer], int]:
    """The bytes of each of these records, with the length in front, and the largest timestamp delta of them.

    Nothing behind the last of them is looked at. Nearly every length has two bytes and every delta one.
    """
    pieces: list[ReadableBuffer] = []
    deltas_ms: list[int] = []
    position, number, end = 0, 0, len(area)
    for wanted in kept:
        begin = start = position
        while number <= wanted:
            begin = position
            first = area[begin] if end - begin >= 2 else 0
            second = area[begin + 1] if first >= 0x80 else 0x80
            if second < 0x80:
                raw = first & 0x7F | second << 7
                length, start = (raw >> 1) ^ -(raw & 1), begin + 2
            else:
                length, start = read_varint(area, begin, end)
            position = start + length
            if length < 0 or position > end:
                raise CorruptBatch(f"a record claims {length} bytes, {end - start} are left")
            number += 1
        pieces.append(area[begin:position])
        raw = area[start + 1] if position - start >= 2 else 0x80
        delta_ms = (raw >> 1) ^ -(raw & 1) if raw < 0x80 else read_varint(area, start + 1, position)[0]
        deltas_ms.append(delta_ms)
    return pieces, max(deltas_ms)


def _shifted(piece: memoryview, shift_ms: int) -> bytes:
    """A record whose timestamp counts from a base that lies `shift_ms` earlier."""
    _, start = read_varint(piece, 0, len(piece))
    delta_ms, rest = read_varint(piece, start + 1, len(piece))
    body = bytes(piece[start : start + 1]) + encode_varint(delta_ms + shift_ms) + piece[rest:]
    return encode_varint(len(body)) + body


def _sealed(header: BatchHeader, area: ReadableBuffer) -> bytearray:
    data = bytearray(HEADER_BYTES)
    data += area
    write_header(data, 0, header._replace(size_bytes=len(data)))
    return data
