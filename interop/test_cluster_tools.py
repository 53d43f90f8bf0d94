"""Kafka's command line tools at a broker of three that is not the controller, with replicated topics."""

from collections.abc import Iterator

import pytest

from interop.conftest import Tool
from riverlog.testing import Cluster

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
ELECTIONS = "org.apache.kafka.tools.LeaderElectionCommand"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
SPREAD = "1:2:3,2:3:1,3:1:2"
"""Replicas of three partitions, of which each broker leads one."""
RECORDS = 1000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    replicated = {
        "default.replication.factor": 3,
        "min.insync.replicas": 2,
        "offsets.topic.replication.factor": 3,
    }
    with Cluster(3, replicated) as running:
        yield running


@pytest.fixture
def at(cluster: Cluster) -> tuple[str, str]:
    """The option that names a broker which is not the controller."""
    return "--bootstrap-server", cluster[_other(cluster)].bootstrap_servers


def _other(cluster: Cluster) -> int:
    return min(set(cluster.brokers) - {cluster.controller})


def test_kafka_topics_and_leader_election_follow_a_broker_that_goes_and_comes(
    cluster: Cluster, tool: Tool, at: tuple[str, str]
) -> None:
    tool(TOPICS, *at, "--create", "--topic", "spread", "--replica-assignment", SPREAD)
    described = tool(TOPICS, *at, "--describe", "--topic", "spread")
    assert "ReplicationFactor: 3" in described
    assert _leaders(described) == ["1", "2", "3"]
    troubles = (*at, "--describe", "--topic", "spread")
    assert tool(TOPICS, *troubles, "--under-replicated-partitions") == ""
    gone = next(iter(set(cluster.brokers) - {cluster.controller, _other(cluster)}))
    cluster[gone].stop()
    assert len(tool(TOPICS, *troubles, "--under-replicated-partitions").splitlines()) == 3
    assert len(tool(TOPICS, *troubles, "--at-min-isr-partitions").splitlines()) == 3
    assert tool(TOPICS, *troubles, "--unavailable-partitions") == ""
    away = _leaders(tool(TOPICS, *troubles))
    assert str(gone) not in away
    cluster.restart(gone)
    while tool(TOPICS, *troubles, "--under-replicated-partitions"):
        pass  # Each look takes a while, and the test has a time limit.
    preferred = (
        ELECTIONS,
        *at,
        "--election-type",
        "preferred",
        "--topic",
        "spread",
        "--partition",
        str(gone - 1),
    )
    assert f"Successfully completed leader election (PREFERRED) for partitions spread-{gone - 1}" in tool(
        *preferred
    )
    assert "Valid replica already elected" in tool(*preferred)
    assert _leaders(tool(TOPICS, *troubles)) == ["1", "2", "3"]


def _leaders(described: str) -> list[str]:
    return [line.split("Leader: ")[1].split()[0] for line in described.splitlines() if "Leader: " in line]


def test_console_tools_offsets_and_groups_work_over_brokers(tool: Tool, at: tuple[str, str]) -> None:
    tool(TOPICS, *at, "--create", "--topic", "lines", "--partitions", "3", "--replication-factor", "3")
    lines = [f"line {number}" for number in range(30)]
    tool(PRODUCER, *at, "--topic", "lines", "--producer-property", "acks=all", stdin="\n".join(lines) + "\n")
    ends = tool(OFFSETS, *at, "--topic", "lines").split()
    assert sum(int(line.rpartition(":")[2]) for line in ends) == len(lines)
    read = tool(
        CONSUMER, *at, "--topic", "lines", "--group", "readers", "--from-beginning",
        "--max-messages", "30", "--timeout-ms", "60000",
    )  # fmt: skip
    assert sorted(read.splitlines()) == sorted(lines)
    told = tool(GROUPS, *at, "--group", "readers", "--describe")
    rows = [line.split() for line in told.splitlines() if line.startswith("readers")]
    assert [(row[1], row[5]) for row in rows] == [("lines", "0")] * 3
    assert "(reset)" not in told
    assert "successful" in tool(GROUPS, *at, "--group", "readers", "--delete")


def test_kafka_configs_sets_topics_and_brokers(tool: Tool, at: tuple[str, str]) -> None:
    tool(TOPICS, *at, "--create", "--topic", "set", "--replication-factor", "3")
    for entity in (
        ("--entity-type", "topics", "--entity-name", "set", "min.insync.replicas=1"),
        ("--entity-type", "brokers", "--entity-default", "log.retention.ms=7200000"),
        ("--entity-type", "brokers", "--entity-name", "3", "log.cleaner.threads=2"),
    ):
        *named, setting = entity
        tool(CONFIGS, *at, "--alter", *named, "--add-config", setting)
        assert setting in tool(CONFIGS, *at, "--describe", *named)


def test_the_verifiable_producer_and_consumer_agree(tool: Tool, at: tuple[str, str]) -> None:
    tool(TOPICS, *at, "--create", "--topic", "verified", "--partitions", "3", "--replication-factor", "3")
    written = tool(
        VERIFIABLE_PRODUCER, *at, "--topic", "verified", "--max-messages", str(RECORDS), "--acks", "-1"
    )
    assert written.count('"name":"producer_send_success"') == RECORDS
    assert f'"acked":{RECORDS}' in written
    read = tool(
        VERIFIABLE_CONSUMER, *at, "--topic", "verified", "--group-id", "verifiers",
        "--max-messages", str(RECORDS), "--reset-policy", "earliest", "--verbose",
    )  # fmt: skip
    assert read.count('"name":"record_data"') >= RECORDS
