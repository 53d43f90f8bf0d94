"""What commands tell while a broker of the cluster is held: it leads partitions, and says nothing."""

from collections.abc import Iterator

import pytest

from riverlog.testing import Cluster
from tests.cli.running import CommandLine

TIMEOUT_S = 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Broker 3 is held, and is not the controller. Others do not see it: its session with the metadata goes
    on."""
    with Cluster(3, replication_factor=3) as cluster:
        if cluster.controller == 3:
            cluster.kill(3)
            cluster.restart(3)
        cluster.create_topic("orders", partitions=3)
        for partition in range(3):
            cluster.produce("orders", "an order", partition=partition)
        cluster.pause(3)
        yield cluster
        cluster.resume(3)


@pytest.fixture
def riverlog(cluster: Cluster) -> CommandLine:
    return CommandLine(cluster.bootstrap_servers)


def test_a_topic_is_described_but_for_what_the_held_broker_would_tell(
    cluster: Cluster, riverlog: CommandLine
) -> None:
    told = riverlog("topic", "describe", "orders", "--timeout", str(TIMEOUT_S), "-o", "json")
    [topic] = told.json
    for each in topic["partitions"]:
        answers = each["leader"] != 3
        assert (each["leader_answers"], each["offline"]) == (answers, False)
        expected = {"1": 0, "2": 0, "3": None} if answers else dict.fromkeys("123")
        assert each["lag"] == expected
        assert (each["start"], each["end"], each["records"]) == ((0, 1, 1) if answers else (None,) * 3)
        assert (each["size"] is not None) is answers
    assert sorted(each["leader"] for each in topic["partitions"]) == [1, 2, 3]


def test_people_are_told_whose_leader_does_not_answer(cluster: Cluster, riverlog: CommandLine) -> None:
    [held] = [index for index, leader in cluster.leaders("orders").items() if leader == 3]
    shown = riverlog("topic", "describe", "orders", "--timeout", str(TIMEOUT_S)).stdout.splitlines()
    assert f"the leader does not answer: {held}" in shown
    assert shown[2 + held].split()[4:] == ["-,-,-", "-", "-", "-", "-"]


def test_the_status_names_who_does_not_answer_and_what_it_leads(riverlog: CommandLine) -> None:
    told = riverlog("cluster", "status", "--timeout", str(TIMEOUT_S), "-o", "json").json
    assert (told["brokers"], told["away"], told["no_answer"], told["silent_leader"]) == (3, [], [3], 1)
    [row] = [each for each in told["lacking"] if each["leader"] == 3]
    assert row["state"] == "silent leader"


def test_people_see_it_in_the_status(riverlog: CommandLine) -> None:
    shown = riverlog("cluster", "status", "--timeout", str(TIMEOUT_S)).stdout
    assert "away              -\nno answer         3\n" in shown
    assert "silent leader     1\n" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_offsets_of_a_leader_that_is_held_are_an_error_and_no_number(cluster: Cluster) -> None:
    told = CommandLine(cluster.bootstrap_servers)(
        "topic", "trim", "orders", "--before", "end", "--yes", "--timeout", "5", code=5
    )
    assert "no answer from the leader" in told.stderr


def test_a_controller_that_is_held_is_not_waited_for() -> None:
    with Cluster(3, racks=["a", "b", "c"]) as cluster:
        cluster.create_topic("orders", partitions=3)
        CommandLine(cluster.bootstrap_servers)("topic", "alter", "orders", "-s", "retention.ms=60000")
        riverlog = CommandLine(cluster.bootstrap_servers)
        [before] = riverlog("topic", "describe", "orders", "-o", "json").json
        held = cluster.controller
        cluster.pause(held)
        [topic] = riverlog("topic", "describe", "orders", "--timeout", str(TIMEOUT_S), "-o", "json").json
        told = riverlog("cluster", "status", "--timeout", str(TIMEOUT_S), "-o", "json").json
        unknown = riverlog("topic", "describe", "unknown", "--timeout", str(TIMEOUT_S), code=4)
        listed = riverlog("cluster", "brokers", "--timeout", str(TIMEOUT_S), "-o", "json").json
        cluster.resume(held)
    assert (topic["topic_id"], topic["configs"]) == (before["topic_id"], before["configs"])
    assert [each["leader"] for each in topic["partitions"] if not each["leader_answers"]] == [held]
    assert (told["controller"], told["no_answer"], told["silent_leader"]) == (held, [held], 1)
    assert "unknown" in unknown.stderr
    assert [(row["rack"], row["controller"]) for row in listed] == [
        (rack, number == held) for number, rack in enumerate("abc", start=1)
    ]
