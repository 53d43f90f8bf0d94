"""The admin calls of kafka-python."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.clients.interface import Message, ProducerOptions
from tests.conformance.clients.kafka_python import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    KafkaError,
    KafkaPython,
    OffsetSpec,
    TopicPartition,
)
from tests.waiting import eventually

UNKNOWN_TOPIC, TOPIC_EXISTS, INVALID_PARTITIONS, OFFSET_OUT_OF_RANGE = 3, 36, 37, 1


@pytest.fixture(scope="module")
def kafka_admin(bootstrap: str) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def name(kafka_admin: Any) -> Iterator[str]:
    name = f"conformance-{uuid.uuid4().hex[:12]}"
    yield name
    kafka_admin.delete_topics([name], raise_errors=False)


def configs(admin: Any, topic: str, config_filter: str = "all") -> dict[str, Any]:
    answer = admin.describe_configs(
        [ConfigResource(ConfigResourceType.TOPIC, topic)], config_filter=config_filter, include_synonyms=True
    )
    entries: dict[str, Any] = answer["topic"][topic]
    return entries


def test_a_topic_is_created_described_and_deleted(kafka_admin: Any, name: str) -> None:
    wanted = {name: {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "123456"}}}
    [created] = kafka_admin.create_topics(wanted, wait_for_metadata=True)["topics"]
    assert (created["num_partitions"], created["replication_factor"]) == (3, 1)
    assert created["configs"]["retention.ms"]["value"] == "123456"
    assert created["configs"]["segment.bytes"]["config_source"] == "DEFAULT_CONFIG"
    [described] = kafka_admin.describe_topics([name])
    assert described["topic_id"] == created["topic_id"]
    assert sorted(partition["partition_index"] for partition in described["partitions"]) == [0, 1, 2]
    assert name in kafka_admin.list_topics()
    kafka_admin.delete_topics([name])
    eventually(lambda: name not in kafka_admin.list_topics())


def test_a_topic_is_deleted_by_its_id(kafka_admin: Any, name: str) -> None:
    [created] = kafka_admin.create_topics([name])["topics"]
    assert created["num_partitions"] == 1
    kafka_admin.delete_topics([uuid.UUID(created["topic_id"])])
    eventually(lambda: name not in kafka_admin.list_topics())


def test_errors_come_as_kafkas_codes(kafka_admin: Any, topic: str, name: str) -> None:
    calls: list[tuple[Callable[[], object], int]] = [
        (lambda: kafka_admin.create_topics([topic]), TOPIC_EXISTS),
        (lambda: kafka_admin.delete_topics([name]), UNKNOWN_TOPIC),
        (lambda: kafka_admin.create_partitions({topic: 1}), INVALID_PARTITIONS),
        (lambda: kafka_admin.delete_records({TopicPartition(topic, 0): 10}), OFFSET_OUT_OF_RANGE),
    ]
    for call, code in calls:
        with pytest.raises(KafkaError) as raised:
            call()
        assert raised.value.errno == code


def test_a_dry_run_creates_neither_topic_nor_partition(kafka_admin: Any, topic: str, name: str) -> None:
    kafka_admin.create_topics([name], validate_only=True)
    assert name not in kafka_admin.list_topics()
    kafka_admin.create_partitions({topic: 5}, validate_only=True)
    [described] = kafka_admin.describe_topics([topic])
    assert len(described["partitions"]) == 1


def test_partitions_are_added(kafka_admin: Any, topic: str) -> None:
    kafka_admin.create_partitions({topic: 4})

    def indices() -> list[int]:
        [described] = kafka_admin.describe_topic_partitions([topic])["topics"]
        return [partition["partition_index"] for partition in described["partitions"]]

    eventually(lambda: indices() == [0, 1, 2, 3])


@pytest.mark.parametrize("incremental", [True, False])
def test_configs_are_altered(kafka_admin: Any, topic: str, incremental: bool) -> None:
    change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"delete.retention.ms": "5000"})
    assert kafka_admin.alter_configs([change], incremental=incremental) == {"topic": {topic: "OK"}}
    eventually(lambda: "delete.retention.ms" in configs(kafka_admin, topic, "modified"))
    entry = configs(kafka_admin, topic, "modified")["delete.retention.ms"]
    assert (entry["value"], entry["config_source"], entry["config_type"]) == (
        "5000",
        "DYNAMIC_TOPIC_CONFIG",
        "LONG",
    )
    assert entry["synonyms"][0]["name"] == "delete.retention.ms"
    reset = ConfigResource(ConfigResourceType.TOPIC, topic, configs=["delete.retention.ms"])
    kafka_admin.reset_configs([reset])
    eventually(lambda: configs(kafka_admin, topic)["delete.retention.ms"]["value"] == "86400000")


def test_list_configs_are_appended_to_and_taken_from(kafka_admin: Any, topic: str) -> None:
    for operation, policy in (("APPEND", "compact"), ("SUBTRACT", "delete")):
        change = ConfigResource(
            ConfigResourceType.TOPIC, topic, configs={"cleanup.policy": (operation, policy)}
        )
        kafka_admin.alter_configs([change])
    eventually(lambda: configs(kafka_admin, topic)["cleanup.policy"]["value"] == "compact")


def test_a_bad_config_is_refused(kafka_admin: Any, topic: str) -> None:
    change = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "soon"})
    assert "[Error 40]" in kafka_admin.alter_configs([change])["topic"][topic]


def test_records_are_deleted_and_offsets_listed(kafka_admin: Any, topic: str, bootstrap: str) -> None:
    times_ms = [1_600_000_005_000, 1_600_000_009_000, 1_600_000_007_000]
    KafkaPython(bootstrap).produce(topic, [Message(b"x", timestamp_ms=at) for at in times_ms])
    place = TopicPartition(topic, 0)
    assert kafka_admin.delete_records({place: 1})[place]["low_watermark"] == 1
    for spec, offset in (
        (OffsetSpec.EARLIEST, 1),
        (OffsetSpec.LATEST, 3),
        (OffsetSpec.MAX_TIMESTAMP, 1),
        (1_600_000_009_001, -1),
    ):
        assert kafka_admin.list_partition_offsets({place: spec})[place].offset == offset


def test_the_size_of_partitions_on_disk_is_told(kafka_admin: Any, topic: str, bootstrap: str) -> None:
    KafkaPython(bootstrap).produce(topic, [Message(bytes(50_000))], ProducerOptions())
    [broker] = kafka_admin.describe_log_dirs([topic])
    [directory] = broker["log_dirs"]
    assert directory["error_code"] == 0
    assert 0 < directory["usable_bytes"] < directory["total_bytes"]
    [described] = directory["topics"]
    [partition] = described["partitions"]
    assert described["name"] == topic
    assert 50_000 < partition["partition_size"] < 51_000
    assert (partition["offset_lag"], partition["is_future_key"]) == (0, False)


def test_the_cluster_describes_itself(kafka_admin: Any, bootstrap: str) -> None:
    cluster = kafka_admin.describe_cluster()
    [broker] = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller_id"] == broker["broker_id"]
    assert cluster["cluster_id"]


def test_a_brokers_configs_can_be_read(kafka_admin: Any) -> None:
    [broker] = kafka_admin.describe_cluster()["brokers"]
    resource = ConfigResource(ConfigResourceType.BROKER, str(broker["broker_id"]))
    answer = kafka_admin.describe_configs([resource], config_filter="all")
    entries = answer["broker"][str(broker["broker_id"])]
    assert entries["log.segment.bytes"]["value"] == "1073741824"
    assert entries["offsets.topic.num.partitions"]["read_only"]
