"""The admin calls of confluent-kafka."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.clients.confluent import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ConfluentKafka,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.conformance.clients.interface import Message
from tests.waiting import eventually

UNKNOWN_TOPIC, TOPIC_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG, OFFSET_OUT_OF_RANGE = 3, 36, 37, 40, 1


def only(futures: dict[Any, Any]) -> Any:
    [future] = futures.values()
    return future.result(20)


def code_of(futures: dict[Any, Any]) -> int:
    with pytest.raises(KafkaException) as raised:
        only(futures)
    code: int = raised.value.args[0].code()
    return code


def configs(admin: AdminClient, topic: str) -> dict[str, Any]:
    entries: dict[str, Any] = only(admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]))
    return entries


@pytest.fixture
def name(admin: AdminClient) -> Iterator[str]:
    name = f"conformance-{uuid.uuid4().hex[:12]}"
    yield name
    for future in admin.delete_topics([name]).values():
        future.exception(20)


def test_a_topic_is_created_described_and_deleted(admin: AdminClient, name: str) -> None:
    settings = {"retention.ms": "123456"}
    only(admin.create_topics([NewTopic(name, 3, 1, config=settings)]))
    eventually(lambda: name in admin.list_topics(timeout=20).topics)
    description = only(admin.describe_topics(TopicCollection([name])))
    assert description.name == name
    assert not description.is_internal
    assert [partition.id for partition in description.partitions] == [0, 1, 2]
    assert all(partition.leader.id == partition.isr[0].id for partition in description.partitions)
    assert configs(admin, name)["retention.ms"].value == "123456"
    only(admin.delete_topics([name]))
    eventually(lambda: name not in admin.list_topics(timeout=20).topics)
    assert code_of(admin.describe_topics(TopicCollection([name]))) == UNKNOWN_TOPIC


def test_a_topic_cannot_be_created_twice(admin: AdminClient, topic: str) -> None:
    assert code_of(admin.create_topics([NewTopic(topic, 1, 1)])) == TOPIC_EXISTS


def test_a_topic_is_not_created_by_a_dry_run(admin: AdminClient, name: str) -> None:
    only(admin.create_topics([NewTopic(name, 3, 1)], validate_only=True))
    assert name not in admin.list_topics(timeout=20).topics


def test_a_topic_with_a_bad_config_is_not_created(admin: AdminClient, name: str) -> None:
    wrong = NewTopic(name, 1, 1, config={"retention.ms": "soon"})
    assert code_of(admin.create_topics([wrong])) == INVALID_CONFIG
    assert name not in admin.list_topics(timeout=20).topics


def test_a_topic_that_does_not_exist_cannot_be_deleted(admin: AdminClient, name: str) -> None:
    assert code_of(admin.delete_topics([name])) == UNKNOWN_TOPIC


def test_partitions_are_added_and_never_taken_away(admin: AdminClient, topic: str) -> None:
    only(admin.create_partitions([NewPartitions(topic, 4)]))
    eventually(lambda: len(admin.list_topics(topic, timeout=20).topics[topic].partitions) == 4)
    assert code_of(admin.create_partitions([NewPartitions(topic, 2)])) == INVALID_PARTITIONS


def test_configs_are_altered_one_by_one(admin: AdminClient, topic: str) -> None:
    def change(key: str, value: str | None, operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(key, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        only(admin.incremental_alter_configs([resource]))

    change("delete.retention.ms", "5000000", AlterConfigOpType.SET)
    change("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    eventually(lambda: configs(admin, topic)["cleanup.policy"].value == "delete,compact")
    entries = configs(admin, topic)
    assert entries["delete.retention.ms"].value == "5000000"
    assert entries["delete.retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    change("delete.retention.ms", None, AlterConfigOpType.DELETE)
    change("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    eventually(lambda: configs(admin, topic)["cleanup.policy"].value == "compact")
    entries = configs(admin, topic)
    assert entries["delete.retention.ms"].value == "86400000"
    assert entries["delete.retention.ms"].is_default


def test_configs_are_altered_all_at_once(admin: AdminClient, topic: str) -> None:
    for settings in ({"delete.retention.ms": "1000", "segment.ms": "20000"}, {"segment.ms": "30000"}):
        resource = ConfigResource(ResourceType.TOPIC, topic, set_config=settings)
        with pytest.warns(DeprecationWarning, match="alter_configs"):
            only(admin.alter_configs([resource]))
    eventually(lambda: configs(admin, topic)["segment.ms"].value == "30000")
    assert configs(admin, topic)["delete.retention.ms"].value == "86400000"


@pytest.mark.parametrize(("key", "value"), [("retention.ms", "soon"), ("no.such.key", "1")])
def test_a_bad_config_is_refused(admin: AdminClient, topic: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    assert code_of(admin.incremental_alter_configs([resource])) == INVALID_CONFIG


def test_a_brokers_configs_can_be_read(admin: AdminClient) -> None:
    broker = next(iter(admin.list_topics(timeout=20).brokers))
    entries = only(admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))]))
    assert entries["log.segment.bytes"].value == "1073741824"
    assert entries["socket.request.max.bytes"].is_read_only
    assert entries["log.retention.hours"].is_default


def test_records_are_deleted_up_to_an_offset(admin: AdminClient, topic: str, bootstrap: str) -> None:
    client = ConfluentKafka(bootstrap)
    client.produce(topic, [Message(b"%d" % number) for number in range(10)])
    deleted = only(admin.delete_records([TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    assert client.watermarks(topic) == (4, 10)
    assert [record.offset for record in client.consume(topic, 6)] == [4, 5, 6, 7, 8, 9]
    assert code_of(admin.delete_records([TopicPartition(topic, 0, 11)])) == OFFSET_OUT_OF_RANGE


def test_offsets_are_listed_by_kind(admin: AdminClient, topic: str, bootstrap: str) -> None:
    times_ms = [1_600_000_005_000, 1_600_000_009_000, 1_600_000_007_000]
    client = ConfluentKafka(bootstrap)
    client.produce(topic, [Message(b"x", timestamp_ms=at) for at in times_ms])

    def listed(spec: Any) -> tuple[int, int]:
        asked = {TopicPartition(topic, 0): spec}
        found = only(admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED))
        return found.offset, found.timestamp

    assert listed(OffsetSpec.earliest()) == (0, -1)
    assert listed(OffsetSpec.latest()) == (3, -1)
    assert listed(OffsetSpec.max_timestamp()) == (1, 1_600_000_009_000)
    assert listed(OffsetSpec.for_timestamp(1_600_000_006_000)) == (1, 1_600_000_009_000)
    assert listed(OffsetSpec.for_timestamp(1_600_000_009_001)) == (-1, -1)


def test_the_cluster_describes_itself(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(20)
    assert cluster.cluster_id
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]
    assert cluster.controller.id == cluster.nodes[0].id
    assert len(cluster.authorized_operations) == 7
