"""Produce responses by hand: the same bytes as the tables give, sooner.

The versions are 3 to 13; flexible from 9, topic ids instead of names from 13. The answer to one batch is
packed in one go, unless there is more to say; any other shape goes the general way.
"""

import struct
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

from riverlog.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from riverlog.wire.primitives import VARINT, classic_text, compact_text, id_bytes, tagged_block, varint


class Endpoint(Protocol):
    """What the endpoints of Produce and of Fetch responses have in common."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Named(Protocol):
    """A topic by its name or, from version 13 on, by its id; in a request or in a response."""

    @property
    def name(self) -> str: ...

    @property
    def topic_id(self) -> UUID | None: ...


Row = tuple[int, int, int, int, int]
"""Of a partition: index, error code, base offset, append time (ms), log start offset."""

_partition_v3: Final = struct.Struct(">ihqq").pack
_partition_v5: Final = struct.Struct(">ihqqq").pack
_partition_v8: Final = struct.Struct(">ihqqqi").pack
_plain_partition_v8: Final = struct.Struct(">ihqqqih").pack
_plain_partition_v9: Final = struct.Struct(">ihqqqBBB").pack
# After the log start offset: no record errors; then a zero each for message, tags of partition and of topic.
_ID_SINGLE: Final = struct.Struct(">iiBB16sBihqqqBHxiB")
_id_single: Final = _ID_SINGLE.pack
_ID_SINGLE_BYTES: Final = _ID_SINGLE.size - 4
_named_head: Final = struct.Struct(">iiBB").pack
_NAMED_SINGLE: Final = struct.Struct(">BihqqqBHxiB")
_named_single: Final = _NAMED_SINGLE.pack
_NAMED_SINGLE_BYTES: Final = _NAMED_SINGLE.size + 6
_CLASSIC_SINGLE: Final = struct.Struct(">iihqqqihi")
_classic_single: Final = _CLASSIC_SINGLE.pack
_CLASSIC_SINGLE_BYTES: Final = _CLASSIC_SINGLE.size + 8
_leader: Final = struct.Struct(">BBBiiB").pack
_frame_classic: Final = struct.Struct(">iii").pack
_frame_flexible: Final = struct.Struct(">iiB").pack
_tail_flexible: Final = struct.Struct(">iB").pack


def encode_produce_response(version: int, correlation_id: int, response: ProduceResponse) -> bytes:
    """A whole frame, size included."""
    topics = response.responses
    try:
        if version >= 8 and len(topics) == 1 and len(topics[0].partition_responses) == 1:
            partition = topics[0].partition_responses[0]
            if _is_plain(version, partition) and not response.node_endpoints:
                row = (
                    partition.index, partition.error_code, partition.base_offset,
                    partition.log_append_time_ms, partition.log_start_offset,
                )  # fmt: skip
                return encode_single(version, correlation_id, topics[0], row, response.throttle_time_ms)
        if version >= 9:
            return _write_flexible(version, correlation_id, response)
        return _write_classic(version, correlation_id, response)
    except (OverflowError, struct.error) as error:
        raise ValueError(f"ProduceResponse v{version} cannot hold these values: {error}") from error


def _is_plain(version: int, p: PartitionProduceResponse) -> bool:
    """Whether nothing is said about errors or about another leader."""
    if p.record_errors or p.error_message is not None:
        return False
    leader = p.current_leader
    return version < 10 or (leader.leader_id == -1 and leader.leader_epoch == -1)


def encode_single(version: int, correlation_id: int, topic: Named, row: Row, throttle_ms: int = 0) -> bytes:
    """The frame that answers one batch, from version 8 on, when there is no more to say than `row` says."""
    if version >= 13:
        return _id_single(
            _ID_SINGLE_BYTES, correlation_id, 0, 2, id_bytes(topic.topic_id), 2, *row, 1, 0, throttle_ms, 0
        )  # fmt: skip
    if version >= 9:
        name = compact_text(topic.name)
        head = _named_head(len(name) + _NAMED_SINGLE_BYTES, correlation_id, 0, 2)
        return b"".join((head, name, _named_single(2, *row, 1, 0, throttle_ms, 0)))
    name = classic_text(topic.name)
    head = _frame_classic(len(name) + _CLASSIC_SINGLE_BYTES, correlation_id, 1)
    return b"".join((head, name, _classic_single(1, *row, 0, -1, throttle_ms)))


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
