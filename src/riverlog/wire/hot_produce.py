"""Produce requests and responses by hand: the same messages and bytes as the tables give, sooner.

Record data is never copied: it stays a view of the receive buffer. The versions are 3 to 13; flexible from 9,
topic ids instead of names from 13. A property test holds both directions equal to kio's bytes.
"""

import struct
from collections.abc import Sequence
from typing import Final, Protocol

from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from riverlog.wire.primitives import (
    VARINT,
    MalformedMessage,
    classic_text,
    compact_text,
    id_bytes,
    id_of,
    read_compact_text,
    read_long_varint,
    skip_tagged_fields,
    tagged_block,
    too_short,
    varint,
)


class Endpoint(Protocol):
    """What the endpoints of Produce and of Fetch responses have in common."""

    node_id: int
    host: str
    port: int
    rack: str | None


_new = object.__new__
_short: Final = struct.Struct(">h").unpack_from
_int: Final = struct.Struct(">i").unpack_from
_classic_head: Final = struct.Struct(">hii").unpack_from
_classic_partition: Final = struct.Struct(">ii").unpack_from
_flexible_head: Final = struct.Struct(">hiB").unpack_from
_flexible_partition: Final = struct.Struct(">iB").unpack_from
_id_and_count: Final = struct.Struct(">16sB").unpack_from
_MIN_TOPIC_BYTES: Final = 3
_MIN_PARTITION_BYTES: Final = 6


def decode_produce_request(data: memoryview, version: int, start: int = 0) -> ProduceRequest:
    """The request whose body begins at `start`; bytes after it are not looked at."""
    try:
        if version >= 9:
            return _read_flexible(data, start, len(data), version >= 13)
        return _read_classic(data, start, len(data))
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"ProduceRequest v{version}: {error}") from error


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


_partition_v3: Final = struct.Struct(">ihqq").pack
_partition_v5: Final = struct.Struct(">ihqqq").pack
_partition_v8: Final = struct.Struct(">ihqqqi").pack
_plain_partition_v8: Final = struct.Struct(">ihqqqih").pack
_plain_partition_v9: Final = struct.Struct(">ihqqqBBB").pack
_leader: Final = struct.Struct(">BBBiiB").pack
_frame_classic: Final = struct.Struct(">iii").pack
_frame_flexible: Final = struct.Struct(">iiB").pack
_tail_flexible: Final = struct.Struct(">iB").pack


def encode_produce_response(version: int, correlation_id: int, response: ProduceResponse) -> bytes:
    """A whole frame, size included."""
    try:
        if version >= 9:
            return _write_flexible(version, correlation_id, response)
        return _write_classic(version, correlation_id, response)
    except (OverflowError, struct.error) as error:
        raise ValueError(f"ProduceResponse v{version} cannot hold these values: {error}") from error


def _write_classic(version: int, correlation_id: int, response: ProduceResponse) -> bytes:
    parts = [b""]
    for topic in response.responses:
        parts.append(classic_text(topic.name) + len(topic.partition_responses).to_bytes(4))
        for p in topic.partition_responses:
            if version < 5:
                parts.append(_partition_v3(p.index, p.error_code, p.base_offset, p.log_append_time_ms))
                continue
            fixed = (p.index, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
            if version < 8:
                parts.append(_partition_v5(*fixed))
            elif not p.record_errors and p.error_message is None:
                parts.append(_plain_partition_v8(*fixed, 0, -1))
            else:
                parts.append(_partition_v8(*fixed, len(p.record_errors)))
                for error in p.record_errors:
                    parts.append(error.batch_index.to_bytes(4, signed=True))
                    parts.append(classic_text(error.batch_index_error_message))
                parts.append(classic_text(p.error_message))
    parts.append(response.throttle_time_ms.to_bytes(4, signed=True))
    body_bytes = sum(map(len, parts))
    parts[0] = _frame_classic(body_bytes + 8, correlation_id, len(response.responses))
    return b"".join(parts)


def _write_flexible(version: int, correlation_id: int, response: ProduceResponse) -> bytes:
    parts = [b"", varint(len(response.responses) + 1)]
    for topic in response.responses:
        parts.append(id_bytes(topic.topic_id) if version >= 13 else compact_text(topic.name))
        parts.append(varint(len(topic.partition_responses) + 1))
        parts += [_flexible_partition_bytes(version, p) for p in topic.partition_responses]
        parts.append(b"\0")
    if version >= 10 and response.node_endpoints:
        parts.append(response.throttle_time_ms.to_bytes(4, signed=True))
        parts.append(tagged_block({0: node_endpoints_bytes(response.node_endpoints)}))
    else:
        parts.append(_tail_flexible(response.throttle_time_ms, 0))
    parts[0] = _frame_flexible(sum(map(len, parts)) + 5, correlation_id, 0)
    return b"".join(parts)


def _flexible_partition_bytes(version: int, p: PartitionProduceResponse) -> bytes:
    fixed = (p.index, p.error_code, p.base_offset, p.log_append_time_ms, p.log_start_offset)
    leader = p.current_leader
    has_leader = version >= 10 and (leader.leader_id != -1 or leader.leader_epoch != -1)
    if not has_leader and not p.record_errors and p.error_message is None:
        return _plain_partition_v9(*fixed, 1, 0, 0)
    parts = [_partition_v5(*fixed), varint(len(p.record_errors) + 1)]
    for error in p.record_errors:
        parts.append(error.batch_index.to_bytes(4, signed=True))
        parts.append(compact_text(error.batch_index_error_message) + b"\0")
    parts.append(compact_text(p.error_message))
    parts.append(_leader(1, 0, 9, leader.leader_id, leader.leader_epoch, 0) if has_leader else VARINT[0])
    return b"".join(parts)


def node_endpoints_bytes(endpoints: Sequence[Endpoint]) -> bytes:
    """A compact array of endpoints, which Produce and Fetch responses have in common (KIP-951)."""
    parts = [varint(len(endpoints) + 1)]
    for endpoint in endpoints:
        parts.append(endpoint.node_id.to_bytes(4, signed=True) + compact_text(endpoint.host))
        parts.append(endpoint.port.to_bytes(4, signed=True) + compact_text(endpoint.rack) + b"\0")
    return b"".join(parts)
