"""kafka-python's calls for the cluster as a whole: leaders, replicas, features, resources, ACLs."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.clients.kafka_python import (
    ANY_ACL,
    KafkaAdminClient,
    KafkaError,
    TopicPartition,
)
from tests.conformance.conftest import MakeTopic

UNCLEAN = 1
ELECTION_NOT_NEEDED = 84


@pytest.fixture(scope="module")
def kafka_admin(bootstrap: str) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture(scope="module")
def node_id(kafka_admin: Any) -> int:
    number: int = kafka_admin.describe_cluster()["brokers"][0]["broker_id"]
    return number


@pytest.mark.parametrize("kind", [0, UNCLEAN])
def test_no_election_is_needed(kafka_admin: Any, make_topic: MakeTopic, kind: int) -> None:
    topic = make_topic(2)
    answer = kafka_admin.elect_leaders(kind, {topic: [0, 1]}, raise_errors=False)
    [elected] = answer.replica_election_results
    assert [each.error_code for each in elected.partition_result] == [ELECTION_NOT_NEEDED] * 2


def test_partitions_are_reassigned_only_to_where_they_are(
    kafka_admin: Any, make_topic: MakeTopic, node_id: int
) -> None:
    here = TopicPartition(make_topic(), 0)
    assert kafka_admin.alter_partition_reassignments({here: [node_id]}) == {here: None}
    assert kafka_admin.list_partition_reassignments() == {}
    refused = kafka_admin.alter_partition_reassignments({here: [node_id + 1000]})[here]
    assert refused.__name__ == "InvalidReplicationAssignmentError"
    called_off = kafka_admin.alter_partition_reassignments({here: None})[here]
    assert called_off.__name__ == "NoReassignmentInProgressError"


def test_a_replica_is_placed_where_it_is_and_nowhere_else(
    kafka_admin: Any, make_topic: MakeTopic, node_id: int
) -> None:
    topic = make_topic()
    [described] = kafka_admin.describe_log_dirs()
    path = described["log_dirs"][0]["log_dir"]
    outcomes = [
        [error.__name__ for error in kafka_admin.alter_replica_log_dirs({(topic, 0, node_id): at}).values()]
        for at in (path, "/nowhere/at/all")
    ]
    assert outcomes == [["NoError"], ["LogDirNotFoundError"]]


def test_features_are_told_and_stay(kafka_admin: Any) -> None:
    features = kafka_admin.describe_features()
    assert features["transaction.version"]["finalized"] == (2, 2)
    assert features["group.version"]["finalized"] == (1, 1)
    assert kafka_admin.update_features({"transaction.version": 2}) == {"transaction.version": "OK"}
    for unknown in ({"transaction.version": 3}, {"no.such.feature": 1}):
        with pytest.raises(KafkaError, match="InvalidUpdateVersion"):
            kafka_admin.update_features(unknown, validate_only=True)


def test_resources_with_settings_are_listed(kafka_admin: Any, make_topic: MakeTopic, node_id: int) -> None:
    topic = make_topic()
    listed = kafka_admin.list_config_resources(["TOPIC", "BROKER"])
    assert topic in listed["topic"]
    assert listed["broker"] == [str(node_id)]


def test_there_are_no_acls_without_an_authorizer(kafka_admin: Any) -> None:
    with pytest.raises(KafkaError, match="SecurityDisabled"):
        kafka_admin.describe_acls(ANY_ACL)
