"""Brokers of a cluster killed one after the other, controller included, under transactions and plain writes.

Nothing acknowledged is lost, nothing is there twice, and no transaction is there in part.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from riverlog.testing import Cluster
from tests.waiting import eventually

PARTITIONS = 6
AT_ONCE = 20
PAUSE_S = 0.005
PATIENCE_S = 120.0
QUIET = logging.getLogger("tests.quiet")
QUIET.setLevel(logging.CRITICAL)


class Transactions(threading.Thread):
    """Writes a number to every partition of `txn` in each transaction, the next one in the next."""

    def __init__(self, servers: str, is_over: threading.Event) -> None:
        super().__init__()
        self._servers = servers
        self._is_over = is_over
        self.committed: list[int] = []
        self.unsure: list[int] = []
        """Those whose commit failed: they may be there or not."""

    def run(self) -> None:
        producer: Producer | None = None
        number = 0
        while not self._is_over.is_set():
            number += 1
            try:
                if producer is None:
                    producer = Producer(
                        {"bootstrap.servers": self._servers, "transactional.id": "numbers"}, logger=QUIET
                    )
                    producer.init_transactions(PATIENCE_S)
                self._write(producer, number)
            except KafkaException as failure:
                if not (producer is not None and failure.args[0].txn_requires_abort() and _aborted(producer)):
                    producer = None

    def _write(self, producer: Producer, number: int) -> None:
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce("txn", b"%d" % number, partition=partition)
        producer.flush(PATIENCE_S)
        self.unsure.append(number)
        producer.commit_transaction(PATIENCE_S)
        self.committed.append(self.unsure.pop())


def _aborted(producer: Producer) -> bool:
    try:
        producer.abort_transaction(PATIENCE_S)
    except KafkaException:
        return False
    return True


class PlainWrites(threading.Thread):
    """Idempotent writes to `plain`, as fast as a few at a time go."""

    def __init__(self, servers: str, is_over: threading.Event) -> None:
        super().__init__()
        self._servers = servers
        self._is_over = is_over
        self.acknowledged: list[tuple[int, bytes | None]] = []

    def run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "message.timeout.ms": int(PATIENCE_S * 1000),
            },
            logger=QUIET,
        )
        number = 0
        while not self._is_over.wait(PAUSE_S):
            for each in range(number, number + AT_ONCE):
                partition = each % PARTITIONS
                producer.produce("plain", b"%d" % each, partition=partition, on_delivery=self._done)
            number += AT_ONCE
            producer.poll(0)
        producer.flush(PATIENCE_S)

    def _done(self, error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        if error is None and partition is not None:
            self.acknowledged.append((partition, message.value()))


@contextmanager
def writing(cluster: Cluster) -> Iterator[tuple[Transactions, PlainWrites]]:
    is_over = threading.Event()
    writers = (
        Transactions(cluster.bootstrap_servers, is_over),
        PlainWrites(cluster.bootstrap_servers, is_over),
    )
    for each in writers:
        each.start()
    try:
        yield writers
    finally:
        is_over.set()
        for each in writers:
            each.join()


@pytest.mark.parametrize(("processes", "kills"), [(False, 20), (True, 6)], ids=["threads", "processes"])
def test_nothing_acknowledged_is_lost_doubled_or_torn_when_brokers_are_killed(
    processes: bool, kills: int
) -> None:
    with Cluster(brokers=3, processes=processes) as cluster:
        for topic in ("txn", "plain"):
            cluster.create_topic(topic, PARTITIONS)
        with writing(cluster) as (transactions, plain):
            for number in range(kills):
                victim = cluster.controller if number % 3 == 0 else number % 3 + 1
                expected = len(transactions.committed) + 3
                cluster.kill(victim)
                cluster.restart(victim)
                eventually(
                    lambda expected=expected: len(transactions.committed) >= expected,  # type: ignore[misc]
                    f"no transaction is committed after kill {number}",
                    timeout_s=PATIENCE_S,
                )
        found = Counter(record.value for record in cluster.consume("txn", timeout=PATIENCE_S))
        assert [each for each in transactions.committed if found[b"%d" % each] != PARTITIONS] == []
        assert {each: count for each, count in found.items() if count != PARTITIONS} == {}
        known = {b"%d" % each for each in (*transactions.committed, *transactions.unsure)}
        assert set(found) <= known
        written = Counter((record.partition, record.value) for record in cluster.consume("plain", timeout=60))
        assert [each for each in plain.acknowledged if written[each] == 0] == []
        assert [each for each, count in written.items() if count > 1] == []
        assert plain.acknowledged
