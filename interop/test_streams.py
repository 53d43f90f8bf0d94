"""A Kafka Streams application counts exactly once while it, and the broker under it, are killed.

The application (java/CountOrders.java) needs groups, transactions with offsets, internal topics with their
settings, and the restoring of a store from its changelog. Every kill is SIGKILL, sent once a transaction is
seen open; that it stays open is checked after the kills of the application.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from interop.conftest import KAFKA, RIVERLOG
from interop.orders import APPLICATION, INPUT, OUTPUT, PARTITIONS, Orders, Victim, wait_until

KILLS_TRIED_MAX = 5


class Cluster:
    """One broker, killed and restarted at the same address."""

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
    orders = Orders(cluster.bootstrap)
    command = (str(KAFKA), "run", str(APPLICATION), cluster.bootstrap, INPUT, OUTPUT, str(tmp_path / "state"))
    application = Victim(*command, errors=tmp_path / "application.log")
    try:
        for target in ("application", "broker", "application", "application"):
            if target == "broker":
                orders.order()
                wait_until(orders.has_open_transaction, application)
                cluster.kill_and_restart()
            else:
                _kill_in_a_transaction(orders, application, command)
        orders.order()
        wait_until(lambda: len(orders.committed(OUTPUT)) >= orders.ordered.total(), application)
        application.stop()
    finally:
        if application.is_running():
            application.kill()
    assert "Exception" not in application.errors(), application.errors()
    orders.assert_counted_exactly_once()


def _kill_in_a_transaction(orders: Orders, application: Victim, command: tuple[str, ...]) -> None:
    """Kill and start the application; again where the transaction that was seen ended just before."""
    for _ in range(KILLS_TRIED_MAX):
        orders.order()
        wait_until(orders.has_open_transaction, application)
        application.kill()
        is_open = orders.has_open_transaction()
        application.start(*command)
        if is_open:
            return
    pytest.fail("no kill left a transaction open")
