"""`riverlog cluster`: a cluster that is started, and what is told of one whose brokers come and go."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path

import pytest

from riverlog.testing import Cluster
from riverlog.testing.cluster_records import brokers_known_to
from tests.cli.running import EXECUTABLE, CommandLine
from tests.cli.seen import has_leaderless, is_without, until_all_see
from tests.processes import END_S, ROOT, START_S
from tests.waiting import eventually, is_readable


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, broker_rack="r1") as cluster:
        cluster.create_topic("orders", partitions=6)
        yield cluster


def test_all_is_well(cluster: Cluster) -> None:
    riverlog = CommandLine(cluster.bootstrap_servers)
    told = riverlog("cluster", "status", "-o", "json").json
    assert told["cluster"]
    assert told["controller"] == cluster.controller
    expected = {"brokers": 3, "topics": 1, "partitions": 6, "without_leader": 0, "under_replicated": 0}
    assert {name: told[name] for name in expected} == expected
    assert (told["away"], told["lacking"]) == ([], [])
    assert riverlog("cluster", "status").stdout.splitlines()[1].split() == ["brokers", "3"]


def test_a_partition_whose_broker_is_away_is_named_and_the_exit_code_says_so(cluster: Cluster) -> None:
    cluster.kill(2)
    riverlog = CommandLine(cluster.bootstrap_servers)
    eventually(lambda: None in cluster.leaders("orders").values())
    told = riverlog("cluster", "status", "-o", "json", code=1).json
    assert (told["brokers"], told["away"]) == (2, [2])
    assert {(each["leader"], *each["replicas"], *each["in_sync"]) for each in told["lacking"]} == {
        (None, 2, 2)
    }
    rows = riverlog("cluster", "brokers", "-o", "json").json
    assert [(row["broker"], row["address"] is None, row["leads"]) for row in rows][1] == (2, True, 0)


@pytest.fixture(scope="module")
def replicated() -> Iterator[Cluster]:
    """`orders` with three replicas, two of which are to have a record, and `alone` with one."""
    with Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=2) as cluster:
        cluster.create_topic("orders", partitions=3)
        CommandLine(cluster.bootstrap_servers)("topic", "create", "alone", "--partitions", "3", "-r", "1")
        for partition in range(3):
            cluster.produce("orders", "an order", partition=partition)
        eventually(lambda: None not in cluster.leaders("alone").values())
        yield cluster


def in_80_columns(text: str) -> str:
    assert max(map(len, text.splitlines())) <= 80, text
    return text


def test_the_lag_of_every_replica_is_told(replicated: Cluster) -> None:
    riverlog = CommandLine(replicated.bootstrap_servers)

    def lags() -> list[dict[str, int | None]]:
        [topic] = riverlog("topic", "describe", "orders", "-o", "json").json
        return [each["lag"] for each in topic["partitions"]]

    eventually(lambda: lags() == [{"1": 0, "2": 0, "3": 0}] * 3)
    assert riverlog("cluster", "status", "-o", "json").json["max_lag"] == 0
    leader = replicated.leaders("orders")[0]
    assert leader is not None
    behind, other = {1, 2, 3} - {leader}
    # It asks its leader no more, but answers clients.
    replicated.cut({leader}, {behind})
    produced = subprocess.Popen(
        [EXECUTABLE, "produce", "orders", "--partition", "0", "-X", "acks=1"],
        stdin=subprocess.PIPE,
        env={**os.environ, **riverlog.environment},
    )
    produced.communicate(b"1\n2\n3\n", timeout=END_S)
    assert produced.returncode == 0
    expected = {str(leader): 0, str(other): 0, str(behind): 3}
    eventually(lambda: lags()[0] == expected)
    assert riverlog("cluster", "status", "-o", "json").json["max_lag"] == 3
    shown = in_80_columns(riverlog("topic", "describe", "orders").stdout).splitlines()
    [topic] = riverlog("topic", "describe", "orders", "-o", "json").json
    replicas = [str(each) for each in topic["partitions"][0]["replicas"]]
    row = dict(zip(shown[1].split(), shown[2].split(), strict=False))
    assert row["LAG"] == ",".join(str(expected[each]) for each in replicas)
    replicated.heal()
    eventually(lambda: lags()[0] == {"1": 0, "2": 0, "3": 0})


def test_what_lacks_replicas_is_told_when_brokers_die(replicated: Cluster) -> None:
    replicated.kill(3)
    riverlog = CommandLine(replicated.bootstrap_servers)
    until_all_see(replicated, is_without("orders", 3))
    until_all_see(replicated, has_leaderless("alone", 1))
    told = riverlog("cluster", "status", "-o", "json", code=1).json
    assert (told["without_leader"], told["under_min_isr"], told["away"]) == (1, 0, [3])
    states = {(each["topic"], each["state"]) for each in told["lacking"]}
    assert states == {("alone", "offline"), ("orders", "under-replicated")}
    [orders, alone] = riverlog("topic", "describe", "orders", "alone", "-o", "json", code=1).json
    for each in orders["partitions"]:
        assert (each["offline"], each["under_min_isr"], each["under_replicated"]) == (False, False, True)
        assert each["lag"] == {"1": 0, "2": 0, "3": None}
        assert (sorted(each["isr"]), each["elr"]) == ([1, 2], [])
    assert sorted(each["offline"] for each in alone["partitions"]) == [False, False, True]
    assert riverlog("topic", "describe", "orders").stdout.count("under-replicated: 0, 1, 2\n") == 1

    replicated.kill(2)
    riverlog = CommandLine(replicated.bootstrap_servers)
    until_all_see(replicated, is_without("orders", 2, 3))
    until_all_see(replicated, has_leaderless("alone", 2))
    status = in_80_columns(riverlog("cluster", "status", code=1).stdout)
    assert "without leader    2\nunder min isr     3\nunder replicated  3\n" in status
    assert status.count("under min ISR") == 3
    assert status.count("offline") == 2
    described = in_80_columns(riverlog("topic", "describe", "orders", "alone", code=1).stdout)
    assert "fewer in sync than min.insync.replicas=2: 0, 1, 2\n" in described
    assert "without a leader: " in described
    [orders] = riverlog("topic", "describe", "orders", "-o", "json").json
    assert [(each["isr"], each["elr"]) for each in orders["partitions"]] == [([1], [2])] * 3


def test_brokers_are_listed_with_address_rack_and_what_they_hold(cluster: Cluster) -> None:
    rows = CommandLine(cluster.bootstrap_servers)("cluster", "brokers", "-o", "json").json
    assert [row["broker"] for row in rows] == [1, 2, 3]
    assert [row["address"] for row in rows] == cluster.bootstrap_servers.split(",")
    assert {row["rack"] for row in rows} == {"r1"}
    assert [row["broker"] for row in rows if row["controller"]] == [cluster.controller]
    assert sum(row["leads"] for row in rows) == sum(row["replicas"] for row in rows) == 6


def test_a_broker_is_described_with_its_partitions(cluster: Cluster) -> None:
    riverlog = CommandLine(cluster.bootstrap_servers)
    [told] = riverlog("cluster", "describe", "3", "-o", "json").json
    assert {each["leader"] for each in told["partitions"]} == {3}
    assert "broker 3 at " in riverlog("cluster", "describe", "3").stdout
    assert len(riverlog("cluster", "describe", "-o", "json").json) == 3
    assert "there is no broker 7" in riverlog("cluster", "describe", "7", code=4).stderr


def test_who_has_the_preferred_leader_needs_no_election(cluster: Cluster) -> None:
    riverlog = CommandLine(cluster.bootstrap_servers)
    rows = riverlog("cluster", "elect", "orders", "-o", "json").json
    assert [(row["partition"], row["outcome"]) for row in rows] == [
        (index, "not needed") for index in range(6)
    ]
    [row] = riverlog("cluster", "elect", "orders", "-p", "3", "--unclean", "--yes", "-o", "json").json
    assert (row["partition"], row["outcome"]) == (3, "not needed")
    assert "0 leaders elected" in riverlog("cluster", "elect", "--all").stderr


def test_a_leader_that_cannot_be_elected_is_told_with_the_reason(cluster: Cluster) -> None:
    cluster.kill(2)
    eventually(lambda: None in cluster.leaders("orders").values())
    [gone, *_] = [index for index, leader in cluster.leaders("orders").items() if leader is None]
    riverlog = CommandLine(cluster.bootstrap_servers)
    for options, reason in (
        ((), "PREFERRED_LEADER_NOT_AVAILABLE"),
        (("--unclean", "--yes"), "ELIGIBLE_LEADERS_"),
    ):
        [row] = riverlog("cluster", "elect", "orders", "-p", str(gone), *options, "-o", "json", code=1).json
        assert row["outcome"] == "failed"
        assert row["reason"].startswith(reason)


@pytest.mark.parametrize("arguments", [(), ("orders", "--all"), ("--all", "-p", "1")])
def test_whose_leaders_to_elect_must_be_said(riverlog: CommandLine, arguments: tuple[str, ...]) -> None:
    riverlog("cluster", "elect", *arguments, code=2)


def test_an_unclean_election_is_asked_about(riverlog: CommandLine) -> None:
    told = riverlog("cluster", "elect", riverlog.topic(), "--unclean", code=2)
    assert "lost for good" in told.stderr


@pytest.mark.parametrize("command", ["cluster status", "topic describe orders"])
def test_watch_shows_it_again_until_it_is_interrupted(cluster: Cluster, command: str) -> None:
    watching = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "riverlog",
            *command.split(),
            "--watch",
            "--interval",
            "0.1",
            "-o",
            "json",
            "-b",
            cluster.bootstrap_servers,
        ],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    with watching:
        assert watching.stdout is not None
        told = [json.loads(watching.stdout.readline()) for _ in range(2)]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(END_S) == 0
    for each in told:
        assert each["brokers"] == 3 if command == "cluster status" else len(each[0]["partitions"]) == 6


def test_in_a_file_a_line_with_the_time_is_before_each_table(cluster: Cluster) -> None:
    watching = subprocess.Popen(
        [EXECUTABLE, "cluster", "status", "--watch", "--interval", "0.1", "-b", cluster.bootstrap_servers],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with watching:
        assert watching.stdout is not None
        lines = list(islice(watching.stdout, 20))
        watching.send_signal(signal.SIGINT)
        assert watching.wait(END_S) == 0
    begins = [index for index, line in enumerate(lines) if line.startswith("--- ")]
    assert begins[0] == 0
    times = [datetime.fromisoformat(lines[index].split()[1]) for index in begins]
    assert len(times) > 1
    assert times == sorted(times)
    tables = [lines[begin + 1 : end] for begin, end in pairwise(begins)]
    assert all(each == tables[0] for each in tables)
    assert tables[0][1].split() == ["brokers", "3"]


def test_a_single_node_is_a_cluster_of_one(riverlog: CommandLine) -> None:
    assert riverlog("cluster", "status", "-o", "json").json["brokers"] == 1
    assert len(riverlog("cluster", "brokers", "-o", "json").json) == 1


def test_up_starts_a_cluster_in_a_directory_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "riverlog", "cluster", "up", "--brokers", "2", "--listen", "127.0.0.1:0"]
    started = subprocess.Popen(
        [*command, "--dir", str(tmp_path / "dev")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    with started:
        try:
            assert started.stdout is not None
            assert is_readable(started.stdout, START_S)
            servers = started.stdout.readline().decode().removeprefix("riverlog ready on ").strip().split(",")
            eventually(lambda: brokers_known_to(servers[1], 10)[0] == {1, 2})
        finally:
            started.send_signal(signal.SIGINT)
            assert started.wait(END_S) == 0
    assert sorted(each.name for each in (tmp_path / "dev").iterdir()) == [
        ".lock",
        "broker-1",
        "broker-2",
        "metadata",
    ]


def test_a_missing_package_is_told_once_and_leaves_nothing_behind(
    tmp_path: Path, riverlog: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("riverlog.node.zookeeper_extra.find_spec", lambda name: None)
    up = ("cluster", "up", "--brokers", "4", "--dir", str(tmp_path / "dev"))

    refused = riverlog(*up, "--zookeeper", "127.0.0.1:1", code=2).stderr

    assert refused.count("pip install 'riverlog[zookeeper]'") == 1
    assert list(tmp_path.iterdir()) == []


def test_fewer_brokers_are_refused_in_the_words_of_up(tmp_path: Path, riverlog: CommandLine) -> None:
    for number in ("1", "2", "3"):
        (tmp_path / f"broker-{number}" / "orders-0").mkdir(parents=True)

    refused = riverlog("cluster", "up", "--brokers", "2", "--dir", str(tmp_path), code=1).stderr

    assert f"`riverlog cluster up --brokers 3 --dir {tmp_path}`" in refused
