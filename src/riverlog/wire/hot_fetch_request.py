"""Fetch requests by hand: the same messages as the tables give, sooner.

The versions are 4 to 18; flexible from 12, topic ids instead of names from 13. What is read for every request
is written out in line; what is rare has a function.
"""

import struct
from typing import Final
from uuid import UUID

from riverlog.model.disk import ReadableBuffer
from riverlog.wire.hot_fetch_single import (
    NO_LIMIT,
    SingleFetch,
    empty_request,
    read_named_single,
    read_single,
)
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from riverlog.wire.primitives import (
    MalformedMessage,
    id_of,
    read_compact_text,
    read_long_varint,
    read_tag,
    read_tag_count,
    skip_tagged_fields,
    too_short,
)

_new = object.__new__
_short: Final = struct.Struct(">h").unpack_from
_int: Final = struct.Struct(">i").unpack_from
_long: Final = struct.Struct(">q").unpack_from
_head_v4: Final = struct.Struct(">iiiibi").unpack_from
_head_v7: Final = struct.Struct(">iiiibiii").unpack_from
_head_v12: Final = struct.Struct(">iiiibiiB").unpack_from
_head_v15: Final = struct.Struct(">iiibiiB").unpack_from
_row_v4: Final = struct.Struct(">iqi")
_row_v5: Final = struct.Struct(">iqqi")
_row_v9: Final = struct.Struct(">iiqqi")
_row_v12: Final = struct.Struct(">iiqiqiB").unpack_from
_replica_state: Final = struct.Struct(">iqB").unpack_from


def decode_fetch_request(data: ReadableBuffer, version: int, start: int = 0) -> FetchRequest:
    """The request whose body begins at `start`; bytes after it are not looked at."""
    request = decode_fetch(data, version, start)
    return request.as_request() if isinstance(request, SingleFetch) else request


def decode_fetch(data: ReadableBuffer, version: int, start: int = 0) -> SingleFetch | FetchRequest:
    """The same, in the short form wherever that can hold it."""
    try:
        if version >= 12:
            single = read_single(data, start) if version >= 15 else None
            return single or _read_flexible(data, start, len(data), version)
        single = read_named_single(data, start) if version == 11 else None
        return single or _read_classic(data, start, len(data), version)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"FetchRequest v{version}: {error}") from error


def _read_classic(data: ReadableBuffer, pos: int, size: int, version: int) -> FetchRequest:
    r = empty_request()
    if version >= 7:
        (
            r.replica_id, r.max_wait_ms, r.min_bytes, r.max_bytes, r.isolation_level,
            r.session_id, r.session_epoch, topics,
        ) = _head_v7(data, pos)  # fmt: skip
        pos += 29
    else:
        r.replica_id, r.max_wait_ms, r.min_bytes, r.max_bytes, r.isolation_level, topics = _head_v4(data, pos)
        pos += 21
    if topics < 0 or topics * 6 > size - pos:
        raise too_short("topics", topics, size - pos)
    for _ in range(topics):
        topic = _new(FetchTopic)
        topic.topic_id = None
        topic.topic, pos = _read_classic_text(data, pos, size)
        topic.partitions, pos = _read_rows(data, pos, size, version)
        r.topics.append(topic)
    if version >= 7:
        pos = _read_classic_forgotten(data, pos, size, r.forgotten_topics_data)
    if version >= 11:
        r.rack_id, pos = _read_classic_text(data, pos, size)
    return r


def _read_classic_text(data: ReadableBuffer, pos: int, size: int) -> tuple[str, int]:
    (length,) = _short(data, pos)
    pos += 2
    if length < 0 or length > size - pos:
        raise too_short("string", length, size - pos)
    return str(data[pos : pos + length], "utf-8"), pos + length


def _read_rows(data: ReadableBuffer, pos: int, size: int, version: int) -> tuple[list[FetchPartition], int]:
    """Partitions of a classic version, which all take the same number of bytes."""
    row = _row_v9 if version >= 9 else _row_v5 if version >= 5 else _row_v4
    (count,) = _int(data, pos)
    pos += 4
    end = pos + count * row.size
    if count < 0 or end > size:
        raise too_short("partitions", count, size - pos)
    partitions = []
    for values in row.iter_unpack(data[pos:end]):
        partition = _new(FetchPartition)
        partition.current_leader_epoch = partition.last_fetched_epoch = partition.log_start_offset = -1
        partition.replica_directory_id = None
        partition.high_watermark = NO_LIMIT
        partition.partition = values[0]
        partition.partition_max_bytes = values[-1]
        if version >= 9:
            partition.current_leader_epoch = values[1]
            partition.fetch_offset = values[2]
            partition.log_start_offset = values[3]
        else:
            partition.fetch_offset = values[1]
            if version >= 5:
                partition.log_start_offset = values[2]
        partitions.append(partition)
    return partitions, end


def _read_classic_forgotten(data: ReadableBuffer, pos: int, size: int, into: list[ForgottenTopic]) -> int:
    (count,) = _int(data, pos)
    pos += 4
    if count < 0 or count * 6 > size - pos:
        raise too_short("forgotten topics", count, size - pos)
    for _ in range(count):
        forgotten = _new(ForgottenTopic)
        forgotten.topic_id = None
        forgotten.topic, pos = _read_classic_text(data, pos, size)
        (partitions,) = _int(data, pos)
        pos += 4
        if partitions < 0 or partitions * 4 > size - pos:
            raise too_short("forgotten partitions", partitions, size - pos)
        forgotten.partitions = [*struct.unpack_from(f">{partitions}i", data, pos)]
        pos += 4 * partitions
        into.append(forgotten)
    return pos


