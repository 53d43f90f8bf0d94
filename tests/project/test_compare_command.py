"""`python -m benchmarks.compare`: its options, and what it says on a machine that lacks something."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.compare import __main__ as command
from benchmarks.compare import brokers, cleaning, driver

ROOT = Path(__file__).parents[2]


def test_the_list_of_cases_names_each_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "--case", "requests"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [f"requests-c{each}" for each in (1, 8, 64, 256, 1000)]


def test_the_cases_of_clusters_are_chosen_by_their_common_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "--case", "replicated"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "replicated-produce-1KB" in names
    assert all(name.startswith("replicated-") for name in names)


@pytest.mark.parametrize("text", ["name", "name=host", "=host:1", "name=host:port"])
def test_a_target_that_is_no_address_is_a_usage_error(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--target", text])
    assert ended.value.code == 2
    assert "NAME=HOST:PORT" in capsys.readouterr().err


def test_a_report_of_a_file_that_is_no_result_fails_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["report", str(tmp_path / "none.json")]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "none.json" in line


def test_without_a_compiler_the_driver_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(driver.DriverMissingError, match=r"gcc libc6-dev.*scripts/setup cc"):
        driver.build()


def test_without_java_kafka_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(brokers.KafkaUnavailableError, match="java"):
        brokers.kafkas()


def test_out_of_reach_of_maven_central_kafka_is_left_out_with_what_maven_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in ("java", "mvn"):
        (tmp_path / tool).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("RIVERLOG_KAFKA_JARS", str(tmp_path / "jars"))
    with pytest.raises(brokers.KafkaUnavailableError, match="Maven Central is out of reach"):
        brokers.kafkas()


def test_the_processor_time_of_a_process_is_seen_from_outside() -> None:
    work = "import time\nwhile time.process_time() < 0.2: pass\nprint('done', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        target = brokers.Target("busy", "", ("127.0.0.1", 1), counters=psutil.Process(process.pid))
        cpu_s = target.cpu_s
        assert cpu_s is not None
        assert cpu_s >= 0.2
        process.communicate(b"\n")


def test_a_broker_given_on_this_machine_is_found_by_its_port() -> None:
    port = brokers.free_port()
    serve = (
        f"import socket\ns = socket.create_server(('127.0.0.1', {port}))\nprint('up', flush=True)\ninput()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = brokers.given("other", "127.0.0.1", port)
        assert found.counters is not None
        assert found.counters.pid == process.pid
        process.communicate(b"\n")


def test_how_far_a_log_is_cleaned_is_read_from_the_cleaners_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    assert cleaning.cleaned_to(checkpoint, "mine") == -1
    checkpoint.write_text("0\n2\nother 0 5\nmine 0 1234\n")
    assert cleaning.cleaned_to(checkpoint, "mine") == 1234
    assert cleaning.cleaned_to(checkpoint, "none") == -1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], []),
        (["--repeats", "5", "--output", "somewhere"], ["--repeats", "5"]),
        (["--output=somewhere", "--quick"], ["--quick"]),
        (["--data", "here", "--case", "start"], ["--case", "start"]),
    ],
)
def test_a_result_does_not_tell_where_it_was_kept(given: list[str], told: list[str]) -> None:
    assert command._without_places(given) == told
