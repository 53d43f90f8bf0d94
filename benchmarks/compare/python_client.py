"""Produce and consume with confluent-kafka, as applications in Python do: the client is the bottleneck."""

import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.backed_memory import have_backed
from benchmarks.compare import topics
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, Plain, Tools, cpu_of, drop, fresh, per, topic
from benchmarks.compare.throughput import BATCH_BYTES, CONSUMER, PRODUCER, SIZES, fill
from riverlog.records.compression import Codec

PARTITIONS = 4
PRODUCED = {100: 300_000, 1_000: 150_000}
CONSUMED = {100: 600_000, 1_000: 300_000}
AT_ONCE = 10_000
WAIT_S = 30.0
_PRODUCER = PRODUCER | {"delivery.report.only.error": True}  # This client takes no word for it.


@dataclass(frozen=True, slots=True)
class PythonProduce(Plain):
    size: str
    limit: str | None = None
    seconds: float = 1.6

    @property
    def name(self) -> str:
        return f"python-produce-{self.size}"

    @property
    def words(self) -> str:
        return f"produce {self.size} with confluent-kafka, {PARTITIONS} partitions, acks=1"

    def measure(self, target: Target, tools: Tools) -> Metrics:
        size = SIZES[self.size]
        count, value = tools.amount(PRODUCED[size]), topics.value(1, size)
        have_backed(tools.directory, 3 * count * size // 2)
        with topic(target, "produced", PARTITIONS) as name:
            producer = Producer({"bootstrap.servers": target.bootstrap, "acks": "1", **_PRODUCER})
            producer.produce(name, value)
            _flush(producer)
            started_s = time.perf_counter()
            with cpu_of(target) as spent:
                for number in range(count):
                    _send(producer, name, value, number % PARTITIONS)
                _flush(producer)
            elapsed_s = time.perf_counter() - started_s
        megabytes = count * size / 1e6
        return {"mb_s": megabytes / elapsed_s, "messages_s": count / elapsed_s} | per(
            spent, megabytes / 1e3, "broker_cpu_s_per_gb"
        )


def _send(producer: Producer, name: str, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(name, value, partition=partition)
        except BufferError:
            producer.poll(0.002)
        else:
            return


def _flush(producer: Producer) -> None:
    left = producer.flush(WAIT_S)
    if left:
        raise TimeoutError(f"{left} messages were not delivered in {WAIT_S:g} s")


@dataclass(frozen=True, slots=True)
class PythonConsume:
    size: str
    limit: str | None = None
    seconds: float = 1.2
    _held: dict[str, tuple[str, int]] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        return f"python-consume-{self.size}"

    @property
    def words(self) -> str:
        return f"consume {self.size} with confluent-kafka, {PARTITIONS} partitions, hot"

    def prepare(self, target: Target, tools: Tools) -> None:
        size = SIZES[self.size]
        records = BATCH_BYTES // size
        rounds = max(1, tools.amount(CONSUMED[size]) // (records * PARTITIONS))
        name = fresh("consumed")
        topics.create(target.address, name, PARTITIONS)
        self._held[target.name] = name, rounds * records * PARTITIONS
        fill(target, tools, name, PARTITIONS, topics.batch(records, size, Codec.NONE), rounds)

    def measure(self, target: Target, tools: Tools) -> Metrics:
        name, count = self._held[target.name]
        consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": fresh("py"), **CONSUMER})
        started_s = time.perf_counter()
        with cpu_of(target) as spent:
            consumer.assign([TopicPartition(name, number, 0) for number in range(PARTITIONS)])
            left, total = count, 0
            while left > 0:
                messages = consumer.consume(min(left, AT_ONCE), timeout=WAIT_S)
                if not messages:
                    raise TimeoutError(f"{left} messages did not come in {WAIT_S:g} s")
                left -= len(messages)
                total += sum(len(message) for message in messages)
        elapsed_s = time.perf_counter() - started_s
        consumer.close()
        return {"mb_s": total / 1e6 / elapsed_s, "messages_s": count / elapsed_s} | per(
            spent, total / 1e9, "broker_cpu_s_per_gb"
        )

    def clean_up(self, target: Target, tools: Tools) -> None:
        drop(target, self._held.pop(target.name)[0])
