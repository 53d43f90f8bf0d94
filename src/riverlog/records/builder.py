"""Batches from records: for coordinators, compaction, tests, and other code that writes a log from inside.

The compiled encoder writes the records; header, compression and CRC are ours, because it cannot set base
offset, leader epoch, control bit or timestamp type. Invariant: `records_of(build_batch(records))` gives the
records back, with consecutive offsets.
"""

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

from riverlog.model.disk import ReadableBuffer
from riverlog.model.ids import LeaderEpoch
from riverlog.records import aiokafka_codec
from riverlog.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    write_header,
)
from riverlog.records.compression import Codec, compress
from riverlog.records.record_area import Record, encode_record

_NO_LEADER_EPOCH: Final = LeaderEpoch(-1)
NewRecord = tuple[int, ReadableBuffer | None, ReadableBuffer | None, Iterable[tuple[str, bytes | None]]]


class ControlType(IntEnum):
    """How a transaction ended."""

    ABORT = 0
    COMMIT = 1


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: LeaderEpoch = _NO_LEADER_EPOCH,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    log_append_time_ms: int | None = None,
) -> bytes:
    """One batch of `(timestamp_ms, key, value, headers)` records; at least one."""
    area, timestamps_ms = _encode(records)
    attributes = codec | (TRANSACTIONAL_FLAG if transactional else 0)
    max_timestamp_ms = max(timestamps_ms)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_FLAG
        max_timestamp_ms = log_append_time_ms
    header = BatchHeader(
        base_offset=base_offset,
        size_bytes=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(timestamps_ms) - 1,
        base_timestamp_ms=timestamps_ms[0],
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(timestamps_ms),
    )
    return bytes(_sealed(header, compress(codec, area, level)))


def build_like(
    header: BatchHeader, records: Iterable[Record], codec: Codec, level: int | None = None
) -> bytearray:
    """A batch of `records` with the producer, base offset and flags of `header`."""
    area, timestamps_ms = _encode(record[1:] for record in records)
    return _sealed(
        header._replace(
            attributes=header.attributes & ~CODEC_MASK | codec,
            last_offset_delta=len(timestamps_ms) - 1,
            base_timestamp_ms=timestamps_ms[0],
            record_count=len(timestamps_ms),
        ),
        compress(codec, area, level),
    )


def build_control_batch(
    control: ControlType,
    *,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    base_offset: int = 0,
    leader_epoch: LeaderEpoch = _NO_LEADER_EPOCH,
) -> bytes:
    """The marker that ends a transaction in a partition."""
    key = struct.pack(">hh", 0, control)
    value = struct.pack(">hi", 0, coordinator_epoch)
    area, _ = _encode([(timestamp_ms, key, value, ())])
    header = BatchHeader(
        base_offset=base_offset,
        size_bytes=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=CONTROL_FLAG | TRANSACTIONAL_FLAG,
        last_offset_delta=0,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
        record_count=1,
    )
    return bytes(_sealed(header, area))


def _sealed(header: BatchHeader, area: ReadableBuffer) -> bytearray:
    data = bytearray(HEADER_BYTES)
    data += area
    write_header(data, 0, header._replace(size_bytes=len(data)))
    return data


def _encode(records: Iterable[NewRecord]) -> tuple[ReadableBuffer, list[int]]:
    """The records area, and the timestamps, of which the first is the base of the others."""
    records = list(records)
    if not records:
        raise ValueError("a batch has at least one record")
    first_ms = records[0][0]
    builder = aiokafka_codec.new_builder()
    as_bytes = aiokafka_codec.as_bytes
    try:
        for offset, (timestamp_ms, key, value, headers) in enumerate(records):
            # Relative to the first, because to the encoder a first timestamp of -1 means that none is set.
            builder.append(offset, timestamp_ms - first_ms, as_bytes(key), as_bytes(value), list(headers))
    except UnicodeEncodeError:
        return _encode_slowly(records), [record[0] for record in records]
    return memoryview(builder.build())[HEADER_BYTES:], [record[0] for record in records]


def _encode_slowly(records: Sequence[NewRecord]) -> bytes:
    """For header keys that the compiled encoder cannot write."""
    as_bytes = aiokafka_codec.as_bytes
    first_ms = records[0][0]
    return b"".join(
        encode_record(
            offset,
            timestamp_ms - first_ms,
            Record(offset, timestamp_ms, as_bytes(key), as_bytes(value), tuple(headers)),
        )
        for offset, (timestamp_ms, key, value, headers) in enumerate(records)
    )
