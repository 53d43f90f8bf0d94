"""How soon another broker leads what was in a directory that fails: three processes and a ZooKeeper server.

Each broker has two directories. A limit on the size of files makes the next write of a large record fail, and
not for want of room, which is what a broken disk does. The time is the one that an application sees: from
sending the record, which the leader cannot write, until the next leader has acknowledged it (acks=all).
"""

import resource
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from confluent_kafka import Producer

from benchmarks.figures import Aim, Figure
from riverlog.testing import Cluster
from riverlog.testing.cluster_process import ClusterProcess

ROUNDS: Final = 5
PARTITIONS: Final = 3
TOPIC: Final = "handed-over"
LIMIT_BYTES: Final = 100_000
TIMEOUT_S: Final = 30.0
CLIENT: Final = {
    "enable.idempotence": True,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "linger.ms": 0,
}
"""Settings with which a client adds little to what the brokers take."""


def run() -> list[Figure]:
    times = [_hand_over() for _ in range(ROUNDS)]
    return [
        Figure("next leader after a directory failed, ZooKeeper", median(times), "s", aim=Aim(1.0)),
        Figure("the longest of them", max(times), "s", aim=Aim(1.0)),
    ]


def _hand_over() -> float:
    with TemporaryDirectory() as directory:
        cluster = Cluster(brokers=3, processes=True, zookeeper=True, min_insync_replicas=2)
        for node_id, broker in cluster.brokers.items():
            assert isinstance(broker, ClusterProcess)
            paths = [str(Path(directory, str(node_id), name)) for name in ("a", "b")]
            broker.data_dir = ",".join(paths)
        with cluster:
            return _next_leader_s(cluster)


def _next_leader_s(cluster: Cluster) -> float:
    cluster.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **CLIENT})
    for partition in range(PARTITIONS):
        producer.produce(TOPIC, "first", partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    leader = cluster.leaders(TOPIC)[0]
    assert leader is not None
    victim = cluster[leader]
    assert isinstance(victim, ClusterProcess)
    resource.prlimit(victim.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))
    sent_s = time.perf_counter()
    producer.produce(TOPIC, bytes(2 * LIMIT_BYTES), partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    acknowledged_s = time.perf_counter()
    assert cluster.leaders(TOPIC)[0] not in (None, leader), "it was written after all"
    return acknowledged_s - sent_s
