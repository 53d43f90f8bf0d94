"""A fetch of one partition, which is what most fetches are, read in as few steps as can be.

Version 11, at which many clients stay, and those from 15 on. The other versions, and anything unusual (tagged
fields, forgotten topics, a rack), are left to the tables, and so is the judgement of malformed bytes.
"""

import struct
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.model.disk import ReadableBuffer
from riverlog.model.named_tuples import maker_of
from riverlog.wire.codec import AT_ONCE_MAX, decode, decode_if_short
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.primitives import id_of

NAMED_SINGLE_VERSION: Final = 11
SINGLE_VERSION_MIN: Final = 15

_BY_ID: Final = struct.Struct(">iiibiiB16sBiiqiqiHBH")
_NAMED_HEAD: Final = struct.Struct(">iiiibiiih")
_NAMED_ROW: Final = struct.Struct(">iiiqqiih")
_BY_ID_BYTES: Final = _BY_ID.size
_NAMED_HEAD_BYTES: Final = _NAMED_HEAD.size
_NAMED_ROW_BYTES: Final = _NAMED_ROW.size
_by_id: Final = _BY_ID.unpack_from
_named_head: Final = _NAMED_HEAD.unpack_from
_named_row: Final = _NAMED_ROW.unpack_from
_EMPTY_RACK_NO_TAGS: Final = 0x0100
_SHORT_BYTES: Final = 16 * AT_ONCE_MAX  # More partitions than are read at once do not fit into fewer bytes.


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
        (
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topic,
            topic_id, index, leader_epoch, fetch_offset, last_fetched_epoch, log_start_offset,
            partition_max_bytes,
        ) = self  # fmt: skip
        partition = FetchPartition(
            partition=index,
            current_leader_epoch=leader_epoch,
            fetch_offset=fetch_offset,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=log_start_offset,
            partition_max_bytes=partition_max_bytes,
        )
        return FetchRequest(
            replica_id=replica_id,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])],
        )


_single_fetch: Final = maker_of(SingleFetch)


def decode_fetch(data: ReadableBuffer, version: int, start: int = 0) -> SingleFetch | FetchRequest:
    """The request whose body begins at `start`; bytes after it are not looked at. Raises `LongMessageError`
    where it is not read at once."""
    single: SingleFetch | None = None
    if version >= SINGLE_VERSION_MIN:
        single = _read_by_id(data, start)
    elif version == NAMED_SINGLE_VERSION:
        single = _read_named(data, start)
    if single is not None:
        return single
    read = decode if len(data) - start < _SHORT_BYTES else decode_if_short
    return read(FetchRequest, version, data, start)[0]


def _read_by_id(data: ReadableBuffer, pos: int) -> SingleFetch | None:
    if len(data) - pos < _BY_ID_BYTES:
        return None
    (
        max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, raw, partitions,
        index, leader_epoch, offset, fetched_epoch, log_start_offset, partition_bytes, tags, forgotten, rest,
    ) = _by_id(data, pos)  # fmt: skip
    if topics != 2 or partitions != 2 or tags or forgotten != 1 or rest != _EMPTY_RACK_NO_TAGS:
        return None
    return _single_fetch(
        (
            -1, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, "", id_of(raw),
            index, leader_epoch, offset, fetched_epoch, log_start_offset, partition_bytes,
        )
    )  # fmt: skip


def _read_named(data: ReadableBuffer, pos: int) -> SingleFetch | None:
    size = len(data)
    if size - pos < _NAMED_HEAD_BYTES:
        return None
    (
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, topics, length,
    ) = _named_head(data, pos)  # fmt: skip
    pos += _NAMED_HEAD_BYTES
    end = pos + length
    if topics != 1 or length < 0 or end + _NAMED_ROW_BYTES > size:
        return None
    (
        partitions, index, leader_epoch, offset, log_start_offset, partition_bytes, forgotten, rack,
    ) = _named_row(data, end)  # fmt: skip
    if partitions != 1 or forgotten or rack:
        return None
    try:
        name = str(data[pos:end], "utf-8")
    except UnicodeDecodeError:
        return None
    return _single_fetch(
        (
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch, name, None,
            index, leader_epoch, offset, -1, log_start_offset, partition_bytes,
        )
    )  # fmt: skip
