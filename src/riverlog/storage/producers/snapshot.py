"""Producer snapshots (`.snapshot`): Kafka's format, version 1, with one addition at the end.

Kafka keeps only the last batch of each producer, so that after a restart a retry of an older request in
flight is refused. We append the rest of each window after Kafka's entries, under the same CRC; Kafka reads
the entries that it knows and stops. A snapshot that Kafka wrote has no such tail and gives windows of one
batch.
"""

import struct
from typing import Final

from riverlog.model.errors import CorruptLogError
from riverlog.records.checksum import crc32c
from riverlog.storage.producers.state import ProducerEntry, ProducerStates, WrittenBatch

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_TAIL_HEAD: Final = struct.Struct(">4si")
_TAIL_ENTRY: Final = struct.Struct(">qiqiq")
_TAIL_MAGIC: Final = b"RLW1"
_CRC_FROM: Final = 6


def encode_snapshot(states: ProducerStates) -> bytes:
    data = bytearray(_HEAD.pack(_VERSION, 0, len(states)))
    older: list[bytes] = []
    for producer_id, entry in states:
        last = entry.batches[-1] if entry.batches else WrittenBatch(-1, -1, 0, entry.last_timestamp_ms)
        first = entry.transaction_first_offset
        data += _ENTRY.pack(
            producer_id,
            entry.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            -1 if first is None else first,
        )
        # The timestamp of the entry can be a marker's; then the last batch's own goes into the tail too.
        skip = 1 if last.timestamp_ms == entry.last_timestamp_ms else 0
        older.extend(
            _TAIL_ENTRY.pack(producer_id, *batch) for batch in entry.batches[: len(entry.batches) - skip]
        )
    if older:
        data += _TAIL_HEAD.pack(_TAIL_MAGIC, len(older))
        data += b"".join(older)
    struct.pack_into(">I", data, 2, crc32c(memoryview(data)[_CRC_FROM:]))
    return bytes(data)


def decode_snapshot(data: bytes) -> list[tuple[int, ProducerEntry]]:
    """Raises `CorruptLogError` for anything that is not a whole snapshot."""
    if len(data) < _HEAD.size:
        raise CorruptLogError(f"a producer snapshot of {len(data)} bytes is cut off")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptLogError(f"a producer snapshot has the unknown version {version}")
    if crc32c(data[_CRC_FROM:]) != crc:
        raise CorruptLogError("the CRC of a producer snapshot is wrong")
    end = _HEAD.size + count * _ENTRY.size
    if count < 0 or end > len(data):
        raise CorruptLogError(f"a producer snapshot claims {count} producers in {len(data)} bytes")
    windows = _decode_windows(data, end)
    return [
        (producer_id, _entry_of(fields, windows.get(producer_id, [])))
        for producer_id, *fields in _ENTRY.iter_unpack(data[_HEAD.size : end])
    ]


def _entry_of(fields: list[int], older: list[WrittenBatch]) -> ProducerEntry:
    epoch, last_sequence, last_offset, delta, timestamp_ms, coordinator_epoch, first = fields
    batches = older
    if last_offset >= 0 and (not older or older[-1].last_offset != last_offset):
        batches = [*older, WrittenBatch(last_sequence, last_offset, delta, timestamp_ms)]
    return ProducerEntry(
        epoch=epoch,
        batches=batches,
        coordinator_epoch=coordinator_epoch,
        last_timestamp_ms=timestamp_ms,
        transaction_first_offset=first if first >= 0 else None,
    )


def _decode_windows(data: bytes, start: int) -> dict[int, list[WrittenBatch]]:
    windows: dict[int, list[WrittenBatch]] = {}
    if len(data) - start < _TAIL_HEAD.size:
        return windows
    magic, count = _TAIL_HEAD.unpack_from(data, start)
    start += _TAIL_HEAD.size
    end = start + count * _TAIL_ENTRY.size
    if magic != _TAIL_MAGIC or count < 0 or end > len(data):
        return windows
    for producer_id, *fields in _TAIL_ENTRY.iter_unpack(data[start:end]):
        windows.setdefault(producer_id, []).append(WrittenBatch(*fields))
    return windows
