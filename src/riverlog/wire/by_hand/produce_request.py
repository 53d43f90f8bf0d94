"""A produce request of one batch, which is what small requests are, read in as few steps as can be.

From version 8 on, which is the last that is not flexible and the newest that some clients speak; outside of a
transaction. Records are a view of the receive buffer, here as by the tables, which read any other shape and
judge what may be malformed.
"""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.model.named_tuples import maker_of
from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.codec import AT_ONCE_MAX, decode, decode_if_short
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.primitives import MalformedMessage, id_of, read_long_varint

SINGLE_VERSION_MIN: Final = 8
FLEXIBLE_VERSION_MIN: Final = ProduceRequest.FLEXIBLE

_CLASSIC: Final = struct.Struct(">hhiih")
_CLASSIC_ROW: Final = struct.Struct(">iii")
_NAMED: Final = struct.Struct(">BhiBB")
_NAMED_ROW: Final = struct.Struct(">BiBB")
_BY_ID: Final = struct.Struct(">BhiB16sBiBB")
_CLASSIC_BYTES: Final = _CLASSIC.size
_CLASSIC_ROW_BYTES: Final = _CLASSIC_ROW.size
_NAMED_BYTES: Final = _NAMED.size
_NAMED_ROW_BYTES: Final = _NAMED_ROW.size
_BY_ID_BYTES: Final = _BY_ID.size
_LENGTH_BYTES: Final = 2  # Of the length before the records, two bytes are read along with what precedes it.
_TAGS_BYTES: Final = 3  # A zero each for partition, topic and request.
_classic: Final = _CLASSIC.unpack_from
_classic_row: Final = _CLASSIC_ROW.unpack_from
_named: Final = _NAMED.unpack_from
_named_row: Final = _NAMED_ROW.unpack_from
_by_id: Final = _BY_ID.unpack_from
_tags: Final = struct.Struct(">HB").unpack_from
_short: Final = struct.Struct(">h").unpack_from
_SHORT_LENGTH_BYTES: Final = 2
_SHORT_BYTES: Final = 6 * AT_ONCE_MAX  # More partitions than are read at once do not fit into fewer bytes.


class SingleBatch(NamedTuple):
    """A whole request outside of a transaction that brings records for one partition of one topic."""

    acks: int
    timeout_ms: int
    name: str
    topic_id: UUID | None
    partition: int
    records: memoryview

    def as_request(self) -> ProduceRequest:
        acks, timeout_ms, name, topic_id, index, records = self
        partition = PartitionProduceData(index=index, records=records)
        topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=[partition])
        return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])


_single_batch: Final = maker_of(SingleBatch)


def decode_produce(data: memoryview, version: int, start: int = 0) -> SingleBatch | ProduceRequest:
    """The request whose body begins at `start`; bytes after it are not looked at. Raises `LongMessageError`
    where it is not read at once."""
    single: SingleBatch | None = None
    try:
        if version >= TOPIC_ID_VERSION_MIN:
            single = _read_by_id(data, start, len(data))
        elif version >= FLEXIBLE_VERSION_MIN:
            single = _read_named(data, start, len(data))
        elif version == SINGLE_VERSION_MIN:
            single = _read_classic(data, start, len(data))
    except (IndexError, UnicodeDecodeError, MalformedMessage):
        single = None
    if single is not None:
        return single
    read = decode if len(data) - start < _SHORT_BYTES else decode_if_short
    return read(ProduceRequest, version, data, start)[0]


def wants_no_reply(data: memoryview, version: int, start: int) -> bool:
    """Whether the request whose body begins at `start` is one with acks=0; False, too, if it is malformed."""
    pos = start
    try:
        if version < FLEXIBLE_VERSION_MIN:
            (length,) = _short(data, pos)
            pos += _SHORT_LENGTH_BYTES + max(length, 0)
        else:
            length, pos = read_long_varint(data, pos)
            pos += max(length - 1, 0)
        return bool(_short(data, pos) == (0,))
    except (IndexError, struct.error, MalformedMessage):
        return False


def _read_classic(data: memoryview, pos: int, size: int) -> SingleBatch | None:
    if size - pos < _CLASSIC_BYTES:
        return None
    no_id, acks, timeout_ms, topics, length = _classic(data, pos)
    pos += _CLASSIC_BYTES
    end = pos + length
    if no_id != -1 or topics != 1 or length < 0 or end + _CLASSIC_ROW_BYTES > size:
        return None
    partitions, index, records_bytes = _classic_row(data, end)
    start = end + _CLASSIC_ROW_BYTES
    if partitions != 1 or records_bytes < 0 or start + records_bytes > size:
        return None
    records = data[start : start + records_bytes]
    return _single_batch((acks, timeout_ms, str(data[pos:end], "utf-8"), None, index, records))


def _read_named(data: memoryview, pos: int, size: int) -> SingleBatch | None:
    if size - pos < _NAMED_BYTES:
        return None
    no_id, acks, timeout_ms, topics, length = _named(data, pos)
    pos += _NAMED_BYTES
    end = pos + length - 1
    if no_id or topics != 2 or not 0 < length < 128 or end + _NAMED_ROW_BYTES > size:
        return None
    partitions, index, low, high = _named_row(data, end)
    if partitions != 2:
        return None
    records = _read_records(data, end + _NAMED_ROW_BYTES - _LENGTH_BYTES, size, low, high)
    if records is None:
        return None
    return _single_batch((acks, timeout_ms, str(data[pos:end], "utf-8"), None, index, records))


def _read_by_id(data: memoryview, pos: int, size: int) -> SingleBatch | None:
    if size - pos < _BY_ID_BYTES:
        return None
    no_id, acks, timeout_ms, topics, raw, partitions, index, low, high = _by_id(data, pos)
    if no_id or topics != 2 or partitions != 2:
        return None
    records = _read_records(data, pos + _BY_ID_BYTES - _LENGTH_BYTES, size, low, high)
    if records is None:
        return None
    return _single_batch((acks, timeout_ms, "", id_of(raw), index, records))


def _read_records(data: memoryview, pos: int, size: int, low: int, high: int) -> memoryview | None:
    """The records of the only partition, unless tagged fields follow. At `pos` are `low` and `high`."""
    if low < 128:
        pos += 1
        end = pos + low - 1
    elif 0 < high < 128:
        pos += 2
        end = pos + (low & 0x7F | high << 7) - 1
    else:
        low, pos = read_long_varint(data, pos)
        end = pos + low - 1
    if low == 0 or end + _TAGS_BYTES > size or _tags(data, end) != (0, 0):
        return None
    return data[pos:end]
