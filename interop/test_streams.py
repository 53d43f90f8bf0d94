"""A Kafka Streams application counts exactly once while it, and the broker under it, are killed.

The application (java/CountOrders.java) needs groups, transactions with offsets, internal topics with their
settings, and the restoring of a store from its changelog. Every kill is SIGKILL, sent once a transaction is
seen open; that it stays open is checked after the kills of the application.
"""

import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from interop.conftest import KAFKA, RIVERLOG

APPLICATION = Path(__file__).parent / "java" / "CountOrders.java"
INPUT, OUTPUT = "orders", "orders-per-customer"
CHANGELOG = "count-orders-counts-changelog"
PARTITIONS = 3
CUSTOMERS = 20
ORDERS_A_ROUND = 3000
KILLS_TRIED_MAX = 5


class Victim:
    """A process that can be killed and started again with the same command."""

    def __init__(self, *command: str, errors: Path) -> None:
        self._errors = errors
        self.start(*command)

    def start(self, *command: str) -> None:
        self.command = command
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def errors(self) -> str:
        return self._errors.read_text()

    def kill(self) -> None:
        self._process.kill()
        self._reap()

    def stop(self) -> int:
        self._process.terminate()
        return self._reap()

    def _reap(self) -> int:
        code = self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


class Cluster:
    """One broker, killed and restarted at the same address; and what stands in its topics."""

    def __init__(self, directory: Path) -> None:
        self._command = (
            str(RIVERLOG), "serve", "--data-dir", str(directory / "data"),
            "--set", "group.initial.rebalance.delay.ms=0",
        )  # fmt: skip
        self.broker = Victim(*self._command, "--listen", "127.0.0.1:0", errors=directory / "broker.log")
        self.bootstrap = self.broker.line().rpartition(" ")[2]

    def kill_and_restart(self) -> None:
        self.broker.kill()
        self.broker.start(*self._command, "--listen", self.bootstrap)
        assert self.broker.line().endswith(self.bootstrap)

    def has_open_transaction(self) -> bool:
        """Whether the output has records that are neither committed nor aborted."""
        return self._ends(OUTPUT, "read_committed") != self._ends(OUTPUT, "read_uncommitted")

    def committed(self, topic: str) -> list[tuple[bytes, bytes]]:
        """The records of committed transactions, in the order of each partition."""
        ends = self._ends(topic, "read_committed")
        consumer = self._consumer("read_committed")
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        found = []
        # Where the next fetch begins: what was consumed ends before the markers of transactions.
        reached = [0] * PARTITIONS
        deadline = time.monotonic() + 60
        while any(at < end for at, end in zip(reached, ends, strict=True)):
            assert time.monotonic() < deadline, f"{topic}: at {reached} of {ends}"
            for message in consumer.consume(1000, timeout=0.1):
                error, partition, offset = message.error(), message.partition(), message.offset()
                if error is None:
                    found.append((message.key() or b"", message.value() or b""))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF
                    assert partition is not None
                    assert offset is not None
                    reached[partition] = offset
        consumer.close()
        return found

    def _ends(self, topic: str, isolation: str) -> list[int]:
        consumer = self._consumer(isolation)
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(place, timeout=30)[1] for place in places]
        consumer.close()
        return ends

    def _consumer(self, isolation: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
            }
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for created in admin.create_topics([NewTopic(name, PARTITIONS) for name in (INPUT, OUTPUT)]).values():
        created.result(30)
    yield cluster
    assert cluster.broker.stop() == 0


@pytest.mark.timeout(300)
def test_kafka_streams_counts_exactly_once_over_kills_of_application_and_broker(
    cluster: Cluster, tmp_path: Path
) -> None:
    ordered: Counter[bytes] = Counter()
    command = (str(KAFKA), "run", str(APPLICATION), cluster.bootstrap, INPUT, OUTPUT, str(tmp_path / "state"))
    application = Victim(*command, errors=tmp_path / "application.log")
    try:
        for target in ("application", "broker", "application", "application"):
            if target == "broker":
                _order(cluster.bootstrap, ordered)
                _wait_until(cluster.has_open_transaction, application)
                cluster.kill_and_restart()
            else:
                _kill_in_a_transaction(cluster, application, ordered, command)
        _order(cluster.bootstrap, ordered)
        _wait_until(lambda: len(cluster.committed(OUTPUT)) >= ordered.total(), application)
        application.stop()
    finally:
        if application.is_running():
            application.kill()
    assert "Exception" not in application.errors(), application.errors()
    counts = defaultdict(list)
    for customer, count in cluster.committed(OUTPUT):
        counts[customer].append(int(count))
    assert counts == {customer: list(range(1, total + 1)) for customer, total in ordered.items()}
    stored = {customer: int.from_bytes(count) for customer, count in cluster.committed(CHANGELOG)}
    assert stored == ordered


def _kill_in_a_transaction(
    cluster: Cluster, application: Victim, ordered: Counter[bytes], command: tuple[str, ...]
) -> None:
    """Kill and start the application; again where the transaction that was seen ended just before."""
    for _ in range(KILLS_TRIED_MAX):
        _order(cluster.bootstrap, ordered)
        _wait_until(cluster.has_open_transaction, application)
        application.kill()
        is_open = cluster.has_open_transaction()
        application.start(*command)
        if is_open:
            return
    pytest.fail("no kill left a transaction open")


def _order(bootstrap: str, ordered: Counter[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    failures: list[object] = []
    for number in range(ORDERS_A_ROUND):
        customer = b"customer-%d" % (number * number % CUSTOMERS)
        producer.produce(
            INPUT,
            key=b"order-%d" % (ordered.total() + 1),
            value=customer,
            on_delivery=lambda error, _message: failures.append(error) if error else None,
        )
        ordered[customer] += 1
    assert producer.flush(30) == 0
    assert not failures


def _wait_until(condition: Callable[[], bool], application: Victim) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert application.is_running(), application.errors()
        assert time.monotonic() < deadline, f"the application did not get on\n{application.errors()}"
