"""Records as Apache Kafka 4.3.1 wrote them: read from its `__consumer_offsets` and `__transaction_state`."""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.coordinator.formats.classic_groups import GroupMetadataValue
from riverlog.coordinator.formats.consumer_members import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from riverlog.coordinator.formats.formats import (
    GROUP_FORMATS,
    Format,
    GroupRecord,
    TransactionRecord,
    UnknownVersion,
    decode_key,
    decode_value,
    kind_of,
    record,
)
from riverlog.coordinator.formats.offset_commits import OffsetCommitKey, OffsetCommitValue
from riverlog.coordinator.formats.transactions import TransactionLogKey, TransactionLogValue
from riverlog.coordinator.groups.offsets.committed import CommittedOffset, unpack
from riverlog.coordinator.groups.offsets.records import commit_record, read_key, read_value, tombstone
from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.schema import Message

TRANSACTION_FORMATS: dict[int, Format] = {
    TransactionRecord.TRANSACTION_LOG: Format(TransactionLogKey, TransactionLogValue),
}


class Golden(NamedTuple):
    topic: str
    partition: int
    key: bytes
    value: bytes | None


def _golden() -> list[Golden]:
    rows = []
    for line in Path(__file__).with_name("kafka_records.jsonl").read_text().splitlines():
        row = json.loads(line)
        value = None if row["value"] is None else bytes.fromhex(row["value"])
        rows.append(Golden(row["topic"], row["partition"], bytes.fromhex(row["key"]), value))
    return rows


GOLDEN = _golden()


def test_the_golden_records_are_of_every_kind_that_kafka_still_writes() -> None:
    seen = {(each.topic, kind_of(each.key)) for each in GOLDEN if each.value is not None}
    old = {GroupRecord.OFFSET_COMMIT_V0, GroupRecord.CONSUMER_GROUP_PARTITION_METADATA}
    assert seen == {
        *(("__consumer_offsets", int(kind)) for kind in GROUP_FORMATS.keys() - old),
        ("__transaction_state", 0),
    }


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: f"{golden.topic}-{golden.key[:16].hex()}")
def test_what_kafka_wrote_is_read_and_written_back_byte_for_byte(golden: Golden) -> None:
    kinds = GroupRecord if golden.topic == "__consumer_offsets" else TransactionRecord
    formats = GROUP_FORMATS if golden.topic == "__consumer_offsets" else TRANSACTION_FORMATS
    number = kind_of(golden.key)
    assert number is not None
    key_class, value_class = formats[number]
    key = decode_key(key_class, golden.key)
    value = None if golden.value is None else decode_value(value_class, golden.value)
    version = 0 if golden.value is None else int.from_bytes(golden.value[:2])
    assert record(kinds(number), key, value, version) == (golden.key, golden.value)


def _tables(cls: type[Message]) -> Iterator[type[Message]]:
    """The table of a key or value, and those of the structures in it."""
    yield cls
    for field in cls.FIELDS:
        if field.struct is not None:
            yield from _tables(field.struct)


@pytest.mark.parametrize(
    "cls",
    {
        table: None
        for formats in (GROUP_FORMATS, TRANSACTION_FORMATS)
        for format in formats.values()
        for cls in format
        for table in _tables(cls)
    },
    ids=lambda cls: cls.__name__,
)
def test_a_table_written_by_hand_agrees_with_its_constructor(cls: type[Message]) -> None:
    parameters = inspect.signature(cls).parameters
    assert [*parameters] == [field.name for field in cls.FIELDS]
    for field in cls.FIELDS:
        # Kafka writes the null of this one, so that it cannot be the default that is left out.
        default = None if field.name == "classic_member_metadata" else field.default
        assert parameters[field.name].default == default, field
    assert {*cls.__slots__} == {*parameters}
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1):
        data = encode(cls(), version)
        assert decode(cls, version, data) == (cls(), len(data))


