"""From records to bytes and back: the number before a key says what it is, that before a value its version.

A record of an unknown kind or version is `None` or `UnknownVersion`, never a crash: a newer Kafka may have
written it, and it belongs to something this broker does not do.
"""

import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from riverlog.coordinator.formats import (
    classic_groups,
    consumer_assignments,
    consumer_groups,
    consumer_members,
    offset_commits,
)
from riverlog.coordinator.runtime.effects import CoordinatorRecord
from riverlog.model.disk import ReadableBuffer
from riverlog.wire.codec import MalformedMessage, decode, encode_into
from riverlog.wire.schema import Message

M = TypeVar("M", bound=Message)

_NUMBER = struct.Struct(">h")


class GroupRecord(IntEnum):
    """Kinds of records in `__consumer_offsets`, by the number before the key."""

    OFFSET_COMMIT_V0 = 0
    """As before 0.9; the same key."""
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16


class TransactionRecord(IntEnum):
    """Kinds of records in `__transaction_state`."""

    TRANSACTION_LOG = 0


class Format(NamedTuple):
    key: type[Message]
    value: type[Message]


GROUP_FORMATS: Final[Mapping[int, Format]] = {
    GroupRecord.OFFSET_COMMIT_V0: Format(offset_commits.OffsetCommitKey, offset_commits.OffsetCommitValue),
    GroupRecord.OFFSET_COMMIT: Format(offset_commits.OffsetCommitKey, offset_commits.OffsetCommitValue),
    GroupRecord.GROUP_METADATA: Format(classic_groups.GroupMetadataKey, classic_groups.GroupMetadataValue),
    GroupRecord.CONSUMER_GROUP_METADATA: Format(
        consumer_groups.ConsumerGroupMetadataKey, consumer_groups.ConsumerGroupMetadataValue
    ),
    GroupRecord.CONSUMER_GROUP_PARTITION_METADATA: Format(
        consumer_groups.ConsumerGroupPartitionMetadataKey, consumer_groups.ConsumerGroupPartitionMetadataValue
    ),
    GroupRecord.CONSUMER_GROUP_MEMBER_METADATA: Format(
        consumer_members.ConsumerGroupMemberMetadataKey, consumer_members.ConsumerGroupMemberMetadataValue
    ),
    GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: Format(
        consumer_assignments.ConsumerGroupTargetAssignmentMetadataKey,
        consumer_assignments.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    GroupRecord.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: Format(
        consumer_assignments.ConsumerGroupTargetAssignmentMemberKey,
        consumer_assignments.ConsumerGroupTargetAssignmentMemberValue,
    ),
    GroupRecord.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: Format(
        consumer_assignments.ConsumerGroupCurrentMemberAssignmentKey,
        consumer_assignments.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    GroupRecord.CONSUMER_GROUP_REGULAR_EXPRESSION: Format(
        consumer_groups.ConsumerGroupRegularExpressionKey, consumer_groups.ConsumerGroupRegularExpressionValue
    ),
}


class UnknownVersion(ValueError):  # noqa: N818 - named for what it is
    """The value was written in a version that this program does not know."""


def record(
    kind: GroupRecord | TransactionRecord, key: Message, value: Message | None, version: int = 0
) -> CoordinatorRecord:
    """A record with its value in the given version; a value of None makes it a tombstone."""
    encoded_value = None if value is None else _numbered(version, value, version)
    return CoordinatorRecord(_numbered(kind, key, 0), encoded_value)


def kind_of(key: ReadableBuffer) -> int | None:
    """The number before a key; None for a key that is too short to have one."""
    return int(_NUMBER.unpack_from(key)[0]) if len(key) >= _NUMBER.size else None


def decode_key(cls: type[M], data: ReadableBuffer) -> M:
    """Raises `MalformedMessage`."""
    return decode(cls, 0, data, _NUMBER.size)[0]


def decode_value(cls: type[M], data: ReadableBuffer) -> M:
    """Raises `MalformedMessage`, or `UnknownVersion`."""
    if len(data) < _NUMBER.size:
        raise MalformedMessage(f"a {cls.__name__} of {len(data)} bytes")
    (version,) = _NUMBER.unpack_from(data)
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise UnknownVersion(f"{cls.__name__} is known in the versions {first} to {last}, not in {version}")
    return decode(cls, version, data, _NUMBER.size)[0]


def _numbered(number: int, message: Message, version: int) -> bytes:
    out = bytearray(_NUMBER.pack(number))
    encode_into(out, message, version)
    return bytes(out)
