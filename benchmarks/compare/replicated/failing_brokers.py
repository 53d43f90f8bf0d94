"""How long a broker that ends is missed: killed and left, killed and started again, and restarted in turn."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, NotMeasurableError, Plain, Tools, fresh
from benchmarks.compare.replicated.clusters import SESSION_MS, Cluster, cluster_of
from benchmarks.compare.replicated.watching import PARTITIONS, Writes, replicated, wait_in_sync

RATE = 1_000
AT_MOST_S = 150.0
_BEFORE_S, _AFTER_S = 1.0, 1.0


@dataclass(frozen=True, slots=True)
class Failover(Plain):
    """Until every partition takes a record with acks=all again; another broker is killed each time."""

    name: str = "replicated-failover"
    words: str = f"kill -9 of a broker, session of {SESSION_MS / 1000:g} s, until all partitions are written"
    seconds: float = 15.0
    limit: str | None = None
    _turns: dict[str, int] = field(default_factory=dict, compare=False)

    def measure(self, target: Target, tools: Tools) -> Metrics:
        cluster = cluster_of(target)
        if cluster.restarts_by_itself:
            raise NotMeasurableError("its supervisor starts the broker again: see replicated-kill-restart")
        victim = next_victim(self._turns, cluster)
        with replicated(cluster, "failing") as name:
            writes = Writes(cluster, name)
            writes.take()
            started_s = time.perf_counter()
            cluster.kill(victim)
            try:
                writes.take(without=[victim])
                missed_s = time.perf_counter() - started_s
            finally:
                cluster.start(victim)
            wait_in_sync(cluster, [name])
        return {"missed_s": missed_s}


@dataclass(frozen=True, slots=True)
class KillAndRestart(Plain):
    """The same where somebody starts the process again at once, as a supervisor does."""

    name: str = "replicated-kill-restart"
    words: str = "kill -9 of a broker that is started again at once, until all partitions are written"
    seconds: float = 10.0
    limit: str | None = None
    _turns: dict[str, int] = field(default_factory=dict, compare=False)

    def measure(self, target: Target, tools: Tools) -> Metrics:
        cluster = cluster_of(target)
        victim = next_victim(self._turns, cluster)
        with replicated(cluster, "restarted") as name:
            writes = Writes(cluster, name)
            writes.take()
            started_s = time.perf_counter()
            cluster.kill(victim)
            cluster.start(victim)
            writes.take()
            missed_s = time.perf_counter() - started_s
            wait_in_sync(cluster, [name])
        return {"missed_s": missed_s}


@dataclass(frozen=True, slots=True)
class RollingRestart(Plain):
    """One broker after the other, each when all replicas are in sync again, under a paced producer."""

    name: str = "replicated-rolling-restart"
    words: str = f"restart of each broker in turn at {RATE:,} msg/s, acks=all"
    seconds: float = 30.0
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        cluster, until = cluster_of(target), tools.directory / fresh("until")
        with replicated(cluster, "rolled") as name, ThreadPoolExecutor(1) as others:
            load = others.submit(_produce, cluster, tools, name, until)
            try:
                time.sleep(_BEFORE_S)
                for number in cluster.ports:
                    _check(load)
                    cluster.terminate(number)
                    cluster.start(number)
                    wait_in_sync(cluster, [name])
                time.sleep(_AFTER_S)
            finally:
                until.touch()
            done = load.result()
        return {each: done[each] for each in ("p50_ms", "p99_ms", "p999_ms", "max_ms", "failed")}


def next_victim(turns: dict[str, int], cluster: Cluster) -> int:
    turns[cluster.name] = turns.get(cluster.name, 0) + 1
    return 1 + turns[cluster.name] % len(cluster.ports)


def _produce(cluster: Cluster, tools: Tools, name: str, until: Path) -> dict[str, float]:
    """An application with librdkafka's own retries and time-outs; what it is told has failed is counted."""
    return tools.driver.run(
        "paced",
        {"acks": "all", "linger.ms": "0"},
        brokers=cluster.bootstrap,
        topic=name,
        partitions=PARTITIONS,
        size=100,
        rate=RATE,
        seconds=AT_MOST_S,
        until=until,
    )


def _check(load: "Future[dict[str, float]]") -> None:
    """A load that ended early says why."""
    if load.done():
        load.result()
