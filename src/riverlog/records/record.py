"""Single records of a batch: the value type and the decoder for all layers above.

Decompresses with a bound and decodes with the compiled codec; input that it refuses goes to the pure decoder
(`record_area`), which either says what is wrong or knows better, as with header keys that are not UTF-8.
Not a validator: offsets and timestamps are taken as they stand.
"""

from collections.abc import Iterator
from typing import NamedTuple

from riverlog.model.disk import ReadableBuffer
from riverlog.records import aiokafka_codec
from riverlog.records.batch import (
    ATTRIBUTES_LOW_BYTE_AT,
    CODEC_MASK,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    read_header,
)
from riverlog.records.compression import PADDING_BYTES, DecompressionError, decompress_after
from riverlog.records.record_area import Record, decode_area

__all__ = [
    "DEFAULT_LIMIT_BYTES",
    "PlainBatch",
    "Record",
    "native_record_list",
    "native_records_of",
    "records_of",
]

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024


class PlainBatch(NamedTuple):
    """A batch with its records uncompressed. `header` is that of the original."""

    header: BatchHeader
    view: memoryview

    @property
    def area(self) -> memoryview:
        """The records, one after the other."""
        return self.view[HEADER_BYTES:]

    def native_records(self) -> Iterator[aiokafka_codec.NativeRecord]:
        return aiokafka_codec.decode(self.view)


def plain_batch(batch: ReadableBuffer, position: int, header: BatchHeader, limit_bytes: int) -> PlainBatch:
    """A copy of the batch without compression. Raises `DecompressionError`, `CorruptBatch`."""
    with memoryview(batch) as whole:
        start = bytearray(whole[position : position + HEADER_BYTES])
        start[ATTRIBUTES_LOW_BYTE_AT] &= ~CODEC_MASK
        packed = whole[position + HEADER_BYTES : position + header.size_bytes]
        return PlainBatch(header, decompress_after(start, header.codec, packed, limit_bytes=limit_bytes))


def native_record_list(
    batch: ReadableBuffer, position: int, header: BatchHeader, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> list[aiokafka_codec.NativeRecord]:
    """As `native_records_of`, all at once."""
    end = position + header.size_bytes
    try:
        if not header.attributes & CODEC_MASK and len(batch) - end >= PADDING_BYTES:
            return aiokafka_codec.decode_all(memoryview(batch)[position:end])
        return aiokafka_codec.decode_all(plain_batch(batch, position, header, limit_bytes).view)
    except (DecompressionError, aiokafka_codec.NativeDecodeError) as error:
        raise CorruptBatch(str(error)) from error


def native_records_of(
    batch: ReadableBuffer, position: int, header: BatchHeader, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[aiokafka_codec.NativeRecord]:
    """The records as the compiled decoder makes them, for code that reads millions of its own.

    `header` is that of the batch, which is whole. Raises `CorruptBatch`.
    """
    end = position + header.size_bytes
    try:
        if not header.attributes & CODEC_MASK and len(batch) - end >= PADDING_BYTES:
            # What follows in the buffer is padding enough: no copy.
            yield from aiokafka_codec.decode(memoryview(batch)[position:end])
        else:
            yield from plain_batch(batch, position, header, limit_bytes).native_records()
    except (DecompressionError, aiokafka_codec.NativeDecodeError) as error:
        raise CorruptBatch(str(error)) from error


def records_of(
    batch: ReadableBuffer, position: int = 0, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[Record]:
    """The records of the batch at `position`. Raises `CorruptBatch` for any fault in them."""
    header = read_header(batch, position)
    if not HEADER_BYTES <= header.size_bytes <= len(batch) - position:
        raise CorruptBatch(f"a batch of {header.size_bytes} bytes in {len(batch) - position} bytes")
    try:
        plain = plain_batch(batch, position, header, limit_bytes)
    except DecompressionError as error:
        raise CorruptBatch(str(error)) from error
    yielded = 0
    try:
        for native in plain.native_records():
            timestamp_ms = -1 if native.timestamp is None else native.timestamp
            yield Record(native.offset, timestamp_ms, native.key, native.value, tuple(native.headers))
            yielded += 1
    except aiokafka_codec.NativeDecodeError:
        for index, record in enumerate(decode_area(plain.area, header)):
            if index >= yielded:
                yield record
