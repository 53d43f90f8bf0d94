"""Nodes hold the JSON that Apache Kafka wrote to ZooKeeper."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.metadata import payloads
from riverlog.model.errors import FormatError
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from riverlog.model.log_end import LogEnd
from riverlog.model.network import Address

TOPIC_ID = TopicId(UUID("dddd5b1b-3688-429e-95b5-83bfeb16a651"))


def test_a_topic_is_written_as_kafka_writes_it() -> None:
    node = payloads.TopicNode(TOPIC_ID, ((NodeId(1), NodeId(2)), (NodeId(2),)))
    assert json.loads(payloads.encode_topic(node)) == {
        "version": 3,
        "topic_id": "3d1bGzaIQp6VtYO_6xamUQ",
        "partitions": {"0": [1, 2], "1": [2]},
        "adding_replicas": {},
        "removing_replicas": {},
    }


def test_a_topic_that_kafka_wrote_is_understood() -> None:
    written = (
        b'{"removing_replicas":{},"partitions":{"1":[2],"0":[1,2]},'
        b'"topic_id":"3d1bGzaIQp6VtYO_6xamUQ","adding_replicas":{},"version":3}'
    )
    assert payloads.decode_topic("/t", written) == (TOPIC_ID, ((1, 2), (2,)))


def test_a_partition_without_a_leader_has_leader_minus_1() -> None:
    node = payloads.PartitionNode(None, LeaderEpoch(4), (NodeId(1),), 9)
    data = payloads.encode_partition(node)
    assert json.loads(data) == {
        "controller_epoch": 9,
        "leader": -1,
        "version": 1,
        "leader_epoch": 4,
        "isr": [1],
    }
    assert payloads.decode_partition("/p", data) == node


def test_eligible_leaders_and_unclean_elections_are_fields_of_their_own() -> None:
    elr, last = (NodeId(2), NodeId(3)), (NodeId(1),)
    node = payloads.PartitionNode(
        None, LeaderEpoch(4), (), 9, BrokerEpoch(3), elr, last, LeaderEpoch(0), LeaderEpoch(8)
    )
    data = payloads.encode_partition(node)
    fields = json.loads(data)
    assert (fields["elr"], fields["last_known_elr"], fields["unclean_epoch"]) == ([2, 3], [1], 0)
    assert fields["log_epoch"] == 8
    assert payloads.decode_partition("/p", data) == node


def test_a_broker_is_registered_with_every_listener() -> None:
    node = payloads.BrokerNode(
        {"PLAINTEXT": Address("::1", 9092), "INNER": Address("h", 1)}, {"PLAINTEXT": "PLAINTEXT"}, "r"
    )
    data = payloads.encode_broker(node, 5)
    assert json.loads(data)["endpoints"] == ["PLAINTEXT://[::1]:9092", "INNER://h:1"]
    assert payloads.decode_broker("/b", data) == node


def test_a_registration_names_what_is_in_directories_that_have_failed() -> None:
    offline = {TopicId(UUID(int=1)): (0, 2), TopicId(UUID(int=7)): (5,)}
    node = payloads.BrokerNode({}, {}, None, BrokerEpoch(3), "h", is_shutting_down=True, offline=offline)
    assert payloads.decode_broker("/b", payloads.encode_broker(node, 5)) == node


def test_a_registration_tells_how_far_logs_go_that_the_metadata_does_not_know() -> None:
    ends = {
        (TopicId(UUID(int=1)), 0): LogEnd(LeaderEpoch(9), 40),
        (TopicId(UUID(int=1)), 3): LogEnd(LeaderEpoch(-1), 0),
        (TopicId(UUID(int=2)), 0): LogEnd(LeaderEpoch(3), 7),
    }
    node = payloads.BrokerNode({}, {}, None, BrokerEpoch(3), "h", log_ends=ends)
    assert payloads.decode_broker("/b", payloads.encode_broker(node, 5)) == node


@pytest.mark.parametrize(
    "decode",
    [
        payloads.decode_topic,
        payloads.decode_partition,
        payloads.decode_broker,
        payloads.decode_controller,
        payloads.decode_cluster_id,
        payloads.decode_producer_ids,
    ],
)
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"partitions":{"7":[1]},"topic_id":"x"}', b"\xff"]
)
def test_bytes_that_are_not_a_node_are_a_format_error_that_names_the_path(decode, data: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FormatError, match="/some/path"):
        decode("/some/path", data)


@given(st.uuids())
def test_uuids_are_spelled_in_22_characters_and_back(value: UUID) -> None:
    text = payloads.uuid_text(value)
    assert len(text) == 22
    assert payloads.parse_uuid(text) == value
