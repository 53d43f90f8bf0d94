"""The fixtures, marks and reports of the pytest plugin, seen in runs of pytest of their own."""

import re
import subprocess
import sys
from pathlib import Path

RUN = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--strict-markers", "-q"]


def run(directory: Path, tests: str, *options: str, ini: str = "") -> str:
    """What pytest prints about a file of tests."""
    (directory / "test_it.py").write_text(tests)
    (directory / "pytest.ini").write_text(f"[pytest]\n{ini}")
    done = subprocess.run(
        [*RUN, *options], cwd=directory, capture_output=True, text=True, timeout=120, check=False
    )
    return done.stdout + done.stderr


def outcomes(output: str) -> dict[str, list[str]]:
    """The names of tests by how they ended."""
    found: dict[str, list[str]] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) \S*?::([^\s\[]+)", output, re.MULTILINE):
        found.setdefault(outcome, []).append(name)
    return found


def test_a_broker_of_a_tests_own_has_its_settings_and_the_others_share_one(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import pytest
shared = []

@pytest.fixture(scope="module")
def address(riverlog_broker):
    return riverlog_broker.bootstrap_servers

def partitions(broker):
    return broker.node.config.num_partitions

def test_shared(riverlog_broker, address):
    shared.append(riverlog_broker)
    assert partitions(riverlog_broker) == 4

@pytest.mark.riverlog(num_partitions=3)
class TestMarked:
    def test_of_the_class(self, riverlog_broker):
        assert partitions(riverlog_broker) == 3
        assert riverlog_broker is not shared[0]

    @pytest.mark.riverlog({"num.partitions": 2}, log_retention_ms=1000)
    def test_of_the_test(self, riverlog_broker, riverlog_topic):
        assert partitions(riverlog_broker) == 2
        assert riverlog_topic in riverlog_broker.node.image.topics

def test_with_a_clock(riverlog_clock, riverlog_broker, riverlog_topic_factory):
    topic = riverlog_topic_factory("orders", partitions=2, retention_ms=1000)
    assert topic.startswith("orders-") and topic != riverlog_topic_factory("orders")
    assert riverlog_broker is not shared[0] and riverlog_broker.clock is riverlog_clock
    riverlog_broker.produce(topic, "a", "b")
    riverlog_clock.advance(days=1)
    assert riverlog_broker.consume(topic) == []

def test_still_shared(riverlog_broker, address):
    assert riverlog_broker is shared[0] and address == riverlog_broker.bootstrap_servers

@pytest.mark.riverlog(num_partitionz=3)
def test_wrong_settings(riverlog_broker):
    pass

""",
        ini="riverlog_settings =\n    num.partitions = 4\n    log.retention.ms=-1\n",
    )
    assert outcomes(output) == {
        "PASSED": [
            "test_shared",
            "TestMarked::test_of_the_class",
            "TestMarked::test_of_the_test",
            "test_with_a_clock",
            "test_still_shared",
        ],
        "ERROR": ["test_wrong_settings"],
    }, output
    assert "num.partitions" in output


def test_faults_must_strike_and_do_not_outlive_their_test(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
from confluent_kafka import Producer

def send(broker, topic):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"x")
    assert producer.flush(20) == 0

def test_struck(riverlog_broker, riverlog_topic, riverlog_faults):
    riverlog_faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", times=1)
    send(riverlog_broker, riverlog_topic)

def test_never_struck(riverlog_broker, riverlog_topic, riverlog_faults):
    riverlog_faults.disconnect("Produce", topic="another")
    with riverlog_faults.error("EndTxn", "FENCED_INSTANCE_ID"):
        send(riverlog_broker, riverlog_topic)

def test_nobody_was_refused(riverlog_broker, riverlog_faults):
    with riverlog_faults.refuse_connections():
        pass

def test_failed_by_itself(riverlog_faults):
    riverlog_faults.disconnect("Fetch")
    assert False, "of its own"

def test_wrong_predicate(riverlog_broker, riverlog_topic, riverlog_faults):
    riverlog_faults.delay("Produce", seconds=1, when=lambda asked: asked.no_such_thing)
    send(riverlog_broker, riverlog_topic)

def test_afterwards(riverlog_broker, riverlog_topic):
    assert list(riverlog_broker.faults) == []
    send(riverlog_broker, riverlog_topic)
""",
    )
    assert outcomes(output) == {
        "PASSED": [
            "test_struck",
            "test_never_struck",
            "test_nobody_was_refused",
            "test_wrong_predicate",
            "test_afterwards",
        ],
        "ERROR": ["test_never_struck", "test_nobody_was_refused", "test_wrong_predicate"],
        "FAILED": ["test_failed_by_itself"],
    }, output
    assert "faults.refuse_connections() [0 hits]" in output
    assert "faults.disconnect('Produce', topic='another') [0 hits]" in output
    assert "faults.error('EndTxn', 'FENCED_INSTANCE_ID') [0 hits]" in output
    assert "no_such_thing" in output


def test_a_failure_is_reported_with_an_account_of_the_broker(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import logging
import pytest
from confluent_kafka import Consumer, TopicPartition
from riverlog.testing import Broker

@pytest.fixture
def mine():
    with Broker() as broker:
        yield broker

def test_it(riverlog_broker, riverlog_topic_factory):
    topic = riverlog_topic_factory("orders", partitions=2)
    riverlog_broker.produce(topic, "a", "b", "c")
    consumer = Consumer({"bootstrap.servers": riverlog_broker.bootstrap_servers, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()
    riverlog_broker.faults.delay("Fetch", seconds=1)

    async def warn(node):
        logging.getLogger("riverlog.anything").warning("of %s", "importance")

    riverlog_broker.call(warn)
    assert False

def test_of_a_broker_that_was_killed(mine):
    mine.kill()
    assert False

def test_that_passes(riverlog_broker):
    pass
""",
    )
    assert outcomes(output) == {
        "PASSED": ["test_that_passes"],
        "FAILED": ["test_it", "test_of_a_broker_that_was_killed"],
    }, output
    assert "riverlog: riverlog_broker" in output
    assert re.search(r"topic orders-\w+ \(2 partitions, \d+ bytes\), offsets 0: 0 to 2, 1: 0 to 1", output)
    assert re.search(r"group readers is Empty with 0 members: orders-\w+-0 at 1, lag 1", output)
    assert "fault faults.delay('Fetch', seconds=1) [0 hits]" in output
    assert "WARNING riverlog.anything: of importance" in output
    assert "riverlog: mine" in output
    assert "The broker is not running" in output


def test_a_failure_is_reported_with_an_account_of_each_broker_of_a_cluster(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import logging
import pytest
from riverlog.testing import Cluster

@pytest.fixture
def processes():
    with Cluster(brokers=2, processes=True) as cluster:
        yield cluster

@pytest.mark.parametrize("riverlog_cluster", [{"brokers": 4}], indirect=True)
def test_it(riverlog_cluster):
    riverlog_cluster.create_topic("orders", partitions=4)
    for partition, leader in riverlog_cluster.leaders("orders").items():
        riverlog_cluster.produce("orders", *"abc"[:leader], partition=partition)
    riverlog_cluster[1].faults.delay("Fetch", seconds=1)

    async def warn(node):
        logging.getLogger("riverlog.anything").warning("of %s", "importance")

    riverlog_cluster[2].call(warn)
    riverlog_cluster.kill(3)
    riverlog_cluster.pause(4)
    assert False

def test_of_processes(processes):
    processes.kill(2)
    assert False
""",
    )
    assert outcomes(output) == {"FAILED": ["test_it", "test_of_processes"]}, re.sub(r"\[.*?\]", "", output)
    assert "riverlog: riverlog_cluster" in output
    for leader in (1, 2):
        topic = r"topic orders \(4 partitions, \d+ bytes\), leads (\d), offsets \1: 0 to"
        assert re.search(rf"broker {leader} at 127\.0\.0\.1:\d+\n  {topic} {leader}\n", output), output
    assert "fault faults.delay('Fetch', seconds=1) [0 hits]" in output.split("broker 2 at")[0]
    assert "WARNING riverlog.anything: of importance" in output.split("broker 2 at")[1]
    assert "broker 3 is not running\nbroker 4 is paused\n" in output
    assert re.search(r"riverlog: processes -+\nbroker 1 at 127\.0\.0\.1:\d+\n  process \d+\n", output)
    assert "broker 2 is not running\n" in output.split("riverlog: processes")[1]


def test_an_ini_line_that_is_no_setting_is_told(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        "def test_it(riverlog_broker): pass\n",
        ini="riverlog_settings = num.partitions: 3\n",
    )
    assert "riverlog_settings: 'num.partitions: 3' is not of the form `name = value`." in output


def test_workers_of_xdist_have_a_broker_each(tmp_path: Path) -> None:
    output = run(
        tmp_path,
        """
import pathlib
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(riverlog_broker, riverlog_topic, worker_id, number):
    riverlog_broker.produce(riverlog_topic, str(number))
    assert [each.value for each in riverlog_broker.consume(riverlog_topic)] == [str(number).encode()]
    pathlib.Path(f"{worker_id}-{number}").write_text(riverlog_broker.bootstrap_servers)
""",
        "-n2",
        "--dist=each",
    )
    assert "8 passed" in output
    by_worker = {
        worker: {path.read_text() for path in tmp_path.glob(f"{worker}-*")} for worker in ("gw0", "gw1")
    }
    assert [len(addresses) for addresses in by_worker.values()] == [1, 1]
    assert by_worker["gw0"] != by_worker["gw1"]
