"""The embedded broker that users' tests get."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from riverlog.model.errors import ConfigError, DirectoryInUseError, RiverlogError
from riverlog.testing import Broker
from tests.broker.raw_client import RawClient


def round_trip(bootstrap_servers: str, topic: str, value: bytes) -> bytes | None:
    """Produce and consume one record with a stock client."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, value, partition=0)
    assert producer.flush(10) == 0
    settings = {"bootstrap.servers": bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        received: bytes | None = message.value()
        return received
    finally:
        consumer.close()


def test_a_stock_client_produces_and_consumes(riverlog_broker: Broker, riverlog_topic: str) -> None:
    assert round_trip(riverlog_broker.bootstrap_servers, riverlog_topic, b"hello") == b"hello"


def test_settings_are_given_by_name_or_as_keywords() -> None:
    with Broker({"num.partitions": 3, "auto.create.topics.enable": False}, log_retention_ms=1000) as broker:
        assert broker.node.config.num_partitions == 3
        assert broker.node.config.auto_create_topics is False


def test_an_unknown_setting_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(num_partitionz=3).start()


def test_the_temporary_directory_goes_and_a_given_one_stays(tmp_path: Path) -> None:
    with Broker() as broker:
        temporary = broker.data_dir
        assert os.path.isdir(temporary)
    assert not os.path.exists(temporary)
    with Broker(data_dir=str(tmp_path / "kept")) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
    with Broker(data_dir=str(tmp_path / "kept")) as broker, RawClient(broker) as client:
        assert client.fetch("orders", 0).high_watermark == 1


def test_a_restart_keeps_the_port_and_the_data() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
        with RawClient(broker) as client:
            client.produce_to_new_topic("orders")
        broker.restart()
        assert broker.bootstrap_servers == address
        broker.kill()
        broker.restart()
        assert broker.bootstrap_servers == address
        with RawClient(broker) as client:
            assert client.fetch("orders", 0).high_watermark == 1


def test_what_keeps_a_broker_from_starting_is_raised_and_leaves_nothing(tmp_path: Path) -> None:
    with Broker(data_dir=str(tmp_path)):
        threads = threading.active_count()
        with pytest.raises(DirectoryInUseError):
            Broker(data_dir=str(tmp_path)).start()
        assert threading.active_count() == threads


def test_a_topic_that_cannot_be_created_is_an_error(riverlog_broker: Broker) -> None:
    with pytest.raises(RiverlogError, match="INVALID_TOPIC"):
        riverlog_broker.create_topic("no/such/name")
    with pytest.raises(RiverlogError, match="INVALID_CONFIG"):
        riverlog_broker.create_topic("odd", config={"no.such.setting": 1})


def test_it_works_in_an_async_with_statement() -> None:
    async def main() -> None:
        async with Broker() as broker:
            reader, writer = await asyncio.open_connection(*broker.bootstrap_servers.rsplit(":", 1))
            writer.close()
            await writer.wait_closed()
            assert reader is not None

    asyncio.run(main())


def test_stopping_leaves_no_thread_and_no_descriptor() -> None:
    with Broker() as broker:
        broker.create_topic("warm-up")
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with Broker() as broker, RawClient(broker) as client:
            client.produce_to_new_topic("orders")
            client.send_long_poll("orders", 1)
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def test_asking_a_stopped_broker_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="start"):
        _ = Broker().bootstrap_servers


@pytest.mark.parametrize(
    "use",
    [
        lambda broker: broker.bootstrap_servers,
        lambda broker: broker.data_dir,
        lambda broker: broker.node,
        lambda broker: broker.create_topic("orders"),
        lambda broker: broker.produce("orders", "x"),
        lambda broker: broker.consume("orders"),
        lambda broker: broker.committed("group"),
        lambda broker: broker.account(),
    ],
)
def test_use_before_the_start_is_one_clear_error(use: Callable[[Broker], object]) -> None:
    with pytest.raises(
        RuntimeError, match=r"^The broker is not running. Call start\(\), or use it in a with"
    ):
        use(Broker())


def test_settings_are_checked_before_anything_is_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for wrong in ({"num.partitionz": 3}, {"num.partitions": "many"}, {"listeners": "nonsense"}):
        with pytest.raises(ConfigError):
            Broker(wrong)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [str, Path])
def test_the_data_directory_is_a_string_or_a_path(tmp_path: Path, kind: Callable[[Path], str | Path]) -> None:
    with Broker(data_dir=kind(tmp_path / "data")) as broker:
        assert broker.data_dir == str(tmp_path / "data")
    assert (tmp_path / "data" / "meta.properties").exists()


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "broker.kill()", "1 / 0"])
def test_nothing_is_left_by_a_process_that_never_stops_its_broker(tmp_path: Path, end: str) -> None:
    code = f"""
from riverlog.testing import Broker
broker = Broker().start()
broker.create_topic("orders")
broker.produce("orders", "x")
print(broker.data_dir)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.startswith(str(tmp_path))
    assert not list(tmp_path.iterdir())
    assert bool(done.stderr) is (end == "1 / 0")


def test_its_repr_tells_address_topics_and_sizes() -> None:
    broker = Broker()
    assert repr(broker) == "<Broker, not running>"
    with broker:
        assert repr(broker) == f"<Broker at {broker.bootstrap_servers}, no topics>"
        broker.create_topic("orders", partitions=3)
        broker.produce("orders", b"x" * 2000)
        assert re.fullmatch(
            rf"<Broker at {broker.bootstrap_servers}, 1 topic: orders \(3 partitions, 2\.1 kB\)>",
            repr(broker),
        )
        for number in range(7):
            broker.create_topic(f"other-{number}")
        assert repr(broker).endswith(" and 3 more>")
        seen: list[str] = []

        async def look(node: object) -> None:
            seen.append(repr(broker))

        broker.call(look)
        assert seen == [f"<Broker at {broker.bootstrap_servers}>"], "its own thread cannot wait for itself"


def test_warnings_are_printed_as_without_a_broker() -> None:
    code = """
import logging
from riverlog.testing import Broker
with Broker():
    logging.getLogger("riverlog.anything").warning("once")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == "once\n"


def test_the_plugin_does_not_load_the_broker() -> None:
    code = (
        "import sys, riverlog.testing, riverlog.testing.pytest_plugin;"
        "print([name for name in sys.modules if name.startswith('riverlog.') and 'testing' not in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
