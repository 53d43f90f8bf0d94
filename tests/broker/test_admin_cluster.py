"""Elections, reassignments, log directories and ACLs of a cluster of one, asked by clients.

What Kafka answers to each request is in the differential tests; here is what they cannot ask.
"""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
)
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest
from riverlog.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.broker.raw_client import RawClient


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("led", 2)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def test_what_does_not_exist_here_is_not_advertised(client: RawClient) -> None:
    """So that clients do not try: KRaft's quorum, and as in Kafka, telemetry that nobody receives."""
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    advertised = {each.api_key for each in client.ask(ApiKey.API_VERSIONS, 4, request).api_keys}
    assert advertised.isdisjoint(
        {
            ApiKey.DESCRIBE_QUORUM,
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            ApiKey.PUSH_TELEMETRY,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            ApiKey.ALTER_CLIENT_QUOTAS,
        }
    )


def test_a_client_that_would_push_its_metrics_does_not_complain(broker: Broker) -> None:
    complaints: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            complaints.append(record.getMessage())

    logger = logging.Logger("client")
    logger.addHandler(Listener())
    settings = {"bootstrap.servers": broker.bootstrap_servers, "enable.metrics.push": True}
    producer = Producer(settings, logger=logger)
    producer.produce("led", b"value")
    assert producer.flush(10) == 0
    producer.poll(0)
    assert complaints == []


@pytest.mark.parametrize("kind", [0, 1])
def test_an_election_of_all_leaders_changes_none(client: RawClient, kind: int) -> None:
    request = ElectLeadersRequest(election_type=kind, topic_partitions=None)
    reply = client.ask(ApiKey.ELECT_LEADERS, 2, request)
    assert reply.error_code == ErrorCode.NONE
    assert [(each.topic, each.partition_result) for each in reply.replica_election_results] == [("led", [])]


@pytest.mark.parametrize("kind", [ElectionType.PREFERRED, ElectionType.UNCLEAN])
def test_confluent_is_told_that_no_election_is_needed(admin: AdminClient, kind: ElectionType) -> None:
    partitions = [TopicPartition("led", 0), TopicPartition("led", 7)]
    outcome = admin.elect_leaders(kind, partitions).result(10)
    errors = {each.partition: error.name() for each, error in outcome.items()}
    assert errors == {0: "ELECTION_NOT_NEEDED", 7: "UNKNOWN_TOPIC_OR_PART"}


def test_all_kinds_of_resources_are_listed_when_none_is_named(client: RawClient, broker: Broker) -> None:
    reply = client.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest())
    node_id = str(broker.node.config.node_id)
    found = {(each.resource_type, each.resource_name) for each in reply.config_resources}
    assert found == {(2, "led"), (4, node_id), (8, node_id)}


def test_confluent_is_told_that_there_are_no_acls(admin: AdminClient) -> None:
    """Its `describe_acls` shows an empty list instead of the error, on Kafka as well."""
    acl = AclBinding(
        ResourceType.TOPIC,
        "led",
        ResourcePatternType.LITERAL,
        "User:somebody",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    only = AclBindingFilter(
        ResourceType.TOPIC,
        "led",
        ResourcePatternType.LITERAL,
        "User:somebody",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    for future in (admin.create_acls([acl])[acl], admin.delete_acls([only])[only]):
        with pytest.raises(KafkaException) as refusal:
            future.result(10)
        assert refusal.value.args[0].name() == "SECURITY_DISABLED"


def _place(client: RawClient, topic: str, index: int, path: str) -> int:
    wanted = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])])
    reply = client.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest(dirs=[wanted]))
    error: int = reply.results[0].partitions[0].error_code
    return error


def _places(client: RawClient) -> dict[int, str]:
    reply = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    return {
        partition.partition_index: directory.log_dir
        for directory in reply.results
        for topic in directory.topics
        for partition in topic.partitions
    }


def test_a_partition_begins_in_the_directory_that_is_asked_for(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with Broker({"log.dirs": f"{first},{second}"}) as broker, RawClient(broker) as client:
        broker.create_topic("placed", 3)
        for index in range(3):
            assert _place(client, "placed", index, second) == ErrorCode.NONE
        assert _places(client) == dict.fromkeys(range(3), second)
        for index in range(3):
            assert client.produce("placed", partition=index).error_code == ErrorCode.NONE
        assert _place(client, "placed", 0, second) == ErrorCode.NONE
        broker.restart()
        with RawClient(broker) as again:
            assert _places(again) == dict.fromkeys(range(3), second)
            assert again.fetch("placed", 0).records
