"""Produce requests by hand: the same messages as the tables give, sooner.

Record data is never copied: it stays a view of the receive buffer. The versions are 3 to 13; flexible from 9,
topic ids instead of names from 13. A request of one batch, which is what small requests are, has a form of
its own that takes as few steps as can be; any other shape, and any doubt, goes the general way.
"""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.primitives import (
    MalformedMessage,
    id_of,
    read_compact_text,
    read_long_varint,
    skip_tagged_fields,
    too_short,
)

_new = object.__new__
_new_tuple = tuple.__new__
_short: Final = struct.Struct(">h").unpack_from
_int: Final = struct.Struct(">i").unpack_from
_classic_head: Final = struct.Struct(">hii").unpack_from
_classic_partition: Final = struct.Struct(">ii").unpack_from
_flexible_head: Final = struct.Struct(">hiB").unpack_from
_flexible_partition: Final = struct.Struct(">iB").unpack_from
_id_and_count: Final = struct.Struct(">16sB").unpack_from
_classic_single: Final = struct.Struct(">hhiih").unpack_from
_classic_single_batch: Final = struct.Struct(">iii").unpack_from
_named_single: Final = struct.Struct(">BhiBB").unpack_from
_named_single_batch: Final = struct.Struct(">BiBB").unpack_from
_id_single: Final = struct.Struct(">BhiB16sBiBB").unpack_from
_no_tags: Final = struct.Struct(">HB").unpack_from
_MIN_TOPIC_BYTES: Final = 3
_MIN_PARTITION_BYTES: Final = 6


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


def decode_produce_request(data: memoryview, version: int, start: int = 0) -> ProduceRequest:
    """The request whose body begins at `start`; bytes after it are not looked at."""
    request = decode_produce(data, version, start)
    return request.as_request() if isinstance(request, SingleBatch) else request


def decode_produce(data: memoryview, version: int, start: int = 0) -> SingleBatch | ProduceRequest:
    """The same, in the short form wherever that can hold it."""
    size = len(data)
    try:
        if version < 9:
            return _read_classic_single(data, start, size) or _read_classic(data, start, size)
        if version < 13:
            return _read_named_single(data, start, size) or _read_flexible(data, start, size, False)
        return _read_single(data, start, size) or _read_flexible(data, start, size, True)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"ProduceRequest v{version}: {error}") from error


def _read_classic_single(data: memoryview, pos: int, size: int) -> SingleBatch | None:
    if size - pos < 26:
        return None
    no_id, acks, timeout_ms, topics, length = _classic_single(data, pos)
    pos += 14
    end = pos + length
    if no_id != -1 or topics != 1 or length < 0 or end + 12 > size:
        return None
    partitions, index, records_bytes = _classic_single_batch(data, end)
    start = end + 12
    if partitions != 1 or records_bytes < 0 or start + records_bytes > size:
        return None
    records = data[start : start + records_bytes]
    return _new_tuple(SingleBatch, (acks, timeout_ms, str(data[pos:end], "utf-8"), None, index, records))


def _read_named_single(data: memoryview, pos: int, size: int) -> SingleBatch | None:
    if size - pos < 19:
        return None
    no_id, acks, timeout_ms, topics, length = _named_single(data, pos)
    pos += 9
    end = pos + length - 1
    if no_id or topics != 2 or not 0 < length < 128 or end + 7 > size:
        return None
    partitions, index, low, high = _named_single_batch(data, end)
    if partitions != 2:
        return None
    records = _records_of_single(data, end + 5, size, low, high)
    if records is None:
        return None
    return _new_tuple(SingleBatch, (acks, timeout_ms, str(data[pos:end], "utf-8"), None, index, records))


def _read_single(data: memoryview, pos: int, size: int) -> SingleBatch | None:
    if size - pos < 31:
        return None
    no_id, acks, timeout_ms, topics, raw, partitions, index, low, high = _id_single(data, pos)
    if no_id or topics != 2 or partitions != 2:
        return None
    records = _records_of_single(data, pos + 29, size, low, high)
    if records is None:
        return None
    return _new_tuple(SingleBatch, (acks, timeout_ms, "", id_of(raw), index, records))


