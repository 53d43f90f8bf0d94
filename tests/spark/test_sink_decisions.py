"""The topic of decisions in a cluster, and the names of transactions."""

from riverlog.cli.asking.transactions import is_of_spark
from riverlog.client.cluster import ClientSettings
from riverlog.client.cluster import Cluster as Client
from riverlog.spark.sink.decisions import TOPIC, create_topic, driver_id, task_prefix
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import address_of
from tests.waiting import eventually


def test_decisions_have_as_many_replicas_as_the_transaction_log() -> None:
    with Cluster(brokers=3) as cluster:
        address = address_of(cluster.bootstrap_servers.split(",")[0])
        with Client(ClientSettings((address,), "test", 10, 10)) as client:
            create_topic(client)

            def replicas() -> set[int]:
                client.invalidate()  # Another broker may not have heard of the topic yet.
                partitions = client.topics([TOPIC])[TOPIC].partitions
                return {len(each.replicas) for each in partitions.values()}

            eventually(lambda: replicas() == {3}, "three replicas of each partition")


def test_the_command_line_knows_the_transactions_of_the_sink_by_their_names() -> None:
    assert is_of_spark(task_prefix("query"))
    assert is_of_spark(driver_id("query"))
    assert not is_of_spark("riverlog-sparkling")
