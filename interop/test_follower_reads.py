"""The Java consumer reads from the replica in its rack (KIP-392)."""

from interop.conftest import Tool
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.testing import Cluster
from riverlog.testing.cluster_broker import ClusterBroker

RACKS = ("a", "b", "c")


def served(cluster: Cluster, node_id: int, name: str) -> float:
    broker = cluster[node_id]
    assert isinstance(broker, ClusterBroker)
    metrics = broker.node.metrics
    assert isinstance(metrics, InMemoryMetrics)
    return metrics.value(f"riverlog_{name}_bytes_total")


def test_the_java_consumer_reads_from_the_follower_in_its_rack(tool: Tool) -> None:
    with Cluster(brokers=3, racks=RACKS, replication_factor=3, replica_selector_class="rack") as cluster:
        cluster.create_topic("orders")
        values = [f"order {number}" for number in range(100)]
        cluster.produce("orders", *values)
        leader = cluster.leaders("orders")[0]
        near = next(each for each in cluster.brokers if each != leader)
        assert leader is not None
        before = {each: served(cluster, each, "fetched") for each in cluster.brokers}
        printed = tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            "--bootstrap-server",
            cluster.bootstrap_servers,
            "--topic",
            "orders",
            "--partition",
            "0",
            "--offset",
            "earliest",
            "--max-messages",
            "100",
            "--command-property",
            f"client.rack={RACKS[near - 1]}",
        )
        assert printed.splitlines() == values
        assert served(cluster, near, "follower_read") > sum(map(len, values))
        assert served(cluster, leader, "fetched") == before[leader], "the leader has sent it nothing"