def _records_of_single(data: memoryview, pos: int, size: int, low: int, high: int) -> memoryview | None:
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
    if low == 0 or end + 3 > size or _no_tags(data, end) != (0, 0):
        return None
    return data[pos:end]


def _read_classic(data: memoryview, pos: int, size: int) -> ProduceRequest:
    request = _new(ProduceRequest)
    (length,) = _short(data, pos)
    pos += 2
    request.transactional_id = None
    if length >= 0:
        if length > size - pos:
            raise too_short("transactional id", length, size - pos)
        request.transactional_id = str(data[pos : pos + length], "utf-8")
        pos += length
    request.acks, request.timeout_ms, topics = _classic_head(data, pos)
    pos += 10
    if topics < 0 or topics * 6 > size - pos:
        raise too_short("topics", topics, size - pos)
    request.topic_data = []
    for _ in range(topics):
        topic = _new(TopicProduceData)
        (length,) = _short(data, pos)
        pos += 2
        if length < 0 or length > size - pos:
            raise too_short("topic name", length, size - pos)
        topic.topic_id = None
        topic.name = str(data[pos : pos + length], "utf-8")
        pos += length
        (partitions,) = _int(data, pos)
        pos += 4
        if partitions < 0 or partitions * 8 > size - pos:
            raise too_short("partitions", partitions, size - pos)
        topic.partition_data = []
        for _ in range(partitions):
            partition = _new(PartitionProduceData)
            partition.index, length = _classic_partition(data, pos)
            pos += 8
            partition.records = None
            if length >= 0:
                if length > size - pos:
                    raise too_short("records", length, size - pos)
                partition.records = data[pos : pos + length]
                pos += length
            topic.partition_data.append(partition)
        request.topic_data.append(topic)
    return request


def _read_flexible(data: memoryview, pos: int, size: int, by_id: bool) -> ProduceRequest:
    request = _new(ProduceRequest)
    if data[pos]:
        request.transactional_id, pos = read_compact_text(data, pos, size)
    else:
        request.transactional_id = None
        pos += 1
    request.acks, request.timeout_ms, topics = _flexible_head(data, pos)
    if topics < 128:
        pos += 7
    else:
        topics, pos = read_long_varint(data, pos + 6)
    if topics == 0 or (topics - 1) * _MIN_TOPIC_BYTES > size - pos:
        raise too_short("topics", topics - 1, size - pos)
    request.topic_data = []
    for _ in range(topics - 1):
        topic = _new(TopicProduceData)
        if by_id:
            raw, partitions = _id_and_count(data, pos)
            topic.topic_id, topic.name = id_of(raw), ""
            pos += 16
        else:
            name, pos = read_compact_text(data, pos, size)
            if name is None:
                raise MalformedMessage("topic name is null")
            topic.topic_id, topic.name = None, name
            partitions = data[pos]
        if partitions < 128:
            pos += 1
        else:
            partitions, pos = read_long_varint(data, pos)
        topic.partition_data, pos = _read_partitions(data, pos, size, partitions - 1)
        pos = pos + 1 if data[pos] == 0 else skip_tagged_fields(data, pos, size)
        request.topic_data.append(topic)
    if data[pos]:
        skip_tagged_fields(data, pos, size)
    return request


def _read_partitions(
    data: memoryview, pos: int, size: int, count: int
) -> tuple[list[PartitionProduceData], int]:
    if count < 0 or count * _MIN_PARTITION_BYTES > size - pos:
        raise too_short("partitions", count, size - pos)
    partitions = []
    for _ in range(count):
        partition = _new(PartitionProduceData)
        partition.index, length = _flexible_partition(data, pos)
        if length < 128:
            pos += 5
        else:
            length, pos = read_long_varint(data, pos + 4)
        if length:
            end = pos + length - 1
            if end > size:
                raise too_short("records", length - 1, size - pos)
            partition.records = data[pos:end]
            pos = end
        else:
            partition.records = None
        pos = pos + 1 if data[pos] == 0 else skip_tagged_fields(data, pos, size)
        partitions.append(partition)
    return partitions, pos
