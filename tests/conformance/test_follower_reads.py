"""Consumers of librdkafka in the racks of a cluster: they read from the follower that is near (KIP-392)."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.testing import Cluster
from riverlog.testing.cluster_broker import ClusterBroker
from tests.waiting import eventually

RACKS = ("a", "b", "c")
TOPIC = "orders"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(
        brokers=3,
        racks=RACKS,
        replica_selector_class="rack",
        default_replication_factor=3,
        transaction_state_log_replication_factor=3,
        transaction_state_log_min_isr=2,
    ) as running:
        running.create_topic(TOPIC, partitions=1)
        yield running


def served(cluster: Cluster, node_id: int, name: str = "follower_read") -> float:
    broker = cluster[node_id]
    assert isinstance(broker, ClusterBroker)
    metrics = broker.node.metrics
    assert isinstance(metrics, InMemoryMetrics)
    return metrics.value(f"riverlog_{name}_bytes_total")


def producer(cluster: Cluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0, **settings})


def consumer(cluster: Cluster, rack: str, **settings: Any) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.rack": rack,
            "group.id": f"readers-{rack}",
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 200,
            **settings,
        }
    )
    made.assign([TopicPartition(TOPIC, 0, 0)])
    return made


def read(consumer: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []

    def have_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None:
            assert message.error() is None, message.error()
            values.append(message.value() or b"")
        return len(values) >= count

    eventually(have_all, timeout_s=60)
    return values


def write(cluster: Cluster, values: list[bytes]) -> None:
    sender = producer(cluster)
    for value in values:
        sender.produce(TOPIC, value, partition=0)
    assert sender.flush(60) == 0


def test_a_consumer_reads_from_its_rack_and_from_the_leader_when_that_broker_dies(cluster: Cluster) -> None:
    leader = cluster.leaders(TOPIC)[0]
    assert leader is not None
    near = next(each for each in cluster.brokers if each != leader)
    first, second = ([b"%d-%d" % (turn, number) for number in range(100)] for turn in range(2))
    write(cluster, first)
    reader = consumer(cluster, RACKS[near - 1])
    assert read(reader, 100) == first
    size = sum(map(len, first))
    assert served(cluster, near) > size
    assert [served(cluster, each) for each in cluster.brokers if each != near] == [0, 0]
    assert served(cluster, leader, "fetched") == 0, "the leader has sent nobody a record but its followers"

    cluster.kill(near)
    write(cluster, second)
    assert read(reader, 100) == second, "each once, and in order"
    assert served(cluster, leader, "fetched") > size
    reader.close()


def test_a_follower_hides_what_was_aborted_and_what_is_open(cluster: Cluster) -> None:
    leader = cluster.leaders(TOPIC)[0]
    assert leader is not None
    near = next(each for each in cluster.brokers if each != leader)
    sender = producer(cluster, **{"transactional.id": "t"})
    sender.init_transactions(60)
    for number in range(20):
        sender.begin_transaction()
        sender.produce(TOPIC, b"%d" % number, partition=0)
        sender.flush(60)
        if number % 2:
            sender.abort_transaction(60)
        else:
            sender.commit_transaction(60)
    sender.begin_transaction()
    sender.produce(TOPIC, b"open", partition=0)
    assert sender.flush(60) == 0
    committed = [b"%d" % number for number in range(0, 20, 2)]
    reader = consumer(cluster, RACKS[near - 1], **{"isolation.level": "read_committed"})
    assert read(reader, 10) == committed
    sender.commit_transaction(60)
    assert read(reader, 1) == [b"open"]
    reader.close()
    assert served(cluster, near) > 0
    assert served(cluster, leader, "fetched") == 0
