"""Kafka's tools for elections, reassignments, features and ACLs, against a cluster of one."""

import json
import subprocess
import time
from pathlib import Path

from interop.conftest import KAFKA, Server, Tool, serving

TOPICS = "org.apache.kafka.tools.TopicCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGNMENT = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
METRICS = "org.apache.kafka.tools.ClientMetricsCommand"


def test_kafka_leader_election_finds_the_preferred_leaders_in_place(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "elected", "--partitions", "2")
    one = tool(ELECTION, *at, "--election-type", "preferred", "--topic", "elected", "--partition", "0")
    assert "Valid replica already elected for partitions elected-0" in one
    tool(ELECTION, *at, "--election-type", "preferred", "--all-topic-partitions")
    tool(ELECTION, *at, "--election-type", "unclean", "--all-topic-partitions")


def test_kafka_reassign_partitions_puts_partitions_where_they_are(
    server: Server, tool: Tool, tmp_path: Path
) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    tool(TOPICS, *at, "--create", "--topic", "reassigned", "--partitions", "2")
    wanted = tmp_path / "topics.json"
    wanted.write_text(json.dumps({"version": 1, "topics": [{"topic": "reassigned"}]}))
    node = _node(tool(TOPICS, *at, "--describe", "--topic", "reassigned"))
    generated = tool(
        REASSIGNMENT, *at, "--generate", "--topics-to-move-json-file", str(wanted), "--broker-list", node
    )
    plan = tmp_path / "plan.json"
    plan.write_text(generated.splitlines()[-1])
    from_file = ("--reassignment-json-file", str(plan))
    assert "Successfully started partition reassignments" in tool(REASSIGNMENT, *at, "--execute", *from_file)
    verified = tool(REASSIGNMENT, *at, "--verify", *from_file)
    assert "Reassignment of partition reassigned-0 is completed." in verified
    assert "No partition reassignments found." in tool(REASSIGNMENT, *at, "--list")


def test_kafka_reassign_partitions_moves_a_replica_to_another_directory(tool: Tool, tmp_path: Path) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    with serving(tmp_path, "--set", f"log.dirs={','.join(paths)}") as server:
        at = ("--bootstrap-server", server.bootstrap)
        tool(TOPICS, *at, "--create", "--topic", "moved")
        sent = ("--topic", "moved", "--num-records", "20000", "--record-size", "100", "--throughput", "-1")
        tool(PERFORMANCE, *sent, "--command-property", f"bootstrap.servers={server.bootstrap}")
        (home,) = [path for path in paths if (Path(path) / "moved-0").exists()]
        there = next(path for path in paths if path != home)
        node = int(_node(tool(TOPICS, *at, "--describe", "--topic", "moved")))
        partition = {"topic": "moved", "partition": 0, "replicas": [node], "log_dirs": [there]}
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        from_file = ("--reassignment-json-file", str(plan))
        slowly = ("--replica-alter-log-dirs-throttle", "1000000")
        started = tool(REASSIGNMENT, *at, "--execute", *from_file, *slowly)
        assert f"Successfully started moving log directory to {there} for replica moved-0" in started
        deadline = time.monotonic() + 60
        # Not "is completed": that is said of the partition's brokers, which do not change.
        while "completed successfully" not in (verified := tool(REASSIGNMENT, *at, "--verify", *from_file)):
            assert time.monotonic() < deadline, verified
        assert (Path(there) / "moved-0").exists()
        assert tool(OFFSETS, *at, "--topic", "moved").strip() == "moved:0:20000"


def test_kafka_features_lowers_and_raises(server: Server, tool: Tool) -> None:
    at = ("--bootstrap-server", server.bootstrap)
    level = "transaction.version"
    assert "downgraded to 1" in tool(FEATURES, *at, "downgrade", "--feature", f"{level}=1")
    assert "upgraded to 2" in tool(FEATURES, *at, "upgrade", "--feature", f"{level}=2")


def test_kafka_metadata_quorum_is_told_that_there_is_none(server: Server) -> None:
    command = [str(KAFKA), "run", QUORUM, "--bootstrap-server", server.bootstrap, "describe", "--status"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode != 0
    assert "UnsupportedVersionException" in answer.stdout + answer.stderr


def test_kafka_features_describes_what_is_in_force(server: Server, tool: Tool) -> None:
    described = tool(FEATURES, "--bootstrap-server", server.bootstrap, "describe")
    lines = [line.split() for line in described.splitlines()]
    in_force = {line[1]: line[-3] for line in lines if "FinalizedVersionLevel:" in line}
    assert in_force["transaction.version"] == "2"
    assert in_force["group.version"] == "1"


def test_kafka_acls_is_told_that_there_is_no_authorizer(server: Server) -> None:
    command = [str(KAFKA), "run", ACLS, "--bootstrap-server", server.bootstrap, "--list"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "SecurityDisabledException" in answer.stdout + answer.stderr


def test_kafka_client_metrics_finds_no_subscriptions(server: Server, tool: Tool) -> None:
    assert tool(METRICS, "--bootstrap-server", server.bootstrap, "--list").strip() == ""


def _node(described: str) -> str:
    return described.split("Leader: ")[1].split()[0]
