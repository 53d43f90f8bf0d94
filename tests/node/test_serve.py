"""`riverlog serve` as a process: the ready line, signals, kill -9, and who may own a data directory."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from riverlog.records.batch import walk
from tests.broker.raw_client import ConnectionClosedError, RawClient, one_record
from tests.processes import ServedProcess
from tests.waiting import looks


def values(client: RawClient, topic: str, end: int) -> list[bytes]:
    """The last byte strings of all records, read back through fetches."""
    found: list[bytes] = []
    while len(found) < end:
        data = client.fetch(topic, len(found))
        assert data.error_code == 0
        records = bytes(data.records)  # type: ignore[arg-type]
        assert records, f"nothing at {len(found)}, though {end} were acknowledged"
        found += [records[at : at + header.size_bytes] for at, header in walk(records)]
    return found


def test_one_line_on_stdout_says_where_it_is_ready(tmp_path: Path) -> None:
    with ServedProcess(tmp_path / "data") as served:
        host, port = served.bootstrap_servers.rsplit(":", 1)
        assert (host, int(port) > 0) == ("127.0.0.1", True)
        with RawClient(served, 10) as client:
            client.produce_to_new_topic("first")
        assert served.stop() == 0
        assert served.stdout.read() == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_shuts_down_cleanly_and_the_next_start_recovers_nothing(tmp_path: Path, number: int) -> None:
    data = tmp_path / "data"
    with ServedProcess(data) as served:
        with RawClient(served) as client:
            client.produce_to_new_topic("orders")
        assert served.stop(number) == 0
    assert (data / ".kafka_cleanshutdown").exists()
    with ServedProcess(data) as served:
        with RawClient(served) as client:
            assert len(values(client, "orders", 1)) == 1
        assert "recovering" not in served.errors()
        assert not (data / ".kafka_cleanshutdown").exists(), "the marker must not outlive the start"


def test_further_signals_change_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServedProcess(data) as served:
        with RawClient(served) as client:
            client.produce_to_new_topic("orders")
            client.create_topic("many", partitions=40)
            for index in range(40):
                client.produce("many", one_record(), partition=index)
        for _ in looks(60, every_s=0):
            if served.process.poll() is not None:
                break
            os.kill(served.pid, signal.SIGTERM)
            os.kill(served.pid, signal.SIGINT)
        assert served.process.returncode == 0
    assert (data / ".kafka_cleanshutdown").exists()


def test_after_kill_9_only_what_was_written_since_the_start_is_recovered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServedProcess(data) as served:
        with RawClient(served) as client:
            client.create_topic("many", partitions=20)
            for index in range(20):
                client.produce("many", one_record(), partition=index)
        assert served.stop() == 0
    with ServedProcess(data) as served:
        with RawClient(served) as client:
            client.produce("many", one_record(), partition=7)
            client.produce("many", one_record(), partition=11)
        served.kill()
    with ServedProcess(data) as served:
        assert "recovering 2 logs" in served.errors()
        with RawClient(served) as client:
            assert len(values(client, "many", 1)) == 1


def _kill_when(event: threading.Event, served: ServedProcess) -> None:
    event.wait(60)
    served.kill()


def test_everything_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    data = tmp_path / "data"
    acknowledged = 0
    for _ in range(3):
        with ServedProcess(data) as served, RawClient(served) as client:
            client.create_topic("orders")
            if acknowledged:
                found = values(client, "orders", acknowledged)
                assert [batch[-8:-1] for batch in found] == [b"%07d" % number for number in range(len(found))]
                acknowledged = len(found)
            enough, goal = threading.Event(), acknowledged + 50
            killer = threading.Thread(target=_kill_when, args=(enough, served))
            killer.start()
            try:
                while True:
                    if acknowledged == goal:
                        enough.set()  # Killed while one of the next requests is under way.
                    reply = client.produce("orders", one_record(b"%07d" % acknowledged), acks=-1)
                    assert (reply.error_code, reply.base_offset) == (0, acknowledged)
                    acknowledged += 1
            except (ConnectionClosedError, ConnectionError):
                pass
            finally:
                killer.join()
    assert acknowledged > 100
    with ServedProcess(data) as served, RawClient(served) as client:
        found = values(client, "orders", acknowledged)
        assert [batch[-8:-1] for batch in found] == [b"%07d" % number for number in range(len(found))]


def test_a_second_owner_of_a_data_directory_is_refused(tmp_path: Path) -> None:
    with ServedProcess(tmp_path / "data") as first:
        with ServedProcess(tmp_path / "data") as second:
            assert second.wait() != 0
            assert second.ready_line == ""
            assert "Another process uses" in second.errors()
        with RawClient(first) as client:
            client.produce_to_new_topic("still-served")


def test_a_listener_beyond_loopback_needs_to_be_told_insecure(tmp_path: Path) -> None:
    with ServedProcess(tmp_path / "data", listen="0.0.0.0:0") as refused:
        assert refused.wait() != 0
        assert "--insecure" in refused.errors()
    with ServedProcess(tmp_path / "data", "riverlog.insecure=true", listen="0.0.0.0:0") as served:
        assert served.ready_line.startswith("riverlog ready on 0.0.0.0:")


def test_an_address_in_use_is_an_error_that_names_it(tmp_path: Path) -> None:
    with ServedProcess(tmp_path / "first") as first:
        address = first.bootstrap_servers
        with ServedProcess(tmp_path / "second", listen=address) as second:
            assert second.wait() != 0
            assert address in second.errors()


def test_sigterm_does_not_wait_for_long_polls(tmp_path: Path) -> None:
    with ServedProcess(tmp_path / "data") as served, RawClient(served) as client:
        client.create_topic("quiet")
        client.send_long_poll("quiet")
        begun = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - begun < 5
        assert client.is_closed()


def test_idle_memory_is_small(tmp_path: Path) -> None:
    with ServedProcess(tmp_path / "data") as served:
        status = Path(f"/proc/{served.pid}/status").read_text()
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        assert int(resident.split()[1]) * 1024 < 70 * 1024**2
        assert os.path.exists(tmp_path / "data" / "meta.properties")
