"""Records of classic groups: those that Apache Kafka 4.3.1 wrote are read and written again byte by byte."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.coordinator.formats.classic_groups import (
    GroupMetadataKey,
    GroupMetadataMember,
    GroupMetadataValue,
)
from riverlog.coordinator.formats.formats import GroupRecord, decode_key, decode_value, kind_of, record
from riverlog.coordinator.groups.classic.records import (
    StoredGroup,
    StoredMember,
    record_of,
    stored_from,
    tombstone_of,
)

_ROWS = [
    json.loads(line) for line in Path(__file__).with_name("kafka_records.jsonl").read_text().splitlines()
]
GOLDEN = [
    (bytes.fromhex(row["key"]), bytes.fromhex(row["value"]))
    for row in _ROWS
    if row["topic"] == "__consumer_offsets"
    and row["value"] is not None
    and kind_of(bytes.fromhex(row["key"])) == GroupRecord.GROUP_METADATA
]

TEXT = st.text(max_size=8)
MAYBE = st.none() | TEXT
NUMBER = st.integers(0, 2**31 - 1)
MEMBERS = st.builds(
    StoredMember, TEXT, MAYBE, TEXT, TEXT, NUMBER, NUMBER, st.binary(max_size=9), st.binary(max_size=9)
)
GROUPS = st.builds(
    StoredGroup,
    NUMBER,
    st.none() | TEXT.filter(bool),
    MAYBE,
    MAYBE,
    st.none() | NUMBER,
    st.lists(MEMBERS, max_size=3).map(tuple),
)


def test_there_are_records_of_kafka_empty_and_with_members() -> None:
    sizes = {len(stored_from(decode_value(GroupMetadataValue, value)).members) for _, value in GOLDEN}
    assert {0, 1} <= sizes


@pytest.mark.parametrize(("key", "value"), GOLDEN)
def test_what_kafka_wrote_is_written_the_same(key: bytes, value: bytes) -> None:
    group_id = decode_key(GroupMetadataKey, key).group
    stored = stored_from(decode_value(GroupMetadataValue, value))
    assert record_of(group_id, stored) == (key, value)


@given(TEXT, GROUPS)
def test_a_group_is_read_as_it_was_written(group_id: str, stored: StoredGroup) -> None:
    key, value = record_of(group_id, stored)
    assert value is not None
    assert decode_key(GroupMetadataKey, key).group == group_id
    assert stored_from(decode_value(GroupMetadataValue, value)) == stored
    assert tombstone_of(group_id) == (key, None)


@pytest.mark.parametrize("version", range(5))
def test_older_versions_are_read(version: int) -> None:
    member = GroupMetadataMember(
        member_id="m", session_timeout_ms=7, rebalance_timeout_ms=9 if version else -1
    )
    value = GroupMetadataValue(protocol_type="consumer", generation=3, protocol="range", members=[member])
    _, data = record(GroupRecord.GROUP_METADATA, GroupMetadataKey(group="g"), value, version)
    assert data is not None
    stored = stored_from(decode_value(GroupMetadataValue, data))
    assert (stored.generation, stored.protocol, stored.state_since_ms) == (3, "range", None)
    [only] = stored.members
    assert (only.session_timeout_ms, only.rebalance_timeout_ms) == (7, 9 if version else 7)
