"""Clients of a real broker that leave while their request waits: nothing of them is kept until it ends."""

from collections.abc import Iterator

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.broker.raw_client import RawClient
from tests.waiting import eventually

JOIN_VERSION = 3  # The last one in which a new member need not ask twice.


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": "60000"}) as broker:
        yield broker


def connections(broker: Broker) -> int:
    metrics = broker.node.metrics
    assert isinstance(metrics, InMemoryMetrics)
    return int(metrics.value("riverlog_connections"))


def test_a_client_that_leaves_while_it_joins_a_group_is_let_go(broker: Broker) -> None:
    find = FindCoordinatorRequest(coordinator_keys=["group"], key_type=0)
    with RawClient(broker) as client:
        found = client.ask(ApiKey.FIND_COORDINATOR, 4, find)
        assert found.coordinators[0].error_code == ErrorCode.NONE
    join = JoinGroupRequest(
        group_id="group",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    with RawClient(broker) as client:
        client.send(ApiKey.JOIN_GROUP, JOIN_VERSION, join)
        eventually(lambda: connections(broker) == 1)
    eventually(lambda: connections(broker) == 0, "the connection is still there", timeout_s=5)


def test_a_client_that_leaves_while_it_waits_for_records_is_let_go(broker: Broker) -> None:
    broker.create_topic("orders")
    with RawClient(broker) as client:
        client.send_long_poll("orders")
        assert connections(broker) == 1
    eventually(lambda: connections(broker) == 0, "the connection is still there", timeout_s=5)
