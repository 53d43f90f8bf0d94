"""`riverlog serve --brokers N` as processes: one ready line, brokers that die, an end for all."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from riverlog.testing.cluster_records import ClusterRecords, brokers_known_to
from tests.processes import ROOT, START_S, Process
from tests.waiting import eventually, is_readable

READY = "riverlog ready on "


class Supervised(Process):
    def __init__(self, data_dir: Path, *options: str, waits: bool = True) -> None:
        command = [sys.executable, "-m", "riverlog", "serve", "--data-dir", str(data_dir)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RIVERLOG_")}
        super().__init__(
            [*command, "--listen", "127.0.0.1:0", *options],
            cwd=data_dir.parent,
            environment={**inherited, "PYTHONPATH": str(ROOT)},
        )
        is_heard = waits and is_readable(self.stdout, START_S)
        self.ready_line = self.stdout.readline().decode() if is_heard else ""

    @property
    def bootstrap_servers(self) -> list[str]:
        assert self.ready_line.startswith(READY), f"not ready: {self.ready_line!r}\n{self.errors()}"
        return self.ready_line.removeprefix(READY).strip().split(",")

    @property
    def brokers(self) -> list[psutil.Process]:
        return psutil.Process(self.pid).children()


def test_one_line_says_that_all_are_ready_and_a_signal_stops_all_cleanly(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Supervised(data, "--brokers", "2") as served:
        assert len(served.bootstrap_servers) == 2
        eventually(lambda: brokers_known_to(served.bootstrap_servers[0], 10)[0] == {1, 2})
        brokers = served.brokers
        assert served.stop() == 0
        assert served.stdout.read() == b""
        assert not any(each.is_running() for each in brokers)
        assert "broker-2 node.serve: stopped" in served.errors()
    for number in (1, 2):
        assert (data / f"broker-{number}" / ".kafka_cleanshutdown").exists()


def test_a_broker_that_is_killed_is_started_again_on_its_port_with_its_records(tmp_path: Path) -> None:
    with Supervised(tmp_path / "data", "--brokers", "2") as served:
        records = ClusterRecords(",".join(served.bootstrap_servers), 20)
        records.create_topic("orders", 4, {})
        for number in range(8):
            records.produce(
                "orders", [str(number)], key=None, partition=number % 4, headers={}, timestamp_ms=1
            )
        [killed, _] = before = served.brokers
        killed.kill()
        eventually(lambda: "is ready again" in served.errors(), timeout_s=60)
        assert {each.pid for each in served.brokers} != {each.pid for each in before}
        found = records.consume("orders", None, 20, committed_only=True)
        assert {each.value for each in found} == {str(number).encode() for number in range(8)}
        assert served.stop() == 0


def test_one_that_is_stopped_in_order_is_started_again_and_no_error(tmp_path: Path) -> None:
    with Supervised(tmp_path / "data", "--brokers", "2") as served:
        [_, stopped] = served.brokers
        stopped.terminate()
        eventually(lambda: "is ready again" in served.errors(), timeout_s=60)
        [told] = [line for line in served.errors().splitlines() if "ended (" in line]
        assert " INFO " in told
        assert served.stop() == 0


def test_brokers_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    with Supervised(tmp_path / "data", "--brokers", "2") as served:
        brokers = served.brokers
        served.kill()
        psutil.wait_procs(brokers, timeout=30)
        assert not any(each.is_running() for each in brokers)
    assert (tmp_path / "data" / "broker-1" / ".kafka_cleanshutdown").exists()


def test_when_one_cannot_start_none_is_left_and_the_exit_code_is_its(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "broker-2").mkdir(parents=True)
    (data / "broker-2" / "notes.txt").touch()
    with Supervised(data, "--brokers", "2") as served:
        assert served.wait() == 1
        assert served.ready_line == ""
        assert "broker-2 is not a data directory of Riverlog" in served.errors()
        assert "Broker 2 did not start (exit code 1)" in served.errors()


def test_fewer_brokers_than_before_are_refused_before_anything_starts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for number in (1, 2, 3):
        (data / f"broker-{number}" / "orders-0").mkdir(parents=True)
    with Supervised(data, "--brokers", "2") as served:
        assert served.wait() == 1
        assert "--brokers 3" in served.errors()
    assert not (data / "metadata").exists()


def test_a_second_supervisor_of_a_directory_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Supervised(data, "--brokers", "1") as served:
        before = sorted(os.listdir(data))
        with Supervised(data, "--brokers", "3") as second:
            assert second.wait() == 1
            assert second.ready_line == ""
            assert "Another process uses" in second.errors()
        assert sorted(os.listdir(data)) == before
        assert brokers_known_to(served.bootstrap_servers[0], 10)[0] == {1}
        assert served.stop() == 0


def test_a_broker_that_is_stopped_goes_on_in_order_to_end(tmp_path: Path) -> None:
    with Supervised(tmp_path / "data", "--brokers", "1") as served:
        served.brokers[0].suspend()
        assert served.stop() == 0
    assert (tmp_path / "data" / "broker-1" / ".kafka_cleanshutdown").exists()


STUBBORN = """
import asyncio, logging, sys
from riverlog.node.processes.supervisor import BrokerFailedError, Child, supervise

broker = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
broker += "print('riverlog ready on there', flush=True); time.sleep(600)"
logging.basicConfig(level=logging.INFO)
child = Child(7, lambda _: [sys.executable, "-c", broker])
try:
    asyncio.run(supervise([child], stop_s=float(sys.argv[1])))
except BrokerFailedError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(("stop_s", "signals"), [("0.2", 1), ("600", 2)])
def test_a_broker_that_does_not_stop_is_killed_in_the_end(tmp_path: Path, stop_s: str, signals: int) -> None:
    command = [sys.executable, "-c", STUBBORN, stop_s]
    with Process(command, cwd=tmp_path, environment={**os.environ, "PYTHONPATH": str(ROOT)}) as served:
        assert is_readable(served.stdout, START_S), served.errors()
        for _ in range(signals):
            served.process.send_signal(signal.SIGTERM)
            eventually(lambda: "stopping 1 brokers" in served.errors())
        assert served.wait() == 1
        [line] = [each for each in served.errors().splitlines() if "are killed: 7" in each]
        assert ("a second signal came" in line) == (signals == 2)
        assert "Broker 7 did not stop cleanly (signal SIGKILL)" in served.errors()


def test_a_broker_that_dies_again_and_again_is_started_ever_later(tmp_path: Path) -> None:
    with Supervised(tmp_path / "data", "--brokers", "1") as served:
        for deaths in range(1, 4):
            [broker] = served.brokers
            os.kill(broker.pid, signal.SIGKILL)
            eventually(lambda count=deaths: served.errors().count("is ready again") == count, timeout_s=60)  # type: ignore[misc]
        told = [line for line in served.errors().splitlines() if "started again in" in line]
        assert [line.rsplit(" ", 2)[1] for line in told] == ["0.0", "0.2", "0.4"]
        assert served.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_leaves_nothing_behind(tmp_path: Path, number: int) -> None:
    with Supervised(tmp_path / "data", "--brokers", "2", waits=False) as served:
        eventually(lambda: len(served.brokers) == 2, timeout_s=60)
        brokers = served.brokers
        served.process.send_signal(number)
        assert served.wait() == 0
        psutil.wait_procs(brokers, timeout=30)
        assert not any(each.is_running() for each in brokers)
