"""The records of a batch in pure Python: slower than the compiled decoder, and precise about what is wrong.

Used where the compiled one refuses the input. It reads as Kafka does: a record's attributes are one byte and
ignored, variable-length integers are bounded, every length is checked against the bytes of its record.
Header keys that are not UTF-8, which Kafka stores without looking, survive as surrogate escapes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from riverlog.records.batch import BatchHeader, CorruptBatch
from riverlog.wire.primitives import varint

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record. `timestamp_ms` is -1 where there is none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def decode_area(area: memoryview, header: BatchHeader) -> Iterator[Record]:
    """The `record_count` records that fill `area`; `CorruptBatch` where they do not."""
    position = 0
    for index in range(header.record_count):
        try:
            record, position = _decode_record(area, position, header)
        except CorruptBatch as error:
            raise CorruptBatch(f"record {index}: {error}") from error
        yield record
    if position != len(area):
        raise CorruptBatch(f"{len(area) - position} bytes are left behind the last record")


def encode_record(offset_delta: int, timestamp_delta_ms: int, record: Record) -> bytes:
    """One record; for those few that the compiled encoder cannot write (header keys that are not UTF-8)."""
    parts = [b"\0", encode_varint(timestamp_delta_ms), encode_varint(offset_delta)]
    parts += (_field(record.key), _field(record.value), encode_varint(len(record.headers)))
    for key, value in record.headers:
        parts += (_field(key.encode("utf-8", "surrogateescape")), _field(value))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _field(value: bytes | None) -> bytes:
    return encode_varint(-1) if value is None else encode_varint(len(value)) + value


def encode_varint(value: int) -> bytes:
    """A zig-zag integer."""
    return varint((value << 1) ^ (value >> 63))


def _decode_record(area: memoryview, position: int, header: BatchHeader) -> tuple[Record, int]:
    length, start = read_varint(area, position, len(area))
    end = start + length
    if length < 0 or end > len(area):
        raise CorruptBatch(f"it claims {length} bytes, {len(area) - start} are left")
    if start == end:
        raise CorruptBatch("it is empty")
    timestamp_delta_ms, position = read_varint(area, start + 1, end)
    offset_delta, position = read_varint(area, position, end)
    key, position = _bytes(area, position, end)
    value, position = _bytes(area, position, end)
    headers, position = _headers(area, position, end)
    if position != end:
        raise CorruptBatch(f"{end - position} of its bytes are left over")
    if header.is_log_append_time:
        timestamp_ms = header.max_timestamp_ms
    else:
        timestamp_ms = _int64(header.base_timestamp_ms + timestamp_delta_ms)
    return Record(header.base_offset + offset_delta, timestamp_ms, key, value, headers), end


def _headers(area: memoryview, position: int, end: int) -> tuple[Headers, int]:
    count, position = read_varint(area, position, end)
    if not 0 <= count <= end - position:
        raise CorruptBatch(f"it claims {count} headers")
    headers = []
    for _ in range(count):
        key, position = _bytes(area, position, end)
        if key is None:
            raise CorruptBatch("a header has no key")
        value, position = _bytes(area, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position


def _bytes(area: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(area, position, end)
    if length < 0:
        return None, position
    if length > end - position:
        raise CorruptBatch(f"a field claims {length} bytes, {end - position} are left in the record")
    return bytes(area[position : position + length]), position + length


def read_varint(area: memoryview, position: int, end: int) -> tuple[int, int]:
    """A zig-zag integer of up to 64 bits and the position after it."""
    raw = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise CorruptBatch("it ends within a number")
        byte = area[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), position
    raise CorruptBatch("a number is longer than 64 bits")


def _int64(value: int) -> int:
    """Java adds a delta with wrap-around."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
