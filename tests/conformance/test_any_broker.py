"""Real clients that know only a broker of three which is not the controller do what they always do, with
topics of three replicas."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from riverlog.testing import Cluster
from tests.conformance.clients.confluent import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfluentKafka,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from tests.conformance.clients.group_members import AioMember, ConfluentMember, GroupMember, KafkaPythonMember
from tests.conformance.clients.interface import Message, ProducerOptions
from tests.conformance.clients.kafka_python import KafkaAdminClient
from tests.conformance.conftest import CLIENTS
from tests.waiting import eventually

_PARTITIONS = 3
_MEMBERS: dict[str, type[GroupMember]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "aiokafka": AioMember,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


@pytest.fixture(scope="module")
def other(cluster: Cluster) -> str:
    """The address of a broker that is not the controller."""
    told = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=20)
    broker = next(each for each in told.brokers.values() if each.id != told.controller_id)
    return f"{broker.host}:{broker.port}"


@pytest.fixture
def topic(other: str) -> str:
    name = f"any-{uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": other})
    admin.create_topics([NewTopic(name, _PARTITIONS, 3)])[name].result(20)
    eventually(lambda: name in admin.list_topics(timeout=20).topics)
    return name


@pytest.mark.parametrize("kind", CLIENTS)
def test_every_client_writes_and_reads_partitions_of_all_brokers(kind: str, other: str, topic: str) -> None:
    client = CLIENTS[kind](other)  # type: ignore[call-arg]
    for partition in range(_PARTITIONS):
        messages = [Message(b"%d of %d" % (number, partition)) for number in range(5)]
        client.produce(topic, messages, ProducerOptions(), partition=partition)
        assert [each.content for each in client.consume(topic, 5, partition=partition)] == messages
        assert client.watermarks(topic, partition) == (0, 5)


@pytest.mark.parametrize("kind", _MEMBERS)
def test_groups_find_their_coordinator(kind: str, other: str, topic: str) -> None:
    client = ConfluentKafka(other)
    for partition in range(_PARTITIONS):
        client.produce(topic, [Message(b"%d" % partition)], partition=partition)
    member = _MEMBERS[kind](other, f"group-{uuid4().hex[:12]}", topic)
    try:
        read: list[bytes] = []

        def are_read() -> bool:
            read.extend(member.poll())
            return len(read) == _PARTITIONS

        eventually(are_read, timeout_s=40)
        assert sorted(read) == [b"0", b"1", b"2"]
        member.commit()
    finally:
        member.close()


def test_librdkafkas_administration_works_at_any_broker(other: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": other})
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(20)
    eventually(lambda: len(admin.list_topics(topic, timeout=20).topics[topic].partitions) == 5)
    entry = ConfigEntry("retention.ms", "4242", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    [altered] = admin.incremental_alter_configs([resource]).values()
    altered.result(20)
    eventually(lambda: _retention(admin, topic) == "4242")
    admin.delete_topics([topic])[topic].result(20)
    eventually(lambda: topic not in admin.list_topics(timeout=20).topics)


def _retention(admin: AdminClient, topic: str) -> str | None:
    [described] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    value: str | None = described.result(20)["retention.ms"].value
    return value


def test_kafka_pythons_administration_finds_the_controller(other: str, cluster: Cluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=other)
    try:
        told = admin.describe_cluster()
        assert sorted(each["broker_id"] for each in told["brokers"]) == sorted(
            AdminClient({"bootstrap.servers": other}).list_topics(timeout=20).brokers
        )
        assert told["controller_id"] == cluster.controller
    finally:
        admin.close()
