"""A stream from topic to topic while brokers of a cluster are killed: coordinator, leader, controller.

Each row is there once, whichever broker was what to the query.
"""

from collections import Counter
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from riverlog.client.cluster import ClientSettings
from riverlog.client.cluster import Cluster as Client
from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import address_of
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from tests.waiting import eventually

_PARTITIONS: Final = 3
_ROWS_AT_ONCE: Final = 30
_PATIENCE_S: Final = 120.0


def started(spark: SparkSession, servers: str, checkpoint: Path) -> StreamingQuery:
    rows = (
        spark.readStream.format("riverlog")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "in")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", _ROWS_AT_ONCE)
        .load()
    )
    return (
        rows.select("value")
        .writeStream.format("riverlog")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "out")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def coordinator(cluster: Cluster) -> int:
    """Of the driver's transactional id, or of that of a task: both begin in the same way."""
    addresses = tuple(address_of(each) for each in cluster.bootstrap_servers.split(","))
    with Client(ClientSettings(addresses, "test", 10, 10)) as client:
        logs = client.topics([TRANSACTIONS_TOPIC])[TRANSACTIONS_TOPIC].partitions
        named = next(iter(list_named(client)))
        leader = logs[partition_for(named, len(logs))].leader
    assert leader is not None
    return leader


def list_named(client: Client) -> set[str]:
    """Transactional ids that there are."""
    found: set[str] = set()
    for node_id in client.brokers():
        reply = client.ask_broker(node_id, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
        found |= {each.transactional_id for each in reply.transaction_states}
    return found


def leader(cluster: Cluster) -> int:
    found = cluster.leaders("out")[0]
    assert found is not None
    return found


def controller(cluster: Cluster) -> int:
    return cluster.controller


def test_each_row_is_there_once_whoever_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    with Cluster(brokers=3, replication_factor=3) as cluster:
        for name in ("in", "out"):
            cluster.create_topic(name, partitions=_PARTITIONS)
        sent = 0

        def send(batches: int) -> None:
            nonlocal sent
            for _ in range(batches * _ROWS_AT_ONCE // _PARTITIONS):
                for partition in range(_PARTITIONS):
                    cluster.produce("in", str(sent), partition=partition)
                    sent += 1

        def is_through(query: StreamingQuery) -> bool:
            assert query.exception() is None
            return len(cluster.consume("out")) >= sent

        query = started(spark, cluster.bootstrap_servers, tmp_path / "checkpoint")
        try:
            send(1)
            eventually(lambda: is_through(query), "the query does not begin", _PATIENCE_S)
            for find in 2 * (coordinator, leader, controller):
                victim = find(cluster)
                send(1)
                cluster.kill(victim)
                send(1)
                eventually(lambda: is_through(query), f"without its {find.__name__}", _PATIENCE_S)
                cluster.restart(victim)
            send(1)
            eventually(lambda: is_through(query), "with all brokers again", _PATIENCE_S)
        finally:
            query.stop()
        found = Counter(each.value for each in cluster.consume("out"))
        assert found == Counter(str(number).encode() for number in range(sent))
