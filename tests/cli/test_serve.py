"""`riverlog serve` as a process: ready line, signals, refusals."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from riverlog import __version__
from tests.cli.running import EXECUTABLE, CommandLine
from tests.waiting import is_readable

READY = "riverlog ready on "


@contextmanager
def closed_port() -> Iterator[int]:
    """Taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextmanager
def serving(*arguments: str, directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process and the address of its ready line."""
    process = subprocess.Popen(
        [EXECUTABLE, "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env={name: value for name, value in os.environ.items() if not name.startswith("RIVERLOG_")},
    )
    assert process.stdout is not None
    try:
        is_readable(process.stdout, 30)
        line = process.stdout.readline()
        assert line.startswith(READY), line
        yield process, line.removeprefix(READY).strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly_and_the_data_stays(tmp_path: Path, number: signal.Signals) -> None:
    with serving("--listen", "127.0.0.1:0", directory=tmp_path) as (process, address):
        riverlog = CommandLine(address)
        topic = riverlog.topic("--partitions", "2")
        riverlog.produce(topic, "kept")
        process.send_signal(number)
        assert process.wait(20) == 0
    assert (tmp_path / "riverlog-data" / ".kafka_cleanshutdown").exists()

    with serving("--listen", "127.0.0.1:0", directory=tmp_path) as (_, address):
        assert CommandLine(address).consume(topic).stdout == "kept\n"


def test_a_signal_ends_a_start_that_waits_for_zookeeper(tmp_path: Path) -> None:
    with closed_port() as port:
        process = subprocess.Popen(
            [EXECUTABLE, "serve", "-l", "127.0.0.1:0", "-s", f"zookeeper.connect=127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        try:
            assert process.stderr is not None
            assert "Waiting for ZooKeeper" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=30)
        finally:
            process.kill()
            process.communicate()
    assert (process.returncode, output) == (0, "")


def test_it_says_directory_cluster_and_version(tmp_path: Path) -> None:
    with serving("-l", "127.0.0.1:0", "-d", "data", directory=tmp_path) as (process, _):
        assert process.stderr is not None
        line = next(each for each in process.stderr if ", cluster " in each)

    properties = (tmp_path / "data" / "meta.properties").read_text()
    [cluster_id] = [each[11:] for each in properties.splitlines() if each.startswith("cluster.id=")]
    assert f"riverlog {__version__}, cluster {cluster_id}, data in data" in line


def test_settings_come_from_flag_environment_and_file(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("num.partitions=4\nlisteners=PLAINTEXT://127.0.0.1:0\n")

    with serving("-c", "server.properties", "-d", "there", directory=tmp_path) as (_, address):
        riverlog = CommandLine(address)
        topic = riverlog.topic()
        assert riverlog("topic", "list", topic, "-o", "json").json[0]["partitions"] == 4

    assert (tmp_path / "there" / "meta.properties").is_file()


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    with serving("-l", "127.0.0.1:0", "-d", "data", directory=tmp_path):
        second = _serve("-l", "127.0.0.1:0", "-d", "data", directory=tmp_path)

    assert second.returncode == 1
    assert second.stdout == ""
    assert "error: " in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--set", "num.partition=3"), 2, "did you mean num.partitions?"),
        (("--set", "num.partitions=x"), 2, "num.partitions"),
        (("--listen", "0.0.0.0:0"), 2, "insecure"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    outcome = _serve(*arguments, directory=tmp_path)

    assert outcome.returncode == code
    assert words in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with serving("-l", "127.0.0.1:0", "-d", "one", directory=tmp_path) as (_, address):
        second = _serve("-l", address, "-d", "two", directory=tmp_path)

    assert second.returncode == 1
    assert address in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize("place", ["a-file", "a-file/below", "/proc/no-such"])
def test_a_data_directory_that_cannot_be_used_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "a-file").touch()
    outcome = _serve("-l", "127.0.0.1:0", "-d", place, directory=tmp_path)
    assert outcome.returncode == 1
    assert f"The data directory {place} cannot be used" in outcome.stderr
    assert "log.dirs" in outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize(
    "entry", ["notes.txt", "photos-2024/", ".hidden", "orders-0/00000000000000000000.log"]
)
def test_a_directory_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path, entry: str) -> None:
    data = tmp_path / "theirs"
    path = data / entry
    (path if entry.endswith("/") else path.parent).mkdir(parents=True)
    if not entry.endswith("/"):
        path.write_text("theirs")
    before = sorted(data.rglob("*"))

    outcome = _serve("-l", "127.0.0.1:0", "-d", "theirs", directory=tmp_path)

    assert outcome.returncode == 1
    assert "theirs is not a data directory of Riverlog" in outcome.stderr
    assert "metadata is" not in outcome.stderr
    assert sorted(data.rglob("*")) == before


def test_a_directory_of_apache_kafka_is_called_so_and_left_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "kafka-logs"
    (data / "__cluster_metadata-0").mkdir(parents=True)
    (data / "meta.properties").write_text(
        "#\n#Mon Jan 05 10:00:00 UTC 2026\nversion=1\nnode.id=1\n"
        "directory.id=Hq2FBzL6QKuVaXAIYxYEpA\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n"
    )
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}

    outcome = _serve("-l", "127.0.0.1:0", "-d", "kafka-logs", directory=tmp_path)

    assert outcome.returncode == 1
    assert "kafka-logs is a data directory of Apache Kafka" in outcome.stderr
    assert "metadata is" not in outcome.stderr
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


def test_an_empty_mount_point_is_a_new_directory(tmp_path: Path) -> None:
    (tmp_path / "data" / "lost+found").mkdir(parents=True)

    with serving("-l", "127.0.0.1:0", "-d", "data", directory=tmp_path) as (_, address):
        CommandLine(address).topic()


def _serve(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [EXECUTABLE, "serve", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={name: value for name, value in os.environ.items() if not name.startswith("RIVERLOG_")},
    )
