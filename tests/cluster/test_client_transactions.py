"""Transactions of librdkafka over three brokers, each of which is killed and started again meanwhile."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tests.cluster.nodes import NodeCluster, in_thread, run
from tests.cluster.transactor import TOPIC, contents, make_topics, name_at, open_in

_OPERATION_S = 30.0
_FAST = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 50,
    # Otherwise it lets go of a broker that metadata does not name any more, and waits for ever for it if that
    # was the coordinator of the group (librdkafka 2.16).
    "metadata.recovery.strategy": "none",
}


class Writer:
    """One transaction after the other, on every partition and with an offset of the group, if there is one;
    each third is aborted. What its transactions came to is known, as every end is tried until it is
    answered."""

    def __init__(self, servers: str, name: str, group: str | None) -> None:
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.is_stopping = False
        self._group = group
        self._settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "transactional.id": name,
            "linger.ms": 0,
            "transaction.timeout.ms": 60_000,
            **_FAST,
        }

    @property
    def count(self) -> int:
        return len(self.committed) + len(self.aborted)

    def run(self) -> None:
        producer = Producer(self._settings)
        _until_done(lambda: producer.init_transactions(_OPERATION_S))
        consumer = Consumer(
            {"bootstrap.servers": self._settings["bootstrap.servers"], "group.id": self._group or "none"}
        )
        number = 0
        while not self.is_stopping:
            number += 1
            if self._transact(producer, consumer, number):
                self.committed.append(number)
            else:
                self.aborted.append(number)
        consumer.close()

    def _transact(self, producer: Producer, consumer: Consumer, number: int) -> bool:
        producer.begin_transaction()
        try:
            for partition in range(3):
                producer.produce(TOPIC, str(number).encode(), partition=partition)
            if self._group is not None:
                offsets = [TopicPartition(TOPIC, 0, number)]
                metadata = consumer.consumer_group_metadata()
                _until_done(lambda: producer.send_offsets_to_transaction(offsets, metadata, _OPERATION_S))
            if number % 3 == 0:
                _until_done(lambda: producer.abort_transaction(_OPERATION_S))
                return False
            _until_done(lambda: producer.commit_transaction(_OPERATION_S))
            return True
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            _until_done(lambda: producer.abort_transaction(_OPERATION_S))
            return False


def _until_done(operation: Callable[[], object]) -> None:
    """As the documentation asks of applications: what can be retried is."""
    for is_last in (False, False, True):
        try:
            operation()
            return
        except KafkaException as error:
            if is_last or not error.args[0].retriable():
                raise


def read_committed(servers: str, ends: list[int]) -> list[Counter[int]]:
    """How often each number stands in each partition."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "isolation.level": "read_committed", **_FAST}
    )
    found: list[Counter[int]] = [Counter() for _ in ends]
    for partition, end in enumerate(ends):
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        while consumer.position([TopicPartition(TOPIC, partition)])[0].offset < end:
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None, message.error()
                found[partition][int(message.value() or b"")] += 1
    consumer.close()
    return found


REPLICATED = {
    "offsets_topic_replication_factor": "3",
    "transaction_state_log_replication_factor": "3",
    "transaction_state_log_min_isr": "2",
}


@pytest.mark.parametrize("replicas", [1, 3])
def test_nothing_is_lost_doubled_or_left_open_while_each_broker_dies_in_turn(replicas: int) -> None:
    """With replicas the others go on without it."""

    async def scenario(cluster: NodeCluster) -> None:
        await make_topics(cluster, replicas)
        # librdkafka 2.16 lets go of a broker that metadata does not name any more, and may then wait for ever
        # for it where it was the coordinator of a group.
        group = name_at(cluster, OFFSETS_TOPIC, 2) if replicas == 1 else None
        writer = Writer(cluster.bootstrap_servers, name_at(cluster, TRANSACTIONS_TOPIC, 1), group)
        thread = threading.Thread(target=writer.run, daemon=True)
        thread.start()

        async def go_on() -> None:
            before = writer.count
            await cluster.until(lambda: writer.count >= before + 3, "no more transactions")

        try:
            await go_on()
            for victim in (1, 2, 3):  # The coordinator, the group's coordinator, and a leader of a partition.
                # librdkafka looks for its coordinator at the port where it was.
                cluster[victim].settings["listeners"] = f"PLAINTEXT://{cluster[victim].bootstrap_servers}"
                await cluster[victim].kill()
                await cluster.until_all_see(lambda image: victim not in image.brokers)  # noqa: B023
                if replicas > 1:
                    await go_on()
                await cluster[victim].start()
                await go_on()
        finally:
            writer.is_stopping = True
            await in_thread(thread.join, 4 * _OPERATION_S)
        assert not thread.is_alive()
        await cluster.until(lambda: not any(open_in(cluster, at) for at in range(3)))
        ends = [contents(cluster, at)[1] for at in range(3)]
        found = await in_thread(read_committed, cluster.bootstrap_servers, ends)
        expected = Counter(writer.committed)
        assert found == [expected] * 3
        assert writer.aborted

    run(scenario, 3, **(REPLICATED if replicas > 1 else {}))
