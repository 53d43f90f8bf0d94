"""Committed offsets as records, read and written.

By hand in the form that Kafka writes for nearly every commit, since a broker reads as many as it finds
when it starts; every other version, and anything unusual, goes through the message tables. A test holds
the two ways equal.
"""

import struct
from functools import lru_cache

from riverlog.coordinator.formats import formats
from riverlog.coordinator.formats.formats import GroupRecord
from riverlog.coordinator.formats.offset_commits import OffsetCommitKey, OffsetCommitValue
from riverlog.coordinator.groups.offsets.committed import VERSION, CommittedOffset, Kept, pack, usual_value
from riverlog.coordinator.runtime.effects import CoordinatorRecord
from riverlog.model.ids import LeaderEpoch, TopicId
from riverlog.wire.codec import MalformedMessage

_VERSION_WITH_EXPIRY = 1
_NONE = -1
_NUMBER_BYTES = 2
_PARTITION_BYTES = 4
_SHORT = struct.Struct(">h")
_PARTITION = struct.Struct(">i")


def commit_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    value = usual_value(committed)
    if value is None:
        return _unusual_record(group_id, topic, partition, committed)
    return CoordinatorRecord(_prefix(group_id, topic) + _PARTITION.pack(partition), value)


def tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(_prefix(group_id, topic) + _PARTITION.pack(partition), None)


def read_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition. Raises `MalformedMessage`."""
    if len(key) < _NUMBER_BYTES + _PARTITION_BYTES:
        raise MalformedMessage(f"an OffsetCommitKey of {len(key)} bytes")
    group_id, topic = _names(key[_NUMBER_BYTES:-_PARTITION_BYTES])
    return group_id, topic, int.from_bytes(key[-_PARTITION_BYTES:], "big", signed=True)


def read_value(value: bytes, record_offset: int) -> Kept:
    """Raises `MalformedMessage`, or `UnknownVersion`."""
    return pack(value, record_offset) or _read_unusual(value, record_offset)


@lru_cache(maxsize=16_384)
def _prefix(group_id: str, topic: str) -> bytes:
    """A key without its partition."""
    key = OffsetCommitKey(group=group_id, topic=topic)
    return formats.record(GroupRecord.OFFSET_COMMIT, key, None).key[:-_PARTITION_BYTES]


@lru_cache(maxsize=16_384)
def _names(data: bytes) -> tuple[str, str]:
    """Group and topic, which many keys in a row have in common."""
    try:
        (length,) = _SHORT.unpack_from(data)
        end = _SHORT.size + length
        group_id = str(data[_SHORT.size : end], "utf-8")
        (length,) = _SHORT.unpack_from(data, end)
        topic = str(data[end + _SHORT.size :], "utf-8")
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"OffsetCommitKey: {error}") from error
    if end < _SHORT.size or len(data) - end - _SHORT.size != length:
        raise MalformedMessage("the lengths in an OffsetCommitKey do not add up")
    return group_id, topic


def _unusual_record(
    group_id: str, topic: str, partition: int, committed: CommittedOffset
) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=_NONE if committed.leader_epoch is None else committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp_ms=committed.committed_ms,
        expire_timestamp_ms=_NONE if committed.expires_ms is None else committed.expires_ms,
        topic_id=committed.topic_id,
    )
    version = VERSION if committed.expires_ms is None else _VERSION_WITH_EXPIRY
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return formats.record(GroupRecord.OFFSET_COMMIT, key, value, version)


def _read_unusual(value: bytes, record_offset: int) -> CommittedOffset:
    found = formats.decode_value(OffsetCommitValue, value)
    return CommittedOffset(
        found.offset,
        None if found.leader_epoch < 0 else LeaderEpoch(found.leader_epoch),
        found.metadata,
        found.commit_timestamp_ms,
        None if found.expire_timestamp_ms < 0 else found.expire_timestamp_ms,
        None if found.topic_id is None else TopicId(found.topic_id),
        record_offset,
    )
