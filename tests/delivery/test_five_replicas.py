"""Five replicas: with `min.insync.replicas` 3 two brokers may fail, with 5 none, with 1 four.

On real processes and a real ZooKeeper. Brokers are killed one after the other, and what each setting promises
is asked after each; what was acknowledged is read as long as one replica lives.
"""

from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.delivery.control import client_settings
from tests.delivery.replicated import WAIT_S, Replicated
from tests.delivery.workers import until

MINIMA = (5, 3, 1)
BROKERS = 5


class Writer:
    """Writes to the only partition of a topic, and knows what must be read from it."""

    def __init__(self, servers: str, topic: str) -> None:
        self.topic = topic
        self.acknowledged: list[str] = []
        self._count = 0
        patience = {"message_timeout_ms": int(WAIT_S * 1000)}
        self._patient = Producer(client_settings(servers, acks="all", enable_idempotence=True, **patience))
        self._impatient = Producer(client_settings(servers, acks="all", retries=0, **patience))

    def write(self) -> None:
        value, error = self._send(self._patient)
        assert error is None, f"{self.topic}: {error}"
        self.acknowledged.append(value)

    def refusal(self) -> KafkaError | None:
        """Of a record that is sent once."""
        return self._send(self._impatient)[1]

    def _send(self, producer: Producer) -> tuple[str, KafkaError | None]:
        self._count += 1
        value, told = f"{self.topic} {self._count}", list[KafkaError | None]()

        def note(error: KafkaError | None, message: Message) -> None:
            told.append(error)

        producer.produce(self.topic, value, partition=0, on_delivery=note)
        assert producer.flush(WAIT_S) == 0
        return value, told[0]

    def assert_read(self, servers: str) -> None:
        """All that was acknowledged, and in its order; nothing that was refused."""
        # Without commits: nobody may be left to take them, and a close would wait for it.
        consumer = Consumer(client_settings(servers, group_id="reader", enable_auto_commit=False))
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        found: list[str] = []

        def has_read() -> bool:
            for message in consumer.consume(100, 0.1):
                value = message.value()
                assert isinstance(value, bytes)
                found.append(value.decode())
            return len(found) >= len(self.acknowledged)

        until(has_read, f"what was acknowledged of {self.topic} is read", WAIT_S)
        consumer.close()
        assert found == self.acknowledged


def until_isr_is(replicated: Replicated, alive: set[int]) -> None:
    """Return when these are in sync everywhere, and one of them leads."""
    with AdminClient(client_settings(replicated.cluster.bootstrap_servers)) as admin:

        def are_so() -> bool:
            topics = admin.list_topics(timeout=30).topics
            partitions = [topics[name].partitions[0] for name in map(_topic, MINIMA)]
            return all(set(each.isrs) == alive and each.leader in alive for each in partitions)

        until(are_so, f"only {alive} are in sync", WAIT_S)


def _topic(minimum: int) -> str:
    return f"min-{minimum}"


def _goes_on_with(minimum: int, alive: int) -> bool:
    return alive >= minimum


def test_as_many_brokers_may_fail_as_the_minimum_of_replicas_in_sync_leaves(tmp_path: Path) -> None:
    with Replicated(tmp_path, brokers=BROKERS, servers=1, replicas=BROKERS) as replicated:
        servers = replicated.bootstrap_servers
        writers = {minimum: Writer(servers, _topic(minimum)) for minimum in MINIMA}
        for minimum, writer in writers.items():
            replicated.cluster.create_topic(writer.topic, 1, {"min.insync.replicas": minimum})
        alive = set(range(1, BROKERS + 1))
        for killed in ((), (5,), (4,), (3,), (2,)):
            for broker in killed:
                replicated.kill(broker, "broker")
            alive.difference_update(killed)
            until_isr_is(replicated, alive)
            for minimum, writer in writers.items():
                if _goes_on_with(minimum, len(alive)):
                    writer.write()
                else:
                    refusal = writer.refusal()
                    assert refusal is not None, f"{writer.topic} is written with {len(alive)} replicas"
                    assert refusal.name() == "NOT_ENOUGH_REPLICAS", refusal
                writer.assert_read(replicated.cluster.bootstrap_servers)
        assert {minimum: len(writer.acknowledged) for minimum, writer in writers.items()} == {
            5: 1,
            3: 3,
            1: 5,
        }
        for broker in (5, 4, 3, 2):
            replicated.restart(broker)
        until_isr_is(replicated, set(range(1, BROKERS + 1)))
        for writer in writers.values():
            writer.write()
            writer.assert_read(servers)
        replicated.assert_equal_files(*map(_topic, MINIMA))
        replicated.assert_no_bugs_told()
