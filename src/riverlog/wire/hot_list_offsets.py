"""ListOffsets requests and responses by hand: the same messages and bytes as the tables give, sooner.

The versions are 1 to 11, flexible from 6. A property test holds both directions equal to kio's bytes.
"""

import struct
from typing import Final

from riverlog.model.disk import ReadableBuffer
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from riverlog.wire.primitives import (
    MalformedMessage,
    classic_text,
    compact_text,
    read_compact_text,
    read_long_varint,
    skip_tagged_fields,
    too_short,
    varint,
)

_new = object.__new__
_short: Final = struct.Struct(">h").unpack_from
_int: Final = struct.Struct(">i").unpack_from
_head_v1: Final = struct.Struct(">ii").unpack_from
_head_v2: Final = struct.Struct(">ibi").unpack_from
_head_v6: Final = struct.Struct(">ib").unpack_from
_partition_v1: Final = struct.Struct(">iq")
_partition_v4: Final = struct.Struct(">iiq")
_partition_v6: Final = struct.Struct(">iiqB").unpack_from


def decode_list_offsets_request(data: ReadableBuffer, version: int, start: int = 0) -> ListOffsetsRequest:
    """The request whose body begins at `start`; bytes after it are not looked at."""
    try:
        if version >= 6:
            return _read_flexible(data, start, len(data), version)
        return _read_classic(data, start, len(data), version)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"ListOffsetsRequest v{version}: {error}") from error


def _read_classic(data: ReadableBuffer, pos: int, size: int, version: int) -> ListOffsetsRequest:
    request = _new(ListOffsetsRequest)
    request.isolation_level = request.timeout_ms = 0
    if version == 1:
        request.replica_id, topics = _head_v1(data, pos)
        pos += 8
    else:
        request.replica_id, request.isolation_level, topics = _head_v2(data, pos)
        pos += 9
    if topics < 0 or topics * 6 > size - pos:
        raise too_short("topics", topics, size - pos)
    request.topics = []
    row = _partition_v4 if version >= 4 else _partition_v1
    for _ in range(topics):
        topic = _new(ListOffsetsTopic)
        (length,) = _short(data, pos)
        pos += 2
        if length < 0 or length > size - pos:
            raise too_short("topic name", length, size - pos)
        topic.name = str(data[pos : pos + length], "utf-8")
        pos += length
        (count,) = _int(data, pos)
        pos += 4
        end = pos + count * row.size
        if count < 0 or end > size:
            raise too_short("partitions", count, size - pos)
        topic.partitions = []
        for values in row.iter_unpack(data[pos:end]):
            partition = _new(ListOffsetsPartition)
            partition.partition_index = values[0]
            partition.current_leader_epoch = values[1] if version >= 4 else -1
            partition.timestamp = values[-1]
            topic.partitions.append(partition)
        pos = end
        request.topics.append(topic)
    return request


def _read_flexible(data: ReadableBuffer, pos: int, size: int, version: int) -> ListOffsetsRequest:
    request = _new(ListOffsetsRequest)
    request.replica_id, request.isolation_level = _head_v6(data, pos)
    topics, pos = read_long_varint(data, pos + 5)
    if topics == 0 or (topics - 1) * 3 > size - pos:
        raise too_short("topics", topics - 1, size - pos)
    request.topics = []
    for _ in range(topics - 1):
        topic = _new(ListOffsetsTopic)
        name, pos = read_compact_text(data, pos, size)
        if name is None:
            raise MalformedMessage("topic name is null")
        topic.name = name
        topic.partitions, pos = _read_partitions(data, pos, size)
        pos = pos + 1 if data[pos] == 0 else skip_tagged_fields(data, pos, size)
        request.topics.append(topic)
    request.timeout_ms = 0
    if version >= 10:
        (request.timeout_ms,) = _int(data, pos)
        pos += 4
    if data[pos]:
        skip_tagged_fields(data, pos, size)
    return request


def _read_partitions(data: ReadableBuffer, pos: int, size: int) -> tuple[list[ListOffsetsPartition], int]:
    count, pos = read_long_varint(data, pos)
    if count == 0 or (count - 1) * 17 > size - pos:
        raise too_short("partitions", count - 1, size - pos)
    partitions = []
    for _ in range(count - 1):
        partition = _new(ListOffsetsPartition)
        partition.partition_index, partition.current_leader_epoch, partition.timestamp, tags = _partition_v6(
            data, pos
        )
        pos = skip_tagged_fields(data, pos + 16, size) if tags else pos + 17
        partitions.append(partition)
    return partitions, pos


_response_v1: Final = struct.Struct(">ihqq").pack
_response_v4: Final = struct.Struct(">ihqqi").pack
_response_v6: Final = struct.Struct(">ihqqiB").pack
_frame_v1: Final = struct.Struct(">iii").pack
_frame_v2: Final = struct.Struct(">iiii").pack
_frame_v6: Final = struct.Struct(">iiBi").pack


def encode_list_offsets_response(version: int, correlation_id: int, response: ListOffsetsResponse) -> bytes:
    """A whole frame, size included."""
    try:
        if version >= 6:
            return _write_flexible(correlation_id, response)
        return _write_classic(version, correlation_id, response)
    except (OverflowError, struct.error) as error:
        raise ValueError(f"ListOffsetsResponse v{version} cannot hold these values: {error}") from error


def _write_classic(version: int, correlation_id: int, response: ListOffsetsResponse) -> bytes:
    parts = [b""]
    for topic in response.topics:
        parts.append(classic_text(topic.name) + len(topic.partitions).to_bytes(4))
        for p in topic.partitions:
            if version >= 4:
                row = _response_v4(p.partition_index, p.error_code, p.timestamp, p.offset, p.leader_epoch)
            else:
                row = _response_v1(p.partition_index, p.error_code, p.timestamp, p.offset)
            parts.append(row)
    body_bytes = sum(map(len, parts))
    if version == 1:
        parts[0] = _frame_v1(body_bytes + 8, correlation_id, len(response.topics))
    else:
        count = len(response.topics)
        parts[0] = _frame_v2(body_bytes + 12, correlation_id, response.throttle_time_ms, count)
    return b"".join(parts)


def _write_flexible(correlation_id: int, response: ListOffsetsResponse) -> bytes:
    parts = [b"", varint(len(response.topics) + 1)]
    for topic in response.topics:
        parts.append(compact_text(topic.name) + varint(len(topic.partitions) + 1))
        parts += [
            _response_v6(p.partition_index, p.error_code, p.timestamp, p.offset, p.leader_epoch, 0)
            for p in topic.partitions
        ]
        parts.append(b"\0")
    parts.append(b"\0")
    body_bytes = sum(map(len, parts))
    parts[0] = _frame_v6(body_bytes + 9, correlation_id, 0, response.throttle_time_ms)
    return b"".join(parts)
