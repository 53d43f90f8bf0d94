"""The load driver against a real broker: every mode moves what it says it moved. No times."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.compare import brokers, driver, topics
from benchmarks.compare.driver import Driver, DriverFailedError
from riverlog.records.compression import Codec
from riverlog.testing import Broker

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the driver is built with a C compiler")
EARLIEST = {"auto.offset.reset": "earliest"}
AT_ONCE = {"linger.ms": "0", "acks": "1"}


@pytest.fixture(scope="module")
def load() -> Driver:
    return driver.build()


@pytest.fixture(scope="module")
def target() -> Iterator[brokers.Target]:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        yield brokers.given("riverlog", host, int(port))


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_all_that_is_produced_is_consumed(load: Driver, target: brokers.Target, acks: str) -> None:
    name = f"through-{acks}"
    topics.create(target.address, name, 2)
    where = {"brokers": target.bootstrap, "topic": name, "partitions": 2}
    produced = load.run("produce", {"acks": acks}, **where, size=100, count=500)
    assert (produced["messages"], produced["bytes"]) == (500, 50_000)
    total = 500 + 64  # What it warms up with is in the topic as well.
    consumed = load.run("consume", {}, **where, count=total)
    assert consumed["all_bytes"] == total * 100


def test_every_group_reads_everything(load: Driver, target: brokers.Target) -> None:
    topics.create(target.address, "grouped", 2)
    where = {"brokers": target.bootstrap, "topic": "grouped", "partitions": 2}
    load.run("produce", AT_ONCE, **where, size=50, count=136)
    consumed = load.run("consume", EARLIEST, **where, count=200, threads=3, group="reader")
    assert consumed["all_bytes"] == 3 * 200 * 50


@pytest.mark.parametrize("mode", ["paced", "sync", "end-to-end"])
def test_latencies_are_in_order(load: Driver, target: brokers.Target, mode: str) -> None:
    topics.create(target.address, mode, 1)
    where = {"brokers": target.bootstrap, "topic": mode, "partitions": 1}
    done = load.run(mode, AT_ONCE, **where, size=100, rate=500, seconds=0.2, count=100)
    assert done["messages"] == 100
    assert 0 < done["p50_ms"] <= done["p99_ms"] <= done["p999_ms"] <= done["max_ms"]


def test_transactions_are_counted_when_they_are_committed(load: Driver, target: brokers.Target) -> None:
    topics.create(target.address, "paid", 1)
    where = {"brokers": target.bootstrap, "topic": "paid"}
    done = load.run("transactions", {"transactional.id": "mine"}, **where, batch=10, seconds=0.2)
    assert done["transactions"] >= 1


def test_a_group_of_one_gets_its_partitions(load: Driver, target: brokers.Target) -> None:
    topics.create(target.address, "joined", 1)
    where = {"brokers": target.bootstrap, "topic": "joined"}
    assert load.run("join", EARLIEST, **where, group="alone", threads=1)["members"] == 1


def test_frames_are_answered_over_plain_sockets(load: Driver, target: brokers.Target, tmp_path: Path) -> None:
    topics.create(target.address, "raw", 1)
    path = tmp_path / "frame"
    path.write_bytes(topics.produce_frame("raw", [0], topics.batch(1, 100, Codec.NONE)))
    where = {"brokers": target.bootstrap, "frame": path}
    assert load.run("replay", {}, **where, count=20, window=4)["requests"] == 20
    assert load.run("requests", {}, **where, connections=5, seconds=0.1)["requests"] >= 5


def test_a_load_that_cannot_be_made_fails_with_the_drivers_words(
    load: Driver, target: brokers.Target
) -> None:
    with pytest.raises(DriverFailedError, match="unknown mode nonsense"):
        load.run("nonsense", {}, brokers=target.bootstrap)
    with pytest.raises(DriverFailedError, match="No such configuration property"):
        load.run("produce", {"no.such.property": "1"}, brokers=target.bootstrap, topic="raw")
