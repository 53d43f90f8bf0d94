"""Fetch requests by hand: the same messages as the tables give, sooner.

The versions are 4 to 18; flexible from 12, topic ids instead of names from 13. What is read for every request
is written out in line; what is rare has a function.
"""

import struct
from typing import Final
from uuid import UUID

from riverlog.model.disk import ReadableBuffer
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
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
_SINGLE_V15: Final = struct.Struct(">iiibiiB16sBiiqiqiHBH")
_single_v15: Final = _SINGLE_V15.unpack_from
_named_v11: Final = struct.Struct(">iiiibiiih").unpack_from
_NAMED_ROW_V11: Final = struct.Struct(">iiiqqiih")
_named_row_v11: Final = _NAMED_ROW_V11.unpack_from
_NAMED_V11_BYTES: Final = 31 + _NAMED_ROW_V11.size
_replica_state: Final = struct.Struct(">iqB").unpack_from
_NO_LIMIT: Final = (1 << 63) - 1


def decode_fetch_request(data: ReadableBuffer, version: int, start: int = 0) -> FetchRequest:
    """The request whose body begins at `start`; bytes after it are not looked at."""
    try:
        if version >= 15:
            return _read_single(data, start) or _read_flexible(data, start, len(data), version)
        if version >= 12:
            return _read_flexible(data, start, len(data), version)
        single = _read_named_single(data, start) if version == 11 else None
        return single or _read_classic(data, start, len(data), version)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"FetchRequest v{version}: {error}") from error


def _read_single(data: ReadableBuffer, pos: int) -> FetchRequest | None:
    """A request for one partition, without tagged fields, forgotten topics or rack, in one go."""
    if len(data) - pos < _SINGLE_V15.size:
        return None
    (
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, raw, partitions,
        index, leader_epoch, offset, fetched_epoch, log_start_offset, partition_bytes, tags, forgotten, rest,
    ) = _single_v15(data, pos)  # fmt: skip
    if topics != 2 or partitions != 2 or tags or forgotten != 1 or rest != 0x0100:
        return None
    r = _single(index, leader_epoch, offset, log_start_offset, partition_bytes)
    r.max_wait_ms = max_wait_ms
    r.min_bytes = min_bytes
    r.max_bytes = max_bytes
    r.isolation_level = isolation
    r.session_id = session_id
    r.session_epoch = session_epoch
    topic = r.topics[0]
    topic.topic_id = id_of(raw)
    topic.partitions[0].last_fetched_epoch = fetched_epoch
    return r


def _read_named_single(data: ReadableBuffer, pos: int) -> FetchRequest | None:
    """The same for version 11, which many clients stay at."""
    size = len(data)
    if size - pos < _NAMED_V11_BYTES:
        return None
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, length,
    ) = _named_v11(data, pos)  # fmt: skip
    pos += 31
    end = pos + length
    if topics != 1 or length < 0 or end + _NAMED_ROW_V11.size > size:
        return None
    (
        partitions, index, leader_epoch, offset, log_start_offset, partition_bytes, forgotten, rack,
    ) = _named_row_v11(data, end)  # fmt: skip
    if partitions != 1 or forgotten or rack:
        return None
    r = _single(index, leader_epoch, offset, log_start_offset, partition_bytes)
    r.replica_id = replica_id
    r.max_wait_ms = max_wait_ms
    r.min_bytes = min_bytes
    r.max_bytes = max_bytes
    r.isolation_level = isolation
    r.session_id = session_id
    r.session_epoch = session_epoch
    r.topics[0].topic = str(data[pos:end], "utf-8")
    return r


def _single(
    index: int, leader_epoch: int, offset: int, log_start_offset: int, partition_bytes: int
) -> FetchRequest:
    """A request for one partition, of which the topic and the head are still to be filled in."""
    r, topic, p = _empty_request(), _new(FetchTopic), _new(FetchPartition)
    r.topics.append(topic)
    topic.topic_id = None
    topic.topic = ""
    topic.partitions = [p]
    p.partition = index
    p.current_leader_epoch = leader_epoch
    p.fetch_offset = offset
    p.last_fetched_epoch = -1
    p.log_start_offset = log_start_offset
    p.partition_max_bytes = partition_bytes
    p.replica_directory_id = None
    p.high_watermark = _NO_LIMIT
    return r


def _empty_request() -> FetchRequest:
    request = _new(FetchRequest)
    request.replica_id = request.session_epoch = -1
    request.session_id = 0
    request.rack_id = ""
    request.cluster_id = None
    state = request.replica_state = _new(ReplicaState)
    state.replica_id = state.replica_epoch = -1
    request.topics = []
    request.forgotten_topics_data = []
    return request


def _read_classic(data: ReadableBuffer, pos: int, size: int, version: int) -> FetchRequest:
    r = _empty_request()
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
        partition.high_watermark = _NO_LIMIT
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
    r = _empty_request()
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
        p.high_watermark = _NO_LIMIT
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