@pytest.mark.parametrize("golden", [each for each in GOLDEN if each.topic == "__consumer_offsets"])
def test_a_group_belongs_to_the_partition_that_kafka_put_it_in(golden: Golden) -> None:
    number = kind_of(golden.key)
    assert number is not None
    key = decode_key(GROUP_FORMATS[number].key, golden.key)
    group_id = key.group if hasattr(key, "group") else key.group_id  # type: ignore[attr-defined]
    assert partition_for(group_id, 50) == golden.partition


@pytest.mark.parametrize(
    ("text", "partition"), [("", 0), ("polygenelubricants", 0), ("группа", 8), ("😀", 49)]
)
def test_the_hash_is_that_of_a_java_string(text: str, partition: int) -> None:
    assert partition_for(text, 50) == partition


def test_committed_offsets_are_written_as_kafka_writes_them() -> None:
    for golden in GOLDEN:
        if kind_of(golden.key) == GroupRecord.OFFSET_COMMIT and golden.topic == "__consumer_offsets":
            at = read_key(golden.key)
            if golden.value is None:
                assert tombstone(*at) == (golden.key, None)
            else:
                assert commit_record(*at, unpack(read_value(golden.value, 0))) == (golden.key, golden.value)


COMMITTED = st.builds(
    CommittedOffset,
    st.integers(0, 2**63 - 1),
    st.none() | st.integers(0, 2**31 - 1),
    st.text(st.characters(codec="utf-8"), max_size=200),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**62),
    st.none() | st.uuids(),
    st.just(7),
)


@given(COMMITTED, st.text(st.characters(codec="utf-8"), max_size=20), st.integers(0, 2**31 - 1))
def test_a_committed_offset_comes_back_as_it_was(
    committed: CommittedOffset, name: str, partition: int
) -> None:
    written = commit_record(name, "t" + name, partition, committed)
    assert written.value is not None
    assert read_key(written.key) == (name, "t" + name, partition)
    found = unpack(read_value(written.value, 7))
    if committed.expires_ms is not None:
        # The version with an expiry time has neither leader epoch nor topic id.
        committed = committed._replace(leader_epoch=None, topic_id=None)
    assert found == committed


@given(COMMITTED)
def test_the_quick_reader_agrees_with_the_tables(committed: CommittedOffset) -> None:
    written = commit_record("g", "t", 0, committed)
    assert written.value is not None
    value = decode_value(OffsetCommitValue, written.value)
    found = unpack(read_value(written.value, 7))
    assert (found.offset, found.metadata, found.committed_ms, found.topic_id) == (
        value.offset,
        value.metadata,
        value.commit_timestamp_ms,
        value.topic_id,
    )


@given(st.binary(max_size=60))
def test_hostile_bytes_are_malformed_or_unknown_and_nothing_else(data: bytes) -> None:
    for read in (
        lambda: read_key(data),
        lambda: read_value(data, 0),
        lambda: read_value(b"\0\4" + data, 0),
        lambda: decode_value(GroupMetadataValue, data),
        lambda: decode_value(ConsumerGroupMemberMetadataValue, b"\0\0" + data),
        lambda: decode_key(OffsetCommitKey, data),
    ):
        try:
            read()
        except (MalformedMessage, UnknownVersion):
            continue


def test_a_value_of_a_later_version_is_unknown() -> None:
    with pytest.raises(UnknownVersion):
        decode_value(OffsetCommitValue, b"\0\x09" + bytes(40))


def test_a_member_without_classic_metadata_says_so_instead_of_leaving_it_out() -> None:
    key = ConsumerGroupMemberMetadataKey(group_id="g", member_id="m")
    written = record(GroupRecord.CONSUMER_GROUP_MEMBER_METADATA, key, ConsumerGroupMemberMetadataValue(), 0)
    assert written.value is not None
    assert written.value.endswith(b"\x01\x00\x01\x00")
    assert decode_value(ConsumerGroupMemberMetadataValue, written.value).classic_member_metadata is None
