"""A fetch of one partition, which is what most fetches are: read in one go, answered in one go.

The request has a form of its own that takes as few steps as can be. Version 11, which many clients stay at,
and 15 to 18 are read so; anything unusual (tagged fields, forgotten topics, a rack) is left to the general
way, and so are the other versions. The answer says that there are records and nothing else is to be told.
"""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.model.disk import FileSlice, ReadableBuffer
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from riverlog.wire.primitives import classic_text, id_bytes, id_of, varint
from riverlog.wire.schema import RecordData

NO_LIMIT: Final = (1 << 63) - 1
SINGLE_VERSION_MIN: Final = 15
NAMED_SINGLE_VERSION: Final = 11

_new = object.__new__
_new_tuple = tuple.__new__
_SINGLE: Final = struct.Struct(">iiibiiB16sBiiqiqiHBH")
_single: Final = _SINGLE.unpack_from
_SINGLE_BYTES: Final = _SINGLE.size
_named: Final = struct.Struct(">iiiibiiih").unpack_from
_NAMED_ROW: Final = struct.Struct(">iiiqqiih")
_NAMED_ROW_BYTES: Final = _NAMED_ROW.size
_named_row: Final = _NAMED_ROW.unpack_from
_NAMED_HEAD_BYTES: Final = 31
_NAMED_BYTES: Final = _NAMED_HEAD_BYTES + _NAMED_ROW_BYTES

_head: Final = struct.Struct(">iiBihiB16sBihqqqBi").pack
_HEAD_BYTES: Final = struct.calcsize(">iBihiB16sBihqqqBi")
_named_head: Final = struct.Struct(">iiihii").pack
_named_answer: Final = struct.Struct(">iihqqqiii").pack
_NAMED_ANSWER_BYTES: Final = 18 + 46
_NO_TAGS: Final = b"\0\0\0"

Row = tuple[int, int, int, int]
"""Of a partition: index, high watermark, last stable offset, log start offset."""


class SingleFetch(NamedTuple):
    """A whole request for one partition of one topic, with the wire's own values for what is absent."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topic: str
    topic_id: UUID | None
    partition: int
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int

    def as_request(self) -> FetchRequest:
        r, topic, p = empty_request(), _new(FetchTopic), _new(FetchPartition)
        (
            r.replica_id, r.max_wait_ms, r.min_bytes, r.max_bytes, r.isolation_level, r.session_id,
            r.session_epoch, topic.topic, topic.topic_id, p.partition, p.current_leader_epoch, p.fetch_offset,
            p.last_fetched_epoch, p.log_start_offset, p.partition_max_bytes,
        ) = self  # fmt: skip
        p.replica_directory_id = None
        p.high_watermark = NO_LIMIT
        topic.partitions = [p]
        r.topics.append(topic)
        return r


def empty_request() -> FetchRequest:
    """A request of which the head and the topics are still to be filled in."""
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


def read_single(data: ReadableBuffer, pos: int) -> SingleFetch | None:
    """From version 15 on; None for what the short form cannot hold."""
    if len(data) - pos < _SINGLE_BYTES:
        return None
    (
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, raw, partitions,
        index, leader_epoch, offset, fetched_epoch, log_start_offset, partition_bytes, tags, forgotten, rest,
    ) = _single(data, pos)  # fmt: skip
    if topics != 2 or partitions != 2 or tags or forgotten != 1 or rest != 0x0100:
        return None
    return _new_tuple(
        SingleFetch,
        (
            -1, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, "", id_of(raw),
            index, leader_epoch, offset, fetched_epoch, log_start_offset, partition_bytes,
        ),
    )  # fmt: skip


def read_named_single(data: ReadableBuffer, pos: int) -> SingleFetch | None:
    """The same for version 11."""
    size = len(data)
    if size - pos < _NAMED_BYTES:
        return None
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, length,
    ) = _named(data, pos)  # fmt: skip
    pos += _NAMED_HEAD_BYTES
    end = pos + length
    if topics != 1 or length < 0 or end + _NAMED_ROW_BYTES > size:
        return None
    (
        partitions, index, leader_epoch, offset, log_start_offset, partition_bytes, forgotten, rack,
    ) = _named_row(data, end)  # fmt: skip
    if partitions != 1 or forgotten or rack:
        return None
    return _new_tuple(
        SingleFetch,
        (
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch,
            str(data[pos:end], "utf-8"), None, index, leader_epoch, offset, -1, log_start_offset,
            partition_bytes,
        ),
    )  # fmt: skip


def encode_single_fetch(
    version: int, correlation_id: int, request: SingleFetch, row: Row, records: FileSlice, session_id: int
) -> list[RecordData]:
    """The frame that answers a `SingleFetch` with records, and with no aborted transactions among them.

    Which of them were aborted is asked by a reader of committed records only; to others, null is said.
    """
    index, high_watermark, last_stable_offset, log_start_offset = row
    length = records.length
    if version == NAMED_SINGLE_VERSION:
        name = classic_text(request.topic)
        frame = b"".join(
            (
                _named_head(len(name) + _NAMED_ANSWER_BYTES + length, correlation_id, 0, 0, session_id, 1),
                name,
                _named_answer(
                    1, index, 0, high_watermark, last_stable_offset, log_start_offset,
                    0 if request.isolation_level else -1, -1, length,
                ),
            )
        )  # fmt: skip
        return [frame, records]
    count = varint(length + 1)
    frame = _head(
        _HEAD_BYTES + len(count) + length + len(_NO_TAGS), correlation_id, 0, 0, 0, session_id, 2,
        id_bytes(request.topic_id), 2, index, 0, high_watermark, last_stable_offset, log_start_offset,
        1 if request.isolation_level else 0, -1,
    )  # fmt: skip
    return [frame + count, records, _NO_TAGS]
