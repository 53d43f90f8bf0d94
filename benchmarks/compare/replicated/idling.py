"""What replicas cost that nobody writes: processor time, memory, descriptors, and the start of a broker."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.asking import ask
from benchmarks.compare import topics
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, NotMeasurableError, Plain, Tools, fresh
from benchmarks.compare.replicated.clusters import (
    COUNT,
    SESSION_MS,
    Cluster,
    WithZooKeeper,
    cluster_of,
    remove,
)
from benchmarks.compare.replicated.watching import look, replicated, wait_for
from benchmarks.servers import cpu_s
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

IDLE_PARTITIONS = 1_000
IDLE_S = 20.0
SETTLED_S = 3.0
MANY_PARTITIONS = 10_000
TOPIC_PARTITIONS = 500
_CREATE = 5
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class ReplicatedIdle(Plain):
    name: str = "replicated-idle"
    words: str = f"idle, {IDLE_PARTITIONS:,} partitions of three replicas"
    seconds: float = IDLE_S + SETTLED_S + 5.0
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        cluster = cluster_of(target)
        with replicated(cluster, "idle", IDLE_PARTITIONS):
            time.sleep(SETTLED_S)
            before = {number: cpu_s(cluster.pid(number)) for number in cluster.ports}
            started_s, all_before_s = time.perf_counter(), cluster.cpu_s
            time.sleep(IDLE_S * max(0.25, tools.scale))
            elapsed_s = time.perf_counter() - started_s
            shares = [(cpu_s(cluster.pid(number)) - spent) / elapsed_s for number, spent in before.items()]
            of_all = (cluster.cpu_s - all_before_s) / elapsed_s / COUNT
        return {"idle_percent": 100 * max(shares), "idle_all_percent": 100 * of_all}


@dataclass(frozen=True, slots=True)
class ManyReplicas(Plain):
    """Clusters of its own, of ours only: the aims are no ratios. The last broker is looked at.
    It leads nothing; in one cluster it copies nothing either, and in the other a replica of everything."""

    name: str = "replicated-many"
    words: str = f"{MANY_PARTITIONS:,} partitions of three replicas, a broker killed, missed, and started"
    seconds: float = 150.0
    limit: str | None = None

    def measure(self, target: Target, tools: Tools) -> Metrics:
        if not isinstance(target, WithZooKeeper):
            raise NotMeasurableError("measured with ZooKeeper only")
        count = tools.amount(MANY_PARTITIONS)
        without = _look_at_last(tools.directory / fresh("many"), count, ((1, 2), (2, 1)))
        copying = _look_at_last(tools.directory / fresh("many"), count, ((1, 2, 3), (2, 1, 3)))
        return {
            "start_s": copying.start_s,
            "start_cpu_s": copying.start_cpu_s,
            "in_sync_s": copying.in_sync_s,
            "replica_bytes": (copying.rss_bytes - without.rss_bytes) / count,
            "replica_descriptors": float(copying.descriptors - without.descriptors),
        }


class _Last(NamedTuple):
    """The last broker, after it was killed, taken for dead and started again."""

    start_s: float
    start_cpu_s: float
    in_sync_s: float
    rss_bytes: int
    descriptors: int
    """Of files; two brokers that are followed need a connection each."""


def _look_at_last(directory: Path, count: int, places: tuple[tuple[int, ...], ...]) -> _Last:
    cluster = WithZooKeeper(directory)
    try:
        cluster.launch()
        names = _create(cluster, count, places)
        replicas = len(places[0])
        wait_for("all in sync", lambda: _are_in_sync(cluster, names, replicas), every_s=_LOOK_S)
        cluster.kill(COUNT)
        left = sum(number != COUNT for number in places[0])
        wait_for("taken for dead", lambda: _are_in_sync(cluster, names, left), every_s=_LOOK_S)
        time.sleep(SESSION_MS / 1000 - _LOOK_S if left == replicas else 0)
        start_s = cluster.start_and_wait(COUNT)
        start_cpu_s = cpu_s(cluster.pid(COUNT))
        rest_s = wait_for("in sync again", lambda: _are_in_sync(cluster, names, replicas), every_s=_LOOK_S)
        time.sleep(SETTLED_S)
        process = psutil.Process(cluster.pid(COUNT))
        return _Last(
            start_s, start_cpu_s, start_s + rest_s, process.memory_info().rss, len(process.open_files())
        )
    finally:
        cluster.stop()
        remove(cluster)


def _create(cluster: Cluster, count: int, places: tuple[tuple[int, ...], ...]) -> list[str]:
    """Topics whose partitions are where they are wanted, the first of each place leading."""
    names = [fresh("many") for _ in range(-(-count // TOPIC_PARTITIONS))]
    wait_for("a controller", lambda: _is_created(cluster, names[0], places, count), every_s=_LOOK_S)
    for number, name in enumerate(names[1:], 1):
        wait_for(name, partial(_is_created, cluster, name, places, count - number * TOPIC_PARTITIONS))
    return names


def _is_created(cluster: Cluster, name: str, places: tuple[tuple[int, ...], ...], left: int) -> bool:
    assigned = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(places[index % len(places)]))
        for index in range(min(left, TOPIC_PARTITIONS))
    ]
    topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=assigned)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    try:
        with topics.client(cluster.address) as connection:
            code = ask(connection, ApiKey.CREATE_TOPICS, _CREATE, request).topics[0].error_code
    except OSError:
        return False
    return code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


def _are_in_sync(cluster: Cluster, names: list[str], replicas: int) -> bool:
    seen = look(cluster, names, without=[COUNT])
    return seen is not None and all(each.isr == replicas and each.leader > 0 for each in seen)
