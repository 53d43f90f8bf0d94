"""What copies cost while there is load: as fast as it goes, and one message at a time. acks=all."""

from dataclasses import dataclass

from benchmarks.backed_memory import have_backed
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, Plain, Tools, cpu_of, memory, per
from benchmarks.compare.replicated.clusters import COUNT, cluster_of
from benchmarks.compare.replicated.watching import PARTITIONS, replicated
from benchmarks.compare.throughput import PRODUCED_BYTES, PRODUCER, SIZES, throughput

SYNCHRONOUS = 3_000
_ALL = {"acks": "all"}


@dataclass(frozen=True, slots=True)
class ReplicatedProduce(Plain):
    size: str = "1KB"
    limit: str | None = None

    @property
    def name(self) -> str:
        return f"replicated-produce-{self.size}"

    @property
    def words(self) -> str:
        return f"produce {self.size} to three replicas, {PARTITIONS} partitions, acks=all"

    @property
    def seconds(self) -> float:
        return 4.0

    def measure(self, target: Target, tools: Tools) -> Metrics:
        cluster, size = cluster_of(target), SIZES[self.size]
        count = tools.amount(PRODUCED_BYTES[size]) // size
        have_backed(tools.directory, COUNT * count * size)
        with replicated(cluster, "copied") as name:
            where = {"brokers": cluster.bootstrap, "topic": name, "partitions": PARTITIONS}
            with cpu_of(target) as spent:
                done = tools.driver.run("produce", PRODUCER | _ALL, **where, size=size, count=count)
            return throughput(done, spent) | memory(target)


@dataclass(frozen=True, slots=True)
class ReplicatedSynchronous(Plain):
    name: str = "replicated-sync"
    words: str = f"synchronous produce to three replicas, {PARTITIONS} partitions, acks=all"
    seconds: float = 4.0
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        cluster, count = cluster_of(target), tools.amount(SYNCHRONOUS)
        with replicated(cluster, "sync") as name:
            where = {"brokers": cluster.bootstrap, "topic": name, "partitions": PARTITIONS}
            with cpu_of(target) as spent:
                done = tools.driver.run("sync", _ALL | {"linger.ms": "0"}, **where, size=100, count=count)
        figures = {name: done[name] for name in ("p50_ms", "p99_ms", "p999_ms")}
        return figures | per(spent, count, "broker_cpu_us", 1e6)
