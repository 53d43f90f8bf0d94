"""Produce and consume as fast as it goes, with librdkafka's C client."""

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from benchmarks.backed_memory import have_backed
from benchmarks.compare import topics
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import (
    Metrics,
    Plain,
    Tools,
    cpu_of,
    drop,
    files_of,
    fresh,
    logs_of,
    memory,
    per,
    topic,
)
from riverlog.records.compression import Codec

SIZES = {"100B": 100, "1KB": 1_000, "10KB": 10_000}
PRODUCED_BYTES = {100: 100_000_000, 1_000: 300_000_000, 10_000: 400_000_000}
CONSUMED_BYTES = {100: 200_000_000, 1_000: 400_000_000, 10_000: 600_000_000}
COLD_BYTES = 200_000_000
MANY = 100
BATCH_BYTES = 256_000  # About what a producer at full speed makes of four partitions.
REQUEST_BYTES = 2_000_000
# A sender whose queue is full sleeps and wakes for a few messages, which costs it up to a quarter more.
PRODUCER = {
    "linger.ms": "5",
    "delivery.report.only.error": "true",
    "queue.buffering.max.messages": "500000",
}
# A reader that is faster than the broker for a moment must not rest for a second because of it.
CONSUMER = {"fetch.queue.backoff.ms": "1", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}


@dataclass(frozen=True, slots=True)
class Produce:
    """A topic for each sample, so that little goes to the disk; one for all where it has many partitions.

    One producer has two threads, of which one is the limit where messages are small, whoever the broker is.
    """

    size: str = "1KB"
    codec: str = "none"
    acks: str = "1"
    partitions: int = 4
    producers: int = 1
    limit: str | None = "loopback_mb_s"
    _held: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        several = f"-by{self.producers}" if self.producers > 1 else ""
        return f"produce-{self.size}-{self.codec}-acks{self.acks}-p{self.partitions}{several}"

    @property
    def words(self) -> str:
        several = f", {self.producers} producers" if self.producers > 1 else ""
        return f"produce {self.size}, {_words(self.codec, self.partitions)}, acks={self.acks}{several}"

    @property
    def seconds(self) -> float:
        return (1.4 if self.codec == "none" else 1.0) + self.partitions / 600

    def prepare(self, target: Target, tools: Tools) -> None:
        if self.partitions >= MANY:
            self._held[target.name] = fresh("produced")
            topics.create(target.address, self._held[target.name], self.partitions)

    def clean_up(self, target: Target, tools: Tools) -> None:
        if target.name in self._held:
            drop(target, self._held.pop(target.name))

    def _topic(self, target: Target) -> AbstractContextManager[str]:
        held = self._held.get(target.name)
        return topic(target, "produced", self.partitions) if held is None else nullcontext(held)

    def measure(self, target: Target, tools: Tools) -> Metrics:
        size = SIZES[self.size]
        share = min(1.0, 40 / self.partitions) * (1.0 if self.codec == "none" else 0.3)
        count = int(tools.amount(PRODUCED_BYTES[size]) * share) // size
        have_backed(tools.directory, 3 * count * size // 2)
        properties = PRODUCER | {"acks": self.acks, "compression.type": self.codec}
        with self._topic(target) as name, cpu_of(target) as spent:
            settings = {"brokers": target.bootstrap, "topic": name, "partitions": self.partitions}
            settings |= {"size": size, "count": count, "threads": self.producers}
            done = tools.driver.run("produce", properties, **settings)
        return throughput(done, spent) | memory(target)


@dataclass(frozen=True, slots=True)
class Consume:
    """Every target holds the same batches; `groups` of 0 is a consumer that is given its partitions."""

    size: str = "1KB"
    codec: str = "none"
    partitions: int = 4
    groups: int = 0
    is_cold: bool = False
    limit: str | None = "sendfile_mb_s"
    _held: dict[str, tuple[str, int]] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        how = "cold" if self.is_cold else "hot"
        groups = f"-g{self.groups}" if self.groups else ""
        return f"consume-{self.size}-{self.codec}-p{self.partitions}-{how}{groups}"

    @property
    def words(self) -> str:
        how = "cold" if self.is_cold else "hot"
        groups = {0: "", 1: ", one group"}.get(self.groups, f", {self.groups} groups")
        return f"consume {self.size}, {_words(self.codec, self.partitions)}, {how}{groups}"

    @property
    def seconds(self) -> float:
        return 2.0 if self.is_cold else 1.0

    def prepare(self, target: Target, tools: Tools) -> None:
        size = SIZES[self.size]
        total = COLD_BYTES if self.is_cold else CONSUMED_BYTES[size] // max(1, self.groups)
        total = total if self.codec == "none" else total // 2
        batch_bytes = min(BATCH_BYTES, REQUEST_BYTES // self.partitions)
        records = max(1, batch_bytes // size)
        rounds = max(1, tools.amount(total) // (records * size * self.partitions))
        name = fresh("consumed")
        topics.create(target.address, name, self.partitions)
        self._held[target.name] = name, rounds * records * self.partitions
        batch = topics.batch(records, size, Codec[self.codec.upper()])
        fill(target, tools, name, self.partitions, batch, rounds)

    def measure(self, target: Target, tools: Tools) -> Metrics:
        name, count = self._held[target.name]
        if self.is_cold:
            forget_pages(target, name)
        with cpu_of(target) as spent:
            done = tools.driver.run(
                "consume",
                CONSUMER,
                brokers=target.bootstrap,
                topic=name,
                partitions=self.partitions,
                count=count,
                threads=max(1, self.groups),
                group=fresh("readers") if self.groups else "",
            )
        return throughput(done, spent)

    def clean_up(self, target: Target, tools: Tools) -> None:
        drop(target, self._held.pop(target.name)[0])


@dataclass(frozen=True, slots=True)
class LoadedMemory(Plain):
    """After the cases of the aims, right after one more load."""

    name: str = "memory-loaded"
    words: str = "memory after all this load"
    seconds: float = 1.8
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        Produce().measure(target, tools)
        return memory(target)


def fill(target: Target, tools: Tools, name: str, partitions: int, batch: bytes, rounds: int) -> Metrics:
    """The same batch to every partition, over and over."""
    frame = topics.produce_frame(name, range(partitions), batch)
    with topics.client(target.address) as connection:
        topics.send_until_taken(connection, frame)
    if rounds == 1:
        return {}
    path = tools.directory / "frame"
    path.write_bytes(frame)
    with cpu_of(target) as spent:
        settings = {"brokers": target.bootstrap, "frame": path, "count": rounds - 1, "window": 4}
        done = tools.driver.run("replay", {}, **settings)
    return throughput(done, spent)


def forget_pages(target: Target, name: str) -> None:
    """Only clean pages can be dropped, so they are written first."""
    logs_of(target)  # Without its files nothing would be cold.
    for directory in files_of(target, name):
        for path in directory.glob("*.log"):
            descriptor = os.open(path, os.O_RDWR)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def throughput(done: dict[str, float], spent: list[float]) -> Metrics:
    gigabytes = done.get("all_bytes", done["bytes"]) / 1e9
    metrics = {
        "mb_s": done["bytes"] / 1e6 / done["seconds"],
        "client_cpu_s_per_gb": done["cpu_s"] / gigabytes,
    }
    if "messages" in done:
        metrics["messages_s"] = done["messages"] / done["seconds"]
    return metrics | per(spent, gigabytes, "broker_cpu_s_per_gb")


def _words(codec: str, partitions: int) -> str:
    kind = "" if codec == "none" else f"{codec}, "
    return f"{kind}{partitions:,} partition{'' if partitions == 1 else 's'}"