def _read_flexible(data: ReadableBuffer, pos: int, size: int, version: int) -> FetchRequest:
    r = empty_request()
    if version >= 15:
        (
            r.max_wait_ms, r.min_bytes, r.max_bytes, r.isolation_level, r.session_id, r.session_epoch, topics,
        ) = _head_v15(data, pos)  # fmt: skip
        pos += 21
    else:
        (
            r.replica_id, r.max_wait_ms, r.min_bytes, r.max_bytes, r.isolation_level,
            r.session_id, r.session_epoch, topics,
        ) = _head_v12(data, pos)  # fmt: skip
        pos += 25
    if topics < 128:
        pos += 1
    else:
        topics, pos = read_long_varint(data, pos)
    if topics == 0 or (topics - 1) * 3 > size - pos:
        raise too_short("topics", topics - 1, size - pos)
    for _ in range(topics - 1):
        topic = _new(FetchTopic)
        topic.topic_id, topic.topic = None, ""
        if version >= 13:
            topic.topic_id = _read_id(data, pos, size)
            pos += 16
        else:
            topic.topic, pos = _read_text(data, pos, size)
        topic.partitions, pos = _read_partitions(data, pos, size, version)
        pos = pos + 1 if data[pos] == 0 else skip_tagged_fields(data, pos, size)
        r.topics.append(topic)
    if data[pos] == 1:
        pos += 1
    else:
        pos = _read_forgotten(data, pos, size, version, r.forgotten_topics_data)
    if data[pos] == 1:
        pos += 1
    else:
        r.rack_id, pos = _read_text(data, pos, size)
    if data[pos]:
        _read_request_tags(data, pos, size, version, r)
    return r


def _read_id(data: ReadableBuffer, pos: int, size: int) -> UUID | None:
    if size - pos < 16:
        raise too_short("id", 16, size - pos)
    return id_of(bytes(data[pos : pos + 16]))


def _read_text(data: ReadableBuffer, pos: int, size: int) -> tuple[str, int]:
    text, pos = read_compact_text(data, pos, size)
    if text is None:
        raise MalformedMessage("string is null")
    return text, pos


def _read_partitions(
    data: ReadableBuffer, pos: int, size: int, version: int
) -> tuple[list[FetchPartition], int]:
    count = data[pos]
    if count < 128:
        pos += 1
    else:
        count, pos = read_long_varint(data, pos)
    if count == 0 or (count - 1) * 33 > size - pos:
        raise too_short("partitions", count - 1, size - pos)
    partitions = []
    for _ in range(count - 1):
        p = _new(FetchPartition)
        (
            p.partition, p.current_leader_epoch, p.fetch_offset, p.last_fetched_epoch,
            p.log_start_offset, p.partition_max_bytes, tags,
        ) = _row_v12(data, pos)  # fmt: skip
        p.replica_directory_id = None
        p.high_watermark = NO_LIMIT
        pos = _read_partition_tags(data, pos + 32, size, version, p) if tags else pos + 33
        partitions.append(p)
    return partitions, pos


def _read_partition_tags(data: ReadableBuffer, pos: int, size: int, version: int, p: FetchPartition) -> int:
    count, pos = read_tag_count(data, pos, size)
    for _ in range(count):
        tag, pos, end = read_tag(data, pos, size)
        if tag == 0 and version >= 17:
            p.replica_directory_id = _read_id(data, pos, end)
            pos += 16
        elif tag == 1 and version >= 18:
            (p.high_watermark,) = _long(data, pos)
            pos += 8
        else:
            pos = end
        if pos != end:
            raise MalformedMessage("tagged field of a wrong length")
    return pos


def _read_forgotten(
    data: ReadableBuffer, pos: int, size: int, version: int, into: list[ForgottenTopic]
) -> int:
    count, pos = read_long_varint(data, pos)
    if count == 0 or (count - 1) * 3 > size - pos:
        raise too_short("forgotten topics", count - 1, size - pos)
    for _ in range(count - 1):
        forgotten = _new(ForgottenTopic)
        forgotten.topic_id, forgotten.topic = None, ""
        if version >= 13:
            forgotten.topic_id = _read_id(data, pos, size)
            pos += 16
        else:
            forgotten.topic, pos = _read_text(data, pos, size)
        partitions, pos = read_long_varint(data, pos)
        if partitions == 0 or (partitions - 1) * 4 > size - pos:
            raise too_short("forgotten partitions", partitions - 1, size - pos)
        forgotten.partitions = [*struct.unpack_from(f">{partitions - 1}i", data, pos)]
        pos = skip_tagged_fields(data, pos + 4 * (partitions - 1), size)
        into.append(forgotten)
    return pos


def _read_request_tags(data: ReadableBuffer, pos: int, size: int, version: int, r: FetchRequest) -> None:
    count, pos = read_tag_count(data, pos, size)
    for _ in range(count):
        tag, pos, end = read_tag(data, pos, size)
        if tag == 0:
            r.cluster_id, pos = read_compact_text(data, pos, size)
        elif tag == 1 and version >= 15:
            state = r.replica_state
            state.replica_id, state.replica_epoch, tags = _replica_state(data, pos)
            pos = skip_tagged_fields(data, pos + 12, size) if tags else pos + 13
        else:
            pos = end
        if pos != end:
            raise MalformedMessage("tagged field of a wrong length")
