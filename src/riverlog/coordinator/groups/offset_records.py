"""Committed offsets as records, read and written.

By hand for the versions that Kafka writes now, since a broker reads as many of them as it finds when it
starts; every other version goes through the message tables. A test holds the two ways equal.
"""

import struct

from riverlog.coordinator.effects import CoordinatorRecord
from riverlog.coordinator.groups.offset_table import Committed
from riverlog.coordinator.records_format import formats
from riverlog.coordinator.records_format.formats import GroupRecord
from riverlog.coordinator.records_format.offset_commits import OffsetCommitKey, OffsetCommitValue
from riverlog.wire.codec import MalformedMessage

VERSION = 3
_VERSION_WITH_TOPIC_ID = 4
_VERSION_WITH_EXPIRY = 1
_NONE = -1

_SHORT = struct.Struct(">h")
_INT = struct.Struct(">i")
_UP_TO_METADATA = struct.Struct(">hqih")
_TIMESTAMP = struct.Struct(">q")
_UP_TO_METADATA_V3 = _UP_TO_METADATA.size


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
    if len(value) >= _UP_TO_METADATA_V3 and value[1] == VERSION and value[0] == 0:
        _, offset, leader_epoch, length = _UP_TO_METADATA.unpack_from(value)
        end = _UP_TO_METADATA_V3 + length
        if length >= 0 and end + _TIMESTAMP.size <= len(value):
            (committed_ms,) = _TIMESTAMP.unpack_from(value, end)
            return Committed(
                offset,
                None if leader_epoch < 0 else leader_epoch,
                _text(value[_UP_TO_METADATA_V3:end]),
                committed_ms,
                None,
                None,
                record_offset,
            )
    return _by_table(formats.decode_value(OffsetCommitValue, value), record_offset)


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
