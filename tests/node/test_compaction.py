"""Compaction in a running broker, as its clients see it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from riverlog.testing import Broker
from tests.conformance.clients.confluent import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.node.faulty_disk import FaultyDisk
from tests.node.log_files import bytes_of_logs
from tests.waiting import eventually

SETTINGS = {"log.cleaner.backoff.ms": 50, "group.initial.rebalance.delay.ms": 0}
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": 20_000,
    "min.cleanable.dirty.ratio": 0.01,
}
KEYS = 20
ROUNDS = 60


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker(SETTINGS, data_dir=str(tmp_path / "data")) as running:
        yield running


def produce(
    broker: Broker,
    topic: str,
    *,
    rounds: int = ROUNDS,
    start: int = 0,
    compression: str = "none",
    with_unique: bool = False,
) -> None:
    """`with_unique` ends each round with a record of a key of its own, which no cleaning may remove."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "linger.ms": 0,
            "compression.type": compression,
            "enable.idempotence": True,
        }
    )
    for number in range(start, start + rounds):
        for key in range(KEYS):
            producer.produce(topic, key=f"key-{key}", value=f"value-{number}-" + "x" * 100)
        if with_unique:
            producer.produce(topic, key=f"only-{number}", value="x" * 100)
        producer.flush()


def consume(broker: Broker, topic: str, **config: object) -> list[tuple[int, bytes, bytes | None]]:
    """Everything that is in the topic's only partition now."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "unused",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            **config,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: list[tuple[int, bytes, bytes | None]] = []
        while True:
            message = consumer.poll(10)
            assert message is not None, "the end of the partition was not reported"
            if message.error() is not None:
                return found
            offset, key = message.offset(), message.key()
            assert offset is not None
            assert isinstance(key, bytes)
            value = message.value()
            assert value is None or isinstance(value, bytes)
            found.append((offset, key, value))
    finally:
        consumer.close()


def size_of(broker: Broker, topic: str) -> int:
    directory = Path(broker.data_dir, f"{topic}-0")
    return bytes_of_logs(directory)


def newest(rounds: int) -> Mapping[bytes, bytes]:
    return {b"key-%d" % key: b"value-%d-" % (rounds - 1) + b"x" * 100 for key in range(KEYS)}


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_consumer_sees_the_latest_of_each_key_and_the_log_shrinks(broker: Broker, compression: str) -> None:
    broker.create_topic("table", config={**COMPACTED, "internal.segment.bytes": 3000})
    produce(broker, "table", compression=compression)
    sent = KEYS * ROUNDS
    eventually(lambda: len(consume(broker, "table")) < sent // 2, "the log was not cleaned")
    found = consume(broker, "table")
    assert {key: value for _, key, value in found} == newest(ROUNDS)
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets))
    assert all(value is not None and value.startswith(b"value-%d-" % (o // KEYS)) for o, _, value in found)
    assert (Path(broker.data_dir) / "cleaner-offset-checkpoint").exists()
    broker.kill()
    broker.restart()
    assert consume(broker, "table")[-KEYS:] == found[-KEYS:]
    produce(broker, "table", rounds=1, start=ROUNDS)
    assert {key: value for _, key, value in consume(broker, "table")} == newest(ROUNDS + 1)


def test_a_change_of_the_cleanup_policy_takes_effect(broker: Broker) -> None:
    broker.create_topic("later", config={**COMPACTED, "cleanup.policy": "delete"})
    produce(broker, "later")
    assert len(consume(broker, "later")) == KEYS * ROUNDS
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    policy = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "later", incremental_configs=[policy])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    eventually(lambda: len(consume(broker, "later")) < KEYS * ROUNDS // 2, "the log was not cleaned")
    assert {key: value for _, key, value in consume(broker, "later")} == newest(ROUNDS)


def test_transactional_records_are_compacted_and_aborted_ones_never_seen(broker: Broker) -> None:
    broker.create_topic("ledger", config=COMPACTED)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "writer"})
    producer.init_transactions()
    for number in range(ROUNDS):
        producer.begin_transaction()
        for key in range(KEYS):
            producer.produce("ledger", key=f"key-{key}", value=f"value-{number}-" + "x" * 100)
        producer.flush()
        if number % 3 == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    committed = {"isolation.level": "read_committed"}
    eventually(
        lambda: len(consume(broker, "ledger", **committed)) < KEYS * ROUNDS // 3, "the log was not cleaned"
    )
    found = consume(broker, "ledger", **committed)
    # The last round was aborted, so the one before it counts.
    assert {key: value for _, key, value in found} == newest(ROUNDS - 1)
    rounds = {int((value or b"").split(b"-")[1]) for _, _, value in found}
    assert all(number % 3 != 2 for number in rounds)


def test_committed_offsets_are_compacted_and_survive_a_restart(broker: Broker) -> None:
    broker.create_topic("source")
    produce(broker, "source", rounds=1)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.commit(offsets=[TopicPartition("source", 0, 1)], asynchronous=False)
    entries = [
        ConfigEntry("internal.segment.bytes", "2000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ResourceType.TOPIC, "__consumer_offsets", incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    for offset in range(200):
        consumer.commit(offsets=[TopicPartition("source", 0, offset % KEYS)], asynchronous=False)
    [directory] = [path for path in Path(broker.data_dir).glob("__consumer_offsets-*") if bytes_of_logs(path)]
    one_segment = 2000
    eventually(
        lambda: bytes_of_logs(directory) < 2 * one_segment,
        "the offsets were not cleaned",
    )
    broker.restart()
    [committed] = consumer.committed([TopicPartition("source", 0)], timeout=10)
    assert committed.offset == 199 % KEYS
    consumer.close()


def test_a_log_that_has_rotted_is_set_aside_and_the_others_are_cleaned(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create_topic("rotten", config={**COMPACTED, "cleanup.policy": "delete"})
    produce(broker, "rotten")
    directory = Path(broker.data_dir, "rotten-0")
    first = min(directory.glob("*.log"))
    content = bytearray(first.read_bytes())
    content[100] ^= 0xFF
    with first.open("r+b") as file:
        file.write(content)
    broker.create_topic("sound", config=COMPACTED)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    policy = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "rotten", incremental_configs=[policy])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    metrics = broker.node.metrics
    eventually(
        lambda: metrics.value("riverlog_cleaner_uncleanable_partitions") == 1,  # type: ignore[attr-defined]
        "the rotten log was not set aside",
    )
    assert metrics.value("riverlog_cleaner_uncleanable_bytes") > 0  # type: ignore[attr-defined]
    produce(broker, "sound")
    eventually(lambda: len(consume(broker, "sound")) < KEYS * ROUNDS // 2, "the sound log was not cleaned")
    failures = [record for record in caplog.records if "cannot be cleaned" in record.getMessage()]
    assert len(failures) == 1


@pytest.mark.parametrize("start", [50, 500], ids=["within a segment", "over several segments"])
def test_topics_are_deleted_and_trimmed_while_they_are_cleaned(
    tmp_path: Path, start: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk()
    disk.may_clean.clear()
    # Where the cleaner stands must not depend on time: a slow producer would have every segment cleaned
    # before the next is full, in passes too small for `log.cleaner.io.max.bytes.per.second` to slow down.
    settings = {**SETTINGS, "log.cleaner.threads": 2, "log.retention.check.interval.ms": 50}
    settings["log.initial.task.delay.ms"] = 0
    with Broker(settings, data_dir=str(tmp_path), disk=disk) as held:
        held.create_topic("deleted", config=COMPACTED)
        held.create_topic("kept", config={**COMPACTED, "cleanup.policy": "compact,delete"})
        produce(held, "kept", with_unique=True)
        produce(held, "deleted")
        try:
            eventually(lambda: len(disk.held_passes) == 2, "the cleaner did not begin", timeout_s=120)
            assert {Path(path).parent.name for path in disk.held_passes} == {"deleted-0", "kept-0"}
            admin = AdminClient({"bootstrap.servers": held.bootstrap_servers})
            for future in admin.delete_topics(["deleted"]).values():
                future.result()
            for result in admin.delete_records([TopicPartition("kept", 0, start)]).values():
                result.result()
            found = consume(held, "kept")
            assert [offset for offset, _, _ in found] == [*range(start, (KEYS + 1) * ROUNDS)]
            unique = {key for _, key, _ in found if key.startswith(b"only-")}
            first = tmp_path / "kept-0" / f"{0:020}.log"
            # The segment that is being cleaned goes, or its beginning is no longer part of the log.
            eventually(lambda: first.exists() == (start == 50), "the segment was not removed", timeout_s=120)
        finally:
            disk.may_clean.set()
        produce(held, "kept", rounds=1, start=ROUNDS)
        eventually(
            lambda: len(consume(held, "kept")) < KEYS * ROUNDS // 2, "the log was not cleaned", timeout_s=120
        )
        found = consume(held, "kept")
        values = {key: value for _, key, value in found if key not in unique}
        assert values == newest(ROUNDS + 1)
        assert {key for _, key, _ in found if key not in values} == unique
        assert all(offset >= start for offset, _, _ in found)
        assert not (tmp_path / "deleted-0").exists()
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
