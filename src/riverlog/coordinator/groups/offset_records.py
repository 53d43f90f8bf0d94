"""Committed offsets as records, read and written.

By hand for the versions that Kafka writes now, since a broker reads as many of them as it finds when it
starts; every other version goes through the message tables. A test holds the two ways equal.
"""

import struct
from functools import lru_cache
from uuid import UUID

from riverlog.coordinator.effects import CoordinatorRecord
from riverlog.coordinator.groups.offset_table import Committed
from riverlog.coordinator.records_format import formats
from riverlog.coordinator.records_format.formats import GroupRecord
from riverlog.coordinator.records_format.offset_commits import OffsetCommitKey, OffsetCommitValue
from riverlog.wire.codec import MalformedMessage

VERSION = 4
_VERSION_WITH_EXPIRY = 1
_NONE = -1

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_UP_TO_METADATA = struct.Struct(">hqiB")
_TIMESTAMP_AND_TAGS = struct.Struct(">qB")
_TOPIC_ID_TAG = b"\x00\x10"
_METADATA_AT = _UP_TO_METADATA.size
_TOPIC_ID_BYTES = 16


def commit_record(group_id: str, topic: str, partition: int, committed: Committed) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=_NONE if committed.leader_epoch is None else committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp_ms=committed.committed_ms,
        expire_timestamp_ms=_NONE if committed.expires_ms is None else committed.expires_ms,
        topic_id=committed.topic_id,
    )
    version = VERSION if committed.expires_ms is None else _VERSION_WITH_EXPIRY
    return formats.record(GroupRecord.OFFSET_COMMIT, _key(group_id, topic, partition), value, version)


def tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return formats.record(GroupRecord.OFFSET_COMMIT, _key(group_id, topic, partition), None)


def read_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition. Raises `MalformedMessage`."""
    try:
        (length,) = _SHORT.unpack_from(key, 2)
        end = 4 + length
        group_id = str(key[4:end], "utf-8")
        (length,) = _SHORT.unpack_from(key, end)
        start, end = end + 2, end + 2 + length
        (partition,) = _INT.unpack_from(key, end)
        return group_id, str(key[start:end], "utf-8"), partition
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"OffsetCommitKey: {error}") from error


def read_value(value: bytes, record_offset: int) -> Committed:
    """Raises `MalformedMessage`, or `UnknownVersion`."""
    if len(value) > _METADATA_AT and value[1] == VERSION and value[0] == 0:
        quick = _read_quickly(value, record_offset)
        if quick is not None:
            return quick
    return _by_table(formats.decode_value(OffsetCommitValue, value), record_offset)


def _read_quickly(value: bytes, record_offset: int) -> Committed | None:
    """None for anything beyond short metadata and at most a topic id."""
    _, offset, leader_epoch, length = _UP_TO_METADATA.unpack_from(value)
    end = _METADATA_AT + length - 1
    if not 1 <= length < 128 or end + _TIMESTAMP_AND_TAGS.size > len(value):
        return None
    committed_ms, tags = _TIMESTAMP_AND_TAGS.unpack_from(value, end)
    end_of_plain = end + _TIMESTAMP_AND_TAGS.size
    topic_id = None
    if tags:
        id_at = end_of_plain + len(_TOPIC_ID_TAG)
        if tags != 1 or value[end_of_plain:id_at] != _TOPIC_ID_TAG or len(value) != id_at + _TOPIC_ID_BYTES:
            return None
        topic_id = _topic_id(value[id_at:])
    metadata = "" if length == 1 else _text(value[_METADATA_AT:end])
    epoch = None if leader_epoch < 0 else leader_epoch
    return Committed(offset, epoch, metadata, committed_ms, None, topic_id, record_offset)


@lru_cache(maxsize=4096)
def _topic_id(raw: bytes) -> UUID | None:
    """One object for all offsets of a topic: a million of them are read at a start."""
    topic_id = UUID(bytes=raw)
    return topic_id if topic_id.int else None


def _by_table(value: OffsetCommitValue, record_offset: int) -> Committed:
    return Committed(
        value.offset,
        None if value.leader_epoch < 0 else value.leader_epoch,
        value.metadata,
        value.commit_timestamp_ms,
        None if value.expire_timestamp_ms < 0 else value.expire_timestamp_ms,
        value.topic_id,
        record_offset,
    )


def _text(data: bytes) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"OffsetCommitValue: {error}") from error


def _key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)
