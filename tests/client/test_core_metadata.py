"""Lookups in what the cluster has told, and what to ask where they fail; no cluster is near."""

from collections.abc import Callable
from typing import Any

import pytest

from riverlog.client.core.metadata import (
    AskCoordinator,
    AskTopics,
    ClusterMetadata,
    CoordinatorKind,
    Lookup,
    LookupLater,
    LookupRefused,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.wire.messages.find_coordinator import FindCoordinatorResponse
from riverlog.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ONE, TWO = Address("one", 1), Address("two", 2)


def reply(*topics: MetadataResponseTopic, brokers: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    addresses = {1: ONE, 2: TWO}
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each, host=addresses[each].host, port=addresses[each].port)
            for each in brokers
        ],
        topics=list(topics),
    )


def topic(name: str, *leaders: int, error: ErrorCode = ErrorCode.NONE) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=7, replica_nodes=[1])
        for index, leader in enumerate(leaders)
    ]
    return MetadataResponseTopic(name=name, error_code=error, partitions=partitions)


def found(metadata: ClusterMetadata, look: Callable[[], Lookup], answer: Any) -> Lookup:
    """The lookup, after one question that this answers."""
    asked = look()
    assert isinstance(asked, AskTopics | AskCoordinator)
    return metadata.learn(asked, answer) or look()


def test_a_leader_is_asked_for_once_and_then_known() -> None:
    metadata = ClusterMetadata()
    assert metadata.leader("t", 1) == AskTopics(("t",))
    assert [each.name for each in AskTopics(("t",)).request().topics or ()] == ["t"]
    assert found(metadata, lambda: metadata.leader("t", 1), reply(topic("t", 1, 2))) == TWO
    assert (metadata.leader("t", 0), metadata.leader_id("t", 1)) == (ONE, 2)
    metadata.forget()
    assert metadata.leader("t", 0) == AskTopics(("t",))
    assert metadata.brokers == {1: ONE, 2: TWO}, "somebody has to be asked"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (
            reply(topic("t", -1)),
            LookupLater("leader of partition 0 of topic t", ErrorCode.LEADER_NOT_AVAILABLE),
        ),
        (
            reply(topic("t", error=ErrorCode.LEADER_NOT_AVAILABLE)),
            LookupLater("leader of partition 0 of topic t", ErrorCode.LEADER_NOT_AVAILABLE),
        ),
        (
            reply(topic("t", 1), brokers=(2,)),
            LookupLater("broker 1", ErrorCode.BROKER_NOT_AVAILABLE),
        ),
        (
            reply(topic("t", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
            LookupRefused("topic t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ),
        (reply(), LookupRefused("topic t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)),
        (
            reply(topic("t")),
            LookupRefused("leader of partition 0 of topic t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ),
        (
            reply(topic("t", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)),
            LookupRefused("topic t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ),
    ],
    ids=["no leader", "no leader yet", "leader away", "no topic", "not told", "no partition", "not allowed"],
)
def test_a_leader_that_is_not_there_is_waited_for_or_refused(answer: Any, result: Lookup) -> None:
    metadata = ClusterMetadata()
    assert found(metadata, lambda: metadata.leader("t", 0), answer) == result
    metadata.forget()
    assert found(metadata, lambda: metadata.leader("t", 0), reply(topic("t", 1))) == ONE


def test_what_was_refused_is_asked_for_again() -> None:
    metadata = ClusterMetadata()
    assert isinstance(found(metadata, lambda: metadata.leader("t", 0), reply()), LookupRefused)
    assert metadata.leader("t", 0) == AskTopics(("t",))


def test_a_coordinator_is_asked_for_once_and_then_known() -> None:
    metadata = ClusterMetadata()
    group, transaction = CoordinatorKind.GROUP, CoordinatorKind.TRANSACTION
    answer = FindCoordinatorResponse(host="two", port=2)
    assert found(metadata, lambda: metadata.coordinator(group, "g"), answer) == TWO
    assert metadata.coordinator(group, "g") == TWO
    assert metadata.coordinator(transaction, "g") == AskCoordinator(transaction, "g")
    metadata.forget()
    assert metadata.coordinator(group, "g") == AskCoordinator(group, "g")


@pytest.mark.parametrize(
    ("code", "result"),
    [
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, LookupLater("coordinator of group g", 15)),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, LookupLater("coordinator of group g", 14)),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, LookupRefused("coordinator of group g", 30, "no")),
    ],
)
def test_a_coordinator_that_is_not_told_is_waited_for_or_refused(code: ErrorCode, result: Lookup) -> None:
    metadata = ClusterMetadata()
    answer = FindCoordinatorResponse(error_code=code, error_message="no")
    look = lambda: metadata.coordinator(CoordinatorKind.GROUP, "g")  # noqa: E731
    assert found(metadata, look, answer) == result


def test_topics_are_views_in_the_order_of_their_partitions() -> None:
    metadata = ClusterMetadata()
    told = topic("t", 1, 2)
    told.partitions.reverse()
    view = metadata.learn_topics(None, reply(told))["t"]
    assert list(view.partitions) == [0, 1]
    assert (view.partitions[1].leader, view.partitions[1].leader_epoch) == (2, 7)
    assert metadata.learn_topics(None, reply(topic("new", error=ErrorCode.of(9999))))["new"].error == -1
