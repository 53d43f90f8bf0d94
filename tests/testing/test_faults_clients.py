"""What real clients make of faults: they try again where they should, and idempotent ones write once."""

import asyncio
from collections.abc import Callable

import aiokafka  # type: ignore[import-untyped]
import kafka  # type: ignore[import-untyped]
import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaConsumer

from riverlog.testing import Broker
from tests.conformance.clients.aio import AioKafka
from tests.conformance.clients.confluent import ConfluentKafka
from tests.conformance.clients.interface import ClientUnderTest, Message, ProducerOptions
from tests.conformance.clients.kafka_python import KafkaPython
from tests.waiting import eventually

CLIENTS: dict[str, Callable[[str], ClientUnderTest]] = {
    "confluent-kafka": ConfluentKafka,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}
IDEMPOTENT = ProducerOptions(idempotent=True)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, riverlog_broker: Broker) -> ClientUnderTest:
    return CLIENTS[request.param](riverlog_broker.bootstrap_servers)


@pytest.fixture
def topic(riverlog_topic: str) -> str:
    return riverlog_topic


def test_a_producer_tries_again_when_its_broker_says_that_it_leads_no_more(
    riverlog_broker: Broker, client: ClientUnderTest, topic: str
) -> None:
    with riverlog_broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", times=2, topic=topic) as fault:
        client.produce(topic, [Message(b"once")], IDEMPOTENT)
    assert fault.hits == 2
    assert [each.value for each in riverlog_broker.consume(topic)] == [b"once"]


def test_an_idempotent_producer_that_lost_a_reply_writes_once(
    riverlog_broker: Broker, client: ClientUnderTest, topic: str
) -> None:
    with riverlog_broker.faults.disconnect("Produce", done=True, times=1, topic=topic) as fault:
        client.produce(topic, [Message(b"once")], IDEMPOTENT)
    assert fault.hits == 1
    assert [each.value for each in riverlog_broker.consume(topic)] == [b"once"]


def test_a_consumer_goes_on_after_errors_disconnects_and_delays(
    riverlog_broker: Broker, client: ClientUnderTest, topic: str
) -> None:
    riverlog_broker.produce(topic, "one", "two")
    with (
        riverlog_broker.faults.error("Fetch", "NOT_LEADER_OR_FOLLOWER", times=1, topic=topic) as error,
        riverlog_broker.faults.disconnect("Fetch", times=1, topic=topic) as disconnect,
        riverlog_broker.faults.delay("Fetch", seconds=0.05, times=1, topic=topic) as delay,
    ):
        consumed = client.consume(topic, 2)
    assert [each.value for each in consumed] == [b"one", b"two"]
    assert (error.hits, disconnect.hits, delay.hits) == (1, 1, 1)


def test_metadata_without_a_leader_is_asked_for_again(
    riverlog_broker: Broker, client: ClientUnderTest, topic: str
) -> None:
    with riverlog_broker.faults.error("Metadata", "LEADER_NOT_AVAILABLE", times=1, topic=topic) as fault:
        client.produce(topic, [Message(b"at last")], IDEMPOTENT)
    assert fault.hits == 1
    assert [each.value for each in riverlog_broker.consume(topic)] == [b"at last"]


def test_a_client_of_a_broker_that_refuses_waits_until_it_does_not(
    riverlog_broker: Broker, topic: str
) -> None:
    complaints: list[str] = []
    with riverlog_broker.faults.refuse_connections() as fault:
        producer = Producer(
            {
                "bootstrap.servers": riverlog_broker.bootstrap_servers,
                "error_cb": lambda error: complaints.append(error.str()),
            }
        )
        producer.produce(topic, b"at last")
        eventually(
            lambda: bool(producer.poll(0.05)) or any("brokers are down" in each for each in complaints)
        )
    assert fault.hits >= 1
    assert producer.flush(20) == 0
    assert [each.value for each in riverlog_broker.consume(topic)] == [b"at last"]


def test_a_refused_connection_is_made_anew(riverlog_broker: Broker, topic: str) -> None:
    with riverlog_broker.faults.refuse_connections(times=2) as fault:
        producer = Producer({"bootstrap.servers": riverlog_broker.bootstrap_servers})
        producer.produce(topic, b"at last")
        assert producer.flush(20) == 0
    assert fault.hits == 2


def test_a_producer_that_never_gets_its_reply_sends_again_and_writes_once(
    riverlog_broker: Broker, topic: str
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": riverlog_broker.bootstrap_servers,
            "enable.idempotence": True,
            "request.timeout.ms": 500,
            "socket.timeout.ms": 1000,
        }
    )
    with riverlog_broker.faults.drop_reply("Produce", times=1, topic=topic) as fault:
        producer.produce(topic, b"once")
        assert producer.flush(30) == 0
    assert fault.hits == 1
    assert [each.value for each in riverlog_broker.consume(topic)] == [b"once"]


def test_an_error_that_is_for_good_reaches_the_application(riverlog_broker: Broker, topic: str) -> None:
    told: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": riverlog_broker.bootstrap_servers})
    with riverlog_broker.faults.error("Produce", "TOPIC_AUTHORIZATION_FAILED", times=1, topic=topic):
        producer.produce(topic, b"not for you", on_delivery=lambda error, _: told.append(error))
        assert producer.flush(20) == 0
    assert [error is not None and error.code() for error in told] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python", "aiokafka"])
def test_a_commit_is_made_again_when_the_coordinator_has_moved(
    riverlog_broker: Broker, topic: str, name: str
) -> None:
    riverlog_broker.produce(topic, *map(str, range(5)))
    commit = {"confluent-kafka": _by_confluent, "kafka-python": _by_kafka_python, "aiokafka": _by_aiokafka}
    with riverlog_broker.faults.error("OffsetCommit", "NOT_COORDINATOR", times=1, topic=topic) as fault:
        commit[name](riverlog_broker, topic)
    assert fault.hits == 1
    assert riverlog_broker.committed(topic) == {(topic, 0): 5}


def _by_confluent(broker: Broker, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    finally:
        consumer.close()


def _by_kafka_python(broker: Broker, topic: str) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, group_id=topic, enable_auto_commit=False
    )
    try:
        at = kafka.TopicPartition(topic, 0)
        consumer.assign([at])
        consumer.commit({at: kafka.structs.OffsetAndMetadata(5, "", -1)})
    finally:
        consumer.close()


def _by_aiokafka(broker: Broker, topic: str) -> None:
    async def main() -> None:
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=topic)
        await consumer.start()
        try:
            at = aiokafka.TopicPartition(topic, 0)
            consumer.assign([at])
            await consumer.commit({at: 5})
        finally:
            await consumer.stop()

    asyncio.run(main())
