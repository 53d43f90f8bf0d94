"""More partitions, and no topic at all: which requests pass, and how the others are refused."""

from uuid import UUID

import pytest

from riverlog.controller.decisions import DUPLICATE_NAME, Refusal
from riverlog.controller.deletion import Deletion, Doomed, decide_deletions
from riverlog.controller.growth import Growth, GrowthPlan, decide_growths
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId

ONE = (NodeId(1),)
PARTITION = PartitionImage(ONE, ONE, NodeId(1), 0, 0)
A, B = UUID(int=1), UUID(int=2)
IMAGE = ClusterImage(
    brokers={NodeId(1): BrokerImage(NodeId(1), {})},
    topics={"a": TopicImage("a", A, (PARTITION,)), "b": TopicImage("b", B, (PARTITION, PARTITION))},
    topic_names={A: "a", B: "b"},
)


def grow(*wanted: Growth) -> list[GrowthPlan | Refusal]:
    return decide_growths(IMAGE, wanted, start=lambda: 0)


def test_a_topic_grows_to_the_number_that_is_asked_for() -> None:
    assert grow(Growth("b", 5)) == [GrowthPlan("b", (ONE, ONE, ONE))]
    assert grow(Growth("b", 3, [[1]])) == [GrowthPlan("b", (ONE,))]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (Growth("b", 2), ErrorCode.INVALID_PARTITIONS),
        (Growth("b", 1), ErrorCode.INVALID_PARTITIONS),
        (Growth("b", -1), ErrorCode.INVALID_PARTITIONS),
        (Growth("b", 4, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Growth("b", 3, [[1], [1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Growth("b", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Growth("b", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Growth("b", 3, [[9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (Growth("b", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_growth_that_cannot_be(wanted: Growth, error: ErrorCode) -> None:
    [outcome] = grow(wanted)
    assert isinstance(outcome, Refusal)
    assert outcome.error == error
    assert outcome.message


def test_an_unknown_topic_is_refused_without_a_message() -> None:
    assert grow(Growth("none", 5)) == [Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)]


def test_a_request_adds_at_most_10000_partitions() -> None:
    overflow = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert isinstance(grow(Growth("a", 10_001))[0], GrowthPlan)
    assert grow(Growth("a", 10_002)) == [overflow]
    assert grow(Growth("a", 2**31 - 1)) == [overflow]
    first, second = grow(Growth("a", 6000), Growth("b", 6000))
    assert isinstance(first, GrowthPlan)
    assert second == overflow


def test_a_name_that_occurs_twice_is_refused() -> None:
    outcomes = grow(Growth("a", 2), Growth("b", 3), Growth("a", 3))
    assert outcomes[0] is DUPLICATE_NAME
    assert isinstance(outcomes[1], GrowthPlan)
    assert outcomes[2] is DUPLICATE_NAME


def summary(deletions: list[Deletion]) -> list[tuple[str | None, UUID | None, ErrorCode]]:
    return [
        (each.name, each.topic_id, each.refusal.error if each.refusal else ErrorCode.NONE)
        for each in deletions
    ]


def test_topics_are_deleted_by_name_or_by_id_and_answered_with_both() -> None:
    assert summary(decide_deletions(IMAGE, [Doomed("a"), Doomed(topic_id=B)])) == [
        ("a", A, ErrorCode.NONE),
        ("b", B, ErrorCode.NONE),
    ]


def test_topics_that_are_not_there() -> None:
    unknown = UUID(int=77)
    assert summary(decide_deletions(IMAGE, [Doomed("none"), Doomed(""), Doomed(topic_id=unknown)])) == [
        ("none", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_a_topic_named_by_both_or_by_nothing_is_refused() -> None:
    assert summary(decide_deletions(IMAGE, [Doomed("a", A), Doomed(), Doomed()])) == [
        ("a", A, ErrorCode.INVALID_REQUEST),
        (None, None, ErrorCode.INVALID_REQUEST),
        (None, None, ErrorCode.INVALID_REQUEST),
    ]


def test_a_topic_named_twice_in_whatever_way_is_refused_once() -> None:
    assert summary(decide_deletions(IMAGE, [Doomed("a"), Doomed("a")])) == [
        ("a", None, ErrorCode.INVALID_REQUEST)
    ]
    assert summary(decide_deletions(IMAGE, [Doomed(topic_id=B), Doomed(topic_id=B)])) == [
        (None, B, ErrorCode.INVALID_REQUEST)
    ]
    assert summary(decide_deletions(IMAGE, [Doomed("a"), Doomed(topic_id=A)])) == [
        ("a", A, ErrorCode.INVALID_REQUEST)
    ]
