"""A Kafka Streams application counts exactly once while brokers of three are killed: the leader of what it
writes, the coordinator of its group, the one of its transactions, and the controller.

All topics have three replicas. Every kill is SIGKILL, sent while a transaction is open.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from interop.conftest import KAFKA
from interop.orders import APPLICATION, INPUT, OUTPUT, PARTITIONS, Orders, Victim, wait_until
from riverlog.testing import Cluster

GROUP = "count-orders"
TARGETS = ("leader", "coordinator of the group", "controller", "coordinator of transactions", "leader")
REPLICATED = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 1,
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, REPLICATED, processes=True) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
        for created in admin.create_topics([NewTopic(name, PARTITIONS) for name in (INPUT, OUTPUT)]).values():
            created.result(30)
        yield running


@pytest.mark.timeout(400)
def test_kafka_streams_counts_exactly_once_over_kills_of_leader_coordinators_and_controller(
    cluster: Cluster, tmp_path: Path
) -> None:
    orders = Orders(cluster.bootstrap_servers)
    command = (str(KAFKA), "run", str(APPLICATION), orders.bootstrap, INPUT, OUTPUT, str(tmp_path / "state"))
    application = Victim(*command, errors=tmp_path / "application.log")
    try:
        for target in TARGETS:
            orders.order()
            wait_until(orders.has_open_transaction, application)
            broker = _broker(cluster, target)
            cluster.kill(broker)
            cluster.restart(broker)
        orders.order()
        wait_until(lambda: len(orders.committed(OUTPUT)) >= orders.ordered.total(), application)
        application.stop()
    finally:
        if application.is_running():
            application.kill()
    assert "Exception" not in application.errors(), application.errors()
    orders.assert_counted_exactly_once()


def _broker(cluster: Cluster, target: str) -> int:
    if target == "controller":
        return cluster.controller
    if target == "coordinator of the group":
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        described = admin.describe_consumer_groups([GROUP], request_timeout=30)[GROUP].result(30)
        number: int = described.coordinator.id
        return number
    leader = cluster.leaders(OUTPUT if target == "leader" else "__transaction_state")[0]
    assert leader is not None
    return leader
