"""Orders for the Streams application in java/CountOrders.java, and what it makes of them."""

import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

APPLICATION = Path(__file__).parent / "java" / "CountOrders.java"
INPUT, OUTPUT = "orders", "orders-per-customer"
CHANGELOG = "count-orders-counts-changelog"
PARTITIONS = 3
CUSTOMERS = 20
ORDERS_A_ROUND = 3000


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


class Orders:
    """What stands in the topics of a cluster, and what was ordered."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.ordered: Counter[bytes] = Counter()

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

    def order(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5})
        failures: list[object] = []
        for number in range(ORDERS_A_ROUND):
            customer = b"customer-%d" % (number * number % CUSTOMERS)
            producer.produce(
                INPUT,
                key=b"order-%d" % (self.ordered.total() + 1),
                value=customer,
                on_delivery=lambda error, _message: failures.append(error) if error else None,
            )
            self.ordered[customer] += 1
        assert producer.flush(60) == 0
        assert not failures

    def assert_counted_exactly_once(self) -> None:
        counts = defaultdict(list)
        for customer, count in self.committed(OUTPUT):
            counts[customer].append(int(count))
        assert counts == {customer: list(range(1, total + 1)) for customer, total in self.ordered.items()}
        stored = {customer: int.from_bytes(count) for customer, count in self.committed(CHANGELOG)}
        assert stored == self.ordered


def wait_until(condition: Callable[[], bool], application: Victim) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert application.is_running(), application.errors()
        assert time.monotonic() < deadline, f"the application did not get on\n{application.errors()}"
