"""One committed offset: as a value, and packed for keeping a million of them.

What Kafka writes for nearly every commit (no metadata, no expiry of its own) is kept as the very bytes of the
record's value with the record's offset behind them: one small object that the garbage collector never visits,
and nothing to decode when a broker starts. Everything else is kept as the value it is.
"""

import struct
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from riverlog.model.ids import LeaderEpoch, TopicId

VERSION = 4
_NONE = -1
_EMPTY, _ONE_TAG, _TOPIC_ID_TAG, _TOPIC_ID_BYTES = 1, 1, 0, 16
_PLAIN = struct.Struct(">hqiBqB")
"""Version, offset, leader epoch, length of the metadata plus one, timestamp, number of tagged fields."""
_WITH_TOPIC_ID = struct.Struct(">hqiBqBBB16s")
"""The same with the one tagged field: tag 0 of 16 bytes."""
_RECORD_OFFSET = struct.Struct(">q")
_METADATA_AT, _TAGS_AT = 14, 23
_VERSION_BYTES = VERSION.to_bytes(2)
_TAG_BYTES = bytes((_ONE_TAG, _TOPIC_ID_TAG, _TOPIC_ID_BYTES))


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: LeaderEpoch | None
    metadata: str
    committed_ms: int
    expires_ms: int | None
    """Only where an old client asked for a retention of its own."""
    topic_id: TopicId | None
    record_offset: int
    """Where the record stands in the log: the later one wins."""


Kept = bytes | CommittedOffset


def pack(value: bytes, record_offset: int) -> bytes | None:
    """The value of a record as it is kept; None if it is not of the usual form."""
    if value[:2] != _VERSION_BYTES or value[_METADATA_AT : _METADATA_AT + 1] != b"\x01":
        return None
    if len(value) == _WITH_TOPIC_ID.size:
        is_usual = value[_TAGS_AT : _TAGS_AT + 3] == _TAG_BYTES
    else:
        is_usual = len(value) == _PLAIN.size and value[_TAGS_AT] == 0
    return value + _RECORD_OFFSET.pack(record_offset) if is_usual else None


def unpack(kept: Kept) -> CommittedOffset:
    if isinstance(kept, CommittedOffset):
        return kept
    topic_id = None
    if len(kept) == _WITH_TOPIC_ID.size + _RECORD_OFFSET.size:
        _, offset, epoch, _, committed_ms, _, _, _, raw_id = _WITH_TOPIC_ID.unpack_from(kept)
        topic_id = _topic_id(raw_id)
    else:
        _, offset, epoch, _, committed_ms, _ = _PLAIN.unpack_from(kept)
    (record_offset,) = _RECORD_OFFSET.unpack_from(kept, len(kept) - _RECORD_OFFSET.size)
    return CommittedOffset(
        offset, None if epoch < 0 else epoch, "", committed_ms, None, topic_id, record_offset
    )


def usual_value(committed: CommittedOffset) -> bytes | None:
    """The value of its record, if it is of the usual form."""
    if committed.metadata or committed.expires_ms is not None:
        return None
    leader_epoch = _NONE if committed.leader_epoch is None else committed.leader_epoch
    plain = (VERSION, committed.offset, leader_epoch, _EMPTY, committed.committed_ms)
    if committed.topic_id is None:
        return _PLAIN.pack(*plain, 0)
    return _WITH_TOPIC_ID.pack(*plain, _ONE_TAG, _TOPIC_ID_TAG, _TOPIC_ID_BYTES, committed.topic_id.bytes)


@lru_cache(maxsize=16_384)
def _topic_id(raw: bytes) -> TopicId | None:
    topic_id = TopicId(UUID(bytes=raw))
    return topic_id if topic_id.int else None
