"""More partitions, and no topic at all: which requests pass, and how the others are refused."""

from uuid import UUID

import pytest

from riverlog.controller.decisions.added_partitions import (
    AddedPartitions,
    AddedPartitionsPlan,
    decide_added_partitions,
)
from riverlog.controller.decisions.deletion import Deletion, TopicToDelete, decide_deletions
from riverlog.controller.decisions.refusals import DUPLICATE_NAME, Refusal
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId

ONE = (NodeId(1),)
PARTITION = PartitionImage(ONE, ONE, NodeId(1), LeaderEpoch(0), 0)
A, B = TopicId(UUID(int=1)), TopicId(UUID(int=2))
IMAGE = ClusterImage(
    brokers={NodeId(1): BrokerImage(NodeId(1), {})},
    topics={"a": TopicImage("a", A, (PARTITION,)), "b": TopicImage("b", B, (PARTITION, PARTITION))},
    topic_names={A: "a", B: "b"},
)


def grow(*wanted: AddedPartitions) -> list[AddedPartitionsPlan | Refusal]:
    return decide_added_partitions(IMAGE, wanted, start=lambda: 0)


def test_a_topic_grows_to_the_number_that_is_asked_for() -> None:
    assert grow(AddedPartitions("b", 5)) == [AddedPartitionsPlan("b", (ONE, ONE, ONE))]
    assert grow(AddedPartitions("b", 3, [[1]])) == [AddedPartitionsPlan("b", (ONE,))]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (AddedPartitions("b", 2), ErrorCode.INVALID_PARTITIONS),
        (AddedPartitions("b", 1), ErrorCode.INVALID_PARTITIONS),
        (AddedPartitions("b", -1), ErrorCode.INVALID_PARTITIONS),
        (AddedPartitions("b", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (AddedPartitions("b", 3, [[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (AddedPartitions("b", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (AddedPartitions("b", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (AddedPartitions("b", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (AddedPartitions("b", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_cannot_be(wanted: AddedPartitions, error: ErrorCode) -> None:
    [outcome] = grow(wanted)
    assert isinstance(outcome, Refusal)
    assert outcome.error == error
    assert outcome.message


def test_an_unknown_topic_is_refused_without_a_message() -> None:
    assert grow(AddedPartitions("none", 5)) == [Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)]


def test_a_request_adds_at_most_10000_partitions() -> None:
    overflow = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert isinstance(grow(AddedPartitions("a", 10_001))[0], AddedPartitionsPlan)
    assert grow(AddedPartitions("a", 10_002)) == [overflow]
    assert grow(AddedPartitions("a", 2**31 - 1)) == [overflow]
    first, second = grow(AddedPartitions("a", 6000), AddedPartitions("b", 6000))
    assert isinstance(first, AddedPartitionsPlan)
    assert second == overflow


def test_a_name_that_occurs_twice_is_refused() -> None:
    outcomes = grow(AddedPartitions("a", 2), AddedPartitions("b", 3), AddedPartitions("a", 3))
    assert outcomes[0] is DUPLICATE_NAME
    assert isinstance(outcomes[1], AddedPartitionsPlan)
    assert outcomes[2] is DUPLICATE_NAME


def summary(deletions: list[Deletion]) -> list[tuple[str | None, UUID | None, ErrorCode]]:
    return [
        (each.name, each.topic_id, each.refusal.error if each.refusal else ErrorCode.NONE)
        for each in deletions
    ]


def test_topics_are_deleted_by_name_or_by_id_and_answered_with_both() -> None:
    assert summary(decide_deletions(IMAGE, [TopicToDelete("a"), TopicToDelete(topic_id=B)])) == [
        ("a", A, ErrorCode.NONE),
        ("b", B, ErrorCode.NONE),
    ]


def test_topics_that_are_not_there() -> None:
    unknown = TopicId(UUID(int=77))
    assert summary(
        decide_deletions(IMAGE, [TopicToDelete("none"), TopicToDelete(""), TopicToDelete(topic_id=unknown)])
    ) == [
        ("none", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_a_topic_named_by_both_or_by_nothing_is_refused() -> None:
    assert summary(decide_deletions(IMAGE, [TopicToDelete("a", A), TopicToDelete(), TopicToDelete()])) == [
        ("a", A, ErrorCode.INVALID_REQUEST),
        (None, None, ErrorCode.INVALID_REQUEST),
        (None, None, ErrorCode.INVALID_REQUEST),
    ]


def test_a_topic_named_twice_in_whatever_way_is_refused_once() -> None:
    assert summary(decide_deletions(IMAGE, [TopicToDelete("a"), TopicToDelete("a")])) == [
        ("a", None, ErrorCode.INVALID_REQUEST)
    ]
    assert summary(decide_deletions(IMAGE, [TopicToDelete(topic_id=B), TopicToDelete(topic_id=B)])) == [
        (None, B, ErrorCode.INVALID_REQUEST)
    ]
    assert summary(decide_deletions(IMAGE, [TopicToDelete("a"), TopicToDelete(topic_id=A)])) == [
        ("a", A, ErrorCode.INVALID_REQUEST)
    ]
