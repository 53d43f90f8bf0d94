"""Transactional producers that we did not write, and readers that see what is committed or everything."""

import asyncio
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]
from aiokafka.errors import ProducerFenced  # type: ignore[import-untyped]
from aiokafka.structs import TopicPartition as AioTopicPartition  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer  # type: ignore[import-untyped]
from kafka.errors import KafkaError, ProducerFencedError  # type: ignore[import-untyped]
from kafka.structs import OffsetAndMetadata  # type: ignore[import-untyped]
from kafka.structs import TopicPartition as PythonTopicPartition

from riverlog.testing import Broker

SEEN_BY = ["read_committed", "read_uncommitted"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"orders-{uuid4().hex[:8]}"
    broker.create_topic(name, partitions=2)
    return name


def values_seen(broker: Broker, topic: str, isolation: str) -> list[str]:
    """What a reader of both partitions gets, up to their ends."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "nobody",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(2)])
    seen, at_end = [], 0
    while at_end < 2:
        message = consumer.poll(10)
        assert message is not None, "no answer in time"
        if message.error():
            at_end += 1
        else:
            seen.append((message.value() or b"").decode())
    consumer.close()
    return sorted(seen)


def committed_offset(broker: Broker, group: str, topic: str) -> int:
    """Also while a transaction holds another one back, for which others have to wait."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "isolation.level": "read_uncommitted",
            "log_level": 0,
        }
    )
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    consumer.close()
    return int(found.offset)


def confluent(broker: Broker, name: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 0}
    )
    producer.init_transactions(10)
    return producer


def transact_with_confluent(broker: Broker, topic: str) -> None:
    producer = confluent(broker, f"confluent-{topic}")
    for round_, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for index in range(4):
            producer.produce(topic, f"{round_}-{index}".encode(), partition=index % 2)
        if commit:
            producer.commit_transaction(10)
        else:
            producer.flush(10)
            producer.abort_transaction(10)


def transact_with_kafka_python(broker: Broker, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=f"python-{topic}")
    producer.init_transactions()
    for round_, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        for index in range(4):
            producer.send(topic, f"{round_}-{index}".encode(), partition=index % 2)
        if commit:
            producer.commit_transaction()
        else:
            producer.flush(10)
            producer.abort_transaction()
    producer.close()


def transact_with_aiokafka(broker: Broker, topic: str) -> None:
    async def work() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, transactional_id=f"aio-{topic}"
        )
        await producer.start()
        for round_, commit in enumerate((True, False, True)):
            await producer.begin_transaction()
            for index in range(4):
                await producer.send_and_wait(topic, f"{round_}-{index}".encode(), partition=index % 2)
            await (producer.commit_transaction() if commit else producer.abort_transaction())
        await producer.stop()

    asyncio.run(work())


CLIENTS = [transact_with_confluent, transact_with_kafka_python, transact_with_aiokafka]


@pytest.mark.parametrize("transact", CLIENTS)
def test_readers_of_committed_records_see_whole_transactions_only(
    broker: Broker, topic: str, transact: Callable[[Broker, str], None]
) -> None:
    transact(broker, topic)
    all_values = [f"{round_}-{index}" for round_ in range(3) for index in range(4)]
    assert values_seen(broker, topic, "read_uncommitted") == all_values
    assert values_seen(broker, topic, "read_committed") == [
        value for value in all_values if not value.startswith("1-")
    ]


def test_confluent_is_fenced_by_a_second_producer_of_the_same_id(broker: Broker, topic: str) -> None:
    zombie = confluent(broker, topic)
    zombie.begin_transaction()
    zombie.produce(topic, b"lost", partition=0)
    zombie.flush(10)
    successor = confluent(broker, topic)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction(10)
    assert caught.value.args[0].fatal()
    successor.begin_transaction()
    successor.produce(topic, b"kept", partition=0)
    successor.commit_transaction(10)
    assert values_seen(broker, topic, "read_committed") == ["kept"]


def test_kafka_python_is_fenced_by_a_second_producer_of_the_same_id(broker: Broker, topic: str) -> None:
    def start() -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=topic)
        producer.init_transactions()
        return producer

    zombie = start()
    zombie.begin_transaction()
    zombie.send(topic, b"lost", partition=0).get(10)
    successor = start()
    with pytest.raises((ProducerFencedError, KafkaError)):
        zombie.commit_transaction()
    successor.begin_transaction()
    successor.send(topic, b"kept", partition=0)
    successor.commit_transaction()
    successor.close()
    assert values_seen(broker, topic, "read_committed") == ["kept"]
    zombie.close(timeout=0)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_confluent_count_when_the_transaction_commits(
    broker: Broker, topic: str, commit: bool
) -> None:
    producer = confluent(broker, topic)
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "log_level": 0})
    producer.begin_transaction()
    producer.produce(topic, b"result", partition=1)
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 42)], reader.consumer_group_metadata(), 10)
    assert committed_offset(broker, topic, topic) < 0
    if commit:
        producer.commit_transaction(10)
    else:
        producer.abort_transaction(10)
    reader.close()
    assert committed_offset(broker, topic, topic) == (42 if commit else -1001)


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_kafka_python_count_when_the_transaction_commits(
    broker: Broker, topic: str, commit: bool
) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send_offsets_to_transaction(
        {PythonTopicPartition(topic, 0): OffsetAndMetadata(42, "", -1)}, topic
    )
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    producer.close()
    assert committed_offset(broker, topic, topic) == (42 if commit else -1001)


def test_aiokafka_commits_offsets_and_is_fenced(broker: Broker, topic: str) -> None:
    async def start() -> AIOKafkaProducer:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=topic)
        await producer.start()
        return producer

    async def work() -> None:
        producer = await start()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"kept", partition=0)
            await producer.send_offsets_to_transaction({AioTopicPartition(topic, 0): 42}, topic)
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"lost", partition=0)
        successor = await start()
        with pytest.raises(ProducerFenced):
            await producer.commit_transaction()
        await successor.stop()
        await producer.stop()
        reader = AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, isolation_level="read_committed"
        )
        await reader.start()
        reader.assign([AioTopicPartition(topic, 0)])
        await reader.seek_to_beginning()
        assert (await reader.getone()).value == b"kept"
        await reader.stop()

    asyncio.run(work())
    assert committed_offset(broker, topic, topic) == 42
    assert values_seen(broker, topic, "read_committed") == ["kept"]


@pytest.mark.parametrize("isolation", SEEN_BY)
def test_a_reader_waits_at_an_open_transaction_only_if_it_wants_committed_records(
    broker: Broker, topic: str, isolation: str
) -> None:
    producer = confluent(broker, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(10)
    expected = [] if isolation == "read_committed" else ["open"]
    assert values_seen(broker, topic, isolation) == expected
    producer.commit_transaction(10)
    assert values_seen(broker, topic, isolation) == ["open"]
