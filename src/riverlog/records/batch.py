"""The header of a record batch (magic 2) as a view: read it, walk batches, patch what a broker may patch.

Not a decoder of records. Invariants: `patch` touches only bytes that the CRC does not cover; every other
change recomputes the CRC; nothing here looks behind the 61 bytes of a header except the CRC.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from riverlog.model.disk import ReadableBuffer
from riverlog.model.ids import LeaderEpoch
from riverlog.model.named_tuples import maker_of
from riverlog.records.checksum import crc32c
from riverlog.records.compression import Codec

HEADER_BYTES = 61
LOG_OVERHEAD_BYTES = 12
MAGIC = 2

CODEC_MASK = 0x07
CODECS = {int(codec): codec for codec in Codec}
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40
ORDINARY_ATTRIBUTES = frozenset(codec | flag for codec in CODECS for flag in (0, TRANSACTIONAL_FLAG))

_HEADER = struct.Struct(">qiibIhiqqqhii")
HeaderFields = tuple[int, int, LeaderEpoch, int, int, int, int, int, int, int, int, int, int]
"""The fields of a header as they stand: those of `BatchHeader`, but the length instead of the whole size."""
unpack_header: Callable[..., HeaderFields] = _HEADER.unpack_from
_BASE_OFFSET_AND_LENGTH = struct.Struct(">qi")
_BASE_OFFSET = struct.Struct(">q")
_put_beginning = struct.Struct(">qii").pack_into
_LEADER_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")
_LEADER_EPOCH_AT = 12
MAGIC_AT = 16
_CRC_AT = 17
CRC_COVERS_FROM = _ATTRIBUTES_AT = 21
ATTRIBUTES_LOW_BYTE_AT = 22
PRODUCER_ID_AT = 43
_MAX_TIMESTAMP_AT = 35
_SEQUENCES = 1 << 31


class CorruptBatch(ValueError):  # noqa: N818 - named for what it is
    """The bytes are not a record batch."""


class BatchHeader(NamedTuple):
    """The fixed part of a batch. Sentinels stay as on disk: -1 means "none" for the producer fields."""

    base_offset: int
    size_bytes: int
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; it wraps to 0 after 2^31 - 1. -1 without a sequence."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES

    @property
    def codec(self) -> Codec:
        codec = CODECS.get(self.attributes & CODEC_MASK)
        if codec is None:
            raise CorruptBatch(f"unknown compression codec {self.attributes & CODEC_MASK}")
        return codec

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on tombstones and markers in the batch may go (KIP-534); None before a first cleaning."""
        return self.base_timestamp_ms if self.attributes & DELETE_HORIZON_FLAG else None


_batch_header: Final = maker_of(BatchHeader)


def read_header(buffer: ReadableBuffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Nothing in it has been checked."""
    if position < 0 or len(buffer) - position < HEADER_BYTES:
        raise CorruptBatch(f"{max(len(buffer) - position, 0)} bytes are too few for a batch header")
    return header_of(unpack_header(buffer, position))


def header_of(fields: HeaderFields) -> BatchHeader:
    (
        base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta, base_timestamp_ms,
        max_timestamp_ms, producer_id, producer_epoch, base_sequence, count,
    ) = fields  # fmt: skip
    return _batch_header(
        (
            base_offset, length + LOG_OVERHEAD_BYTES, leader_epoch, magic, crc, attributes, last_offset_delta,
            base_timestamp_ms, max_timestamp_ms, producer_id, producer_epoch, base_sequence, count,
        )
    )  # fmt: skip


def walk(buffer: ReadableBuffer, start: int = 0, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch; stops before one that is cut off, as at the end of a fetch.

    Raises `CorruptBatch` at a batch that cannot be one: shorter than a header, or of another magic.
    """
    end = len(buffer) if end is None else min(end, len(buffer))
    position = start
    while end - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        if header.magic != MAGIC:
            raise CorruptBatch(f"magic {header.magic} at byte {position}; only 2 is supported")
        if header.size_bytes < HEADER_BYTES:
            raise CorruptBatch(f"a batch of {header.size_bytes} bytes at byte {position}")
        if header.size_bytes > end - position:
            return
        yield position, header
        position += header.size_bytes


def claimed_size(buffer: ReadableBuffer, position: int = 0) -> int:
    """The size that the first 12 bytes claim for a batch; for readers that have not got a header yet."""
    if len(buffer) - position < LOG_OVERHEAD_BYTES:
        raise CorruptBatch(f"{max(len(buffer) - position, 0)} bytes are too few for the length of a batch")
    _, length = _BASE_OFFSET_AND_LENGTH.unpack_from(buffer, position)
    return int(length) + LOG_OVERHEAD_BYTES


def patch(
    buffer: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: LeaderEpoch
) -> None:
    """Assign offset and leader epoch in place. The CRC covers neither."""
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + _LEADER_EPOCH_AT, leader_epoch)


def patch_only(batch: memoryview, base_offset: int, leader_epoch: LeaderEpoch) -> None:
    """The same for a buffer that holds one batch and nothing else, in one step."""
    _put_beginning(batch, 0, base_offset, len(batch) - LOG_OVERHEAD_BYTES, leader_epoch)


def set_timestamps(
    buffer: bytearray | memoryview, position: int, *, log_append_time: bool, max_timestamp_ms: int
) -> None:
    """Set timestamp type and max timestamp, then the CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + _ATTRIBUTES_AT)
    attributes &= ~LOG_APPEND_TIME_FLAG
    if log_append_time:
        attributes |= LOG_APPEND_TIME_FLAG
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, attributes)
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, max_timestamp_ms)
    set_crc(buffer, position)


def set_crc(buffer: bytearray | memoryview, position: int) -> None:
    """Recompute the CRC over what it covers: from the attributes to the end of the batch."""
    size = claimed_size(buffer, position)
    _CRC.pack_into(buffer, position + _CRC_AT, _crc_of(buffer, position, size))


def crc_is_valid(buffer: ReadableBuffer, position: int, header: BatchHeader) -> bool:
    """Whether the batch is all there and its CRC-32C is right."""
    if header.size_bytes < HEADER_BYTES or header.size_bytes > len(buffer) - position:
        return False
    return _crc_of(buffer, position, header.size_bytes) == header.crc


def write_header(buffer: bytearray | memoryview, position: int, header: BatchHeader) -> None:
    """Write all 61 bytes as given, then the CRC over the batch that follows them."""
    base_offset, size_bytes, *rest = header
    _HEADER.pack_into(buffer, position, base_offset, size_bytes - LOG_OVERHEAD_BYTES, *rest)
    set_crc(buffer, position)


def _crc_of(buffer: ReadableBuffer, position: int, size: int) -> int:
    return crc32c(memoryview(buffer)[position + _ATTRIBUTES_AT : position + size])
