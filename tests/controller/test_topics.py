"""Which topics may be created, and how the refusals are ranked. The codes are Apache Kafka 4.3.1's."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.controller.decisions.names import TakenNames
from riverlog.controller.decisions.refusals import DUPLICATE_NAME, Refusal
from riverlog.controller.decisions.topics import NewTopic, TopicPlan, TopicRules, decide_creations
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId

ONE = (NodeId(1),)
EXISTING = TopicImage(
    "there.is", TopicId(UUID(int=1)), (PartitionImage(ONE, ONE, NodeId(1), LeaderEpoch(0), 0),)
)
IMAGE = ClusterImage(
    brokers={NodeId(1): BrokerImage(NodeId(1), {})},
    topics={"there.is": EXISTING},
    topic_names={EXISTING.topic_id: "there.is"},
)


def refuse_nope(configs: object) -> str | None:
    return "no such setting" if "nope" in str(configs) else None


RULES = TopicRules(partitions=3, replication_factor=1, config_problem=refuse_nope)


def decide(*wanted: NewTopic) -> list[TopicPlan | Refusal]:
    return decide_creations(IMAGE, wanted, RULES, new_id=lambda: UUID(int=9), start=lambda: 0)


def error_of(wanted: NewTopic) -> ErrorCode:
    [outcome] = decide(wanted)
    assert isinstance(outcome, Refusal), outcome
    assert outcome.message
    return outcome.error


def plan_of(wanted: NewTopic) -> TopicPlan:
    [outcome] = decide(wanted)
    assert isinstance(outcome, TopicPlan), outcome
    return outcome


def test_what_the_request_leaves_open_is_the_brokers_default() -> None:
    assert plan_of(NewTopic("t")).replicas == (ONE, ONE, ONE)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "a\x00", "x" * 250])
def test_names_that_no_topic_can_have(name: str) -> None:
    assert error_of(NewTopic(name)) == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["x" * 249, "a.b_c-D9", "...", "__consumer_offsets", "-"])
def test_names_that_a_topic_can_have(name: str) -> None:
    assert plan_of(NewTopic(name)).name == name


def test_a_name_that_differs_only_in_dots_and_underscores_is_refused() -> None:
    assert error_of(NewTopic("there_is")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert isinstance(decide(NewTopic("a.b"), NewTopic("a_b"))[1], TopicPlan), "within one request they pass"


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (NewTopic("t", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 0, 5), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("there.is", 0, 5), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("there.is", configs={"nope": "1"}), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("there_is", configs={"nope": "1"}), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("t", 0, configs={"nope": "1"}), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (NewTopic("a b", 0, 5), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_only_the_first_problem_is_told(wanted: NewTopic, error: ErrorCode) -> None:
    assert error_of(wanted) == error


@pytest.mark.parametrize(
    ("assignments", "error"),
    [
        ([(0, [9])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [-1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1, 1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1]), (0, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(0, [1]), (2, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(1, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([(-1, [1])], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_assignments_that_cannot_be(assignments: list[tuple[int, list[int]]], error: ErrorCode) -> None:
    assert error_of(NewTopic("t", assignments=assignments)) == error


def test_assignments_come_in_any_order_and_exclude_counts() -> None:
    assert plan_of(NewTopic("t", assignments=[(1, [1]), (0, [1])])).replicas == (ONE, ONE)
    assert error_of(NewTopic("t", 2, assignments=[(0, [1]), (1, [1])])) == ErrorCode.INVALID_REQUEST
    assert error_of(NewTopic("t", None, 1, assignments=[(0, [1])])) == ErrorCode.INVALID_REQUEST


def test_every_partition_has_as_many_replicas_as_the_first() -> None:
    image = ClusterImage(brokers={NodeId(n): BrokerImage(NodeId(n), {}) for n in (1, 2)})
    wanted = NewTopic("t", assignments=[(0, [1, 2]), (1, [1])])
    [outcome] = decide_creations(image, [wanted], RULES, new_id=lambda: UUID(int=9), start=lambda: 0)
    assert isinstance(outcome, Refusal)
    assert outcome.error == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_name_that_occurs_twice_is_refused_and_the_others_pass() -> None:
    outcomes = decide(NewTopic("a"), NewTopic("b"), NewTopic("a"))
    assert outcomes[0] is DUPLICATE_NAME
    assert isinstance(outcomes[1], TopicPlan)
    assert outcomes[2] is DUPLICATE_NAME


def policy_violations(*wanted: NewTopic) -> list[bool]:
    return [
        isinstance(outcome, Refusal) and outcome.error == ErrorCode.POLICY_VIOLATION
        for outcome in decide(*wanted)
    ]


def test_more_than_10000_partitions_in_a_request_refuse_all_of_it() -> None:
    assert policy_violations(NewTopic("a", 10_001), NewTopic("a b")) == [True, True]
    assert policy_violations(NewTopic("a", 6000), NewTopic("b", 6000)) == [True, True]
    assert policy_violations(NewTopic("there.is", 5000), NewTopic("b", 5001)) == [True, True]


def test_topics_settings_and_partitions_together_are_at_most_10000() -> None:
    assert policy_violations(NewTopic("a", 9999)) == [False]
    assert policy_violations(NewTopic("a", 10_000)) == [True]
    assert policy_violations(NewTopic("a", 9998, configs={"x": "1"})) == [False]
    assert policy_violations(NewTopic("a", 9999, configs={"x": "1"})) == [True]
    assert policy_violations(NewTopic("a", 5000), NewTopic("b", 4998)) == [False, False]
    assert policy_violations(NewTopic("a", 5000), NewTopic("b", 4999)) == [True, True]


@given(st.text(alphabet="ab._-", min_size=1, max_size=6), st.text(alphabet="ab._-", min_size=1, max_size=6))
def test_collisions_are_symmetric(one: str, other: str) -> None:
    assert (TakenNames([other]).colliding(one) is None) == (TakenNames([one]).colliding(other) is None)
    assert TakenNames([one]).colliding(one) is None
