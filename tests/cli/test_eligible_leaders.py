"""`topic describe` shows who may lead beside the ISR."""

from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.eligible_leaders import Eligible, eligible_leaders
from riverlog.metadata import layout
from riverlog.metadata.payloads import decode_partition, encode_partition
from riverlog.model.ids import NodeId
from riverlog.node.node import Node
from riverlog.testing import Broker
from tests.cli.running import CommandLine
from tests.waiting import eventually


async def _name_eligible(node: Node) -> None:
    """As a controller would when other brokers had left the ISR below its minimum."""
    store, path = node._follower._store, layout.partition_state("orders", 1)
    state = await store.get(path)
    assert state is not None
    named = decode_partition(path, state.data)._replace(elr=(NodeId(2),), last_known_elr=(NodeId(3),))
    await store.set(path, encode_partition(named))


def test_replicas_that_may_lead_are_shown_where_there_are_any() -> None:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        riverlog = CommandLine(broker.bootstrap_servers)
        assert "ELR" not in riverlog("topic", "describe", "orders").stdout.splitlines()[1].split()

        broker.call(_name_eligible)
        connection = Connection(broker.bootstrap_servers, 10, {})
        eventually(lambda: eligible_leaders(connection, ["orders"])["orders", 1] == Eligible([2], [3]))

        [topic] = riverlog("topic", "describe", "orders", "-o", "json").json
        assert [(each["elr"], each["last_known_elr"]) for each in topic["partitions"]] == [
            ([], []),
            ([2], [3]),
        ]
        assert "LAST KNOWN ELR" in riverlog("topic", "describe", "orders").stdout.upper().replace("_", " ")


def test_they_are_not_known_where_brokers_cannot_be_asked_directly() -> None:
    with Broker() as broker:
        assert (
            eligible_leaders(Connection(broker.bootstrap_servers, 10, {"security.protocol": "ssl"}), ["t"])
            == {}
        )


def test_a_topic_of_many_partitions_is_told_page_by_page() -> None:
    with Broker() as broker:
        broker.create_topic("wide", partitions=2100)
        found = eligible_leaders(Connection(broker.bootstrap_servers, 30, {}), ["wide"])
    assert sorted(found) == [("wide", index) for index in range(2100)]
