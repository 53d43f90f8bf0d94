"""`riverlog consume` on a real broker."""

import os
import signal
import subprocess
import time

import pytest

from riverlog.testing import Broker
from tests.cli.conftest import BASE_MS
from tests.cli.running import EXECUTABLE, CommandLine


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("start", "0123456789"),
        ("end", ""),
        ("7", "789"),
        ("-3", "789"),
        ("-100", "0123456789"),
        (f"@{BASE_MS + 6000}", "6789"),
        (f"@{BASE_MS + 5001}", "6789"),
        ("@2023-11-14T22:13:28Z", "89"),
        ("@2099-01-01", ""),
    ],
)
def test_reading_begins_where_it_is_told(
    riverlog: CommandLine, digits: str, position: str, expected: str
) -> None:
    outcome = riverlog("consume", digits, "--from", position, "--exit-at-end", "-f", "%s")

    assert outcome.stdout == expected


def test_an_offset_outside_the_log_begins_at_the_nearest_with_a_warning(
    riverlog: CommandLine, digits: str
) -> None:
    riverlog("topic", "trim", digits, "--before", "4", "--yes")

    outcome = riverlog("consume", digits, "--from", "1", "-e", "-f", "%s")

    assert outcome.stdout == "456789"
    assert "holds 4 to 10; reading begins at 4" in outcome.stderr


@pytest.mark.parametrize("position", ["middle", "@yesterday", "--5", "1.5"])
def test_a_position_that_is_none_is_a_usage_error(riverlog: CommandLine, digits: str, position: str) -> None:
    assert "try: " in riverlog("consume", digits, f"--from={position}", "-e", code=2).stderr


def test_count_stops_the_reading(riverlog: CommandLine, digits: str) -> None:
    assert riverlog("consume", digits, "--from", "start", "--count", "4", "-f", "%s").stdout == "0123"


def test_partitions_can_be_chosen(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "3")
    for partition in range(3):
        riverlog.produce(topic, f"in {partition}", options=("-p", str(partition)))

    assert riverlog.consume(topic, "-p", "1").stdout == "in 1\n"
    both = riverlog.consume(topic, "-p", "0", "-p", "2", "-f", "%p:%s ").stdout
    assert sorted(both.strip().split(" in ")) != []
    assert "0:in 0" in both
    assert "2:in 2" in both
    assert "in 1" not in both
    assert "no partition 3" in riverlog("consume", topic, "-p", "3", "-e", code=4).stderr


def test_a_format_fills_its_tokens(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    line = f'{{"key": "k", "value": "val", "timestamp": {BASE_MS}, "headers": {{"a": "1", "b": null}}}}'
    riverlog.produce(topic, line, '{"key": null, "value": null}', options=("-i", "json"))

    template = r"%t/%p/%o %T %k[%K] %s[%S] {%h} 100%%\x21\n"
    first, second = riverlog.consume(topic, "-f", template, "--null", "NIL").stdout.splitlines()

    assert first == f"{topic}/0/0 {BASE_MS} k[1] val[3] {{a=1,b=NIL}} 100%!"
    assert second.split(" ", 2)[2] == "NIL[-1] NIL[-1] {} 100%!"


@pytest.mark.parametrize("template", ["%x", "%", "100%"])
def test_an_unknown_token_is_a_usage_error(riverlog: CommandLine, digits: str, template: str) -> None:
    assert "tokens are" in riverlog("consume", digits, "-f", template, "-e", code=2).stderr


def test_json_lines_flag_what_is_not_utf_8(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog("produce", topic, "-K", ":", stdin=b"k\xff:v\n\xc3\xbc:\xfe\n")

    first, second = riverlog.consume(topic, "-o", "json").json_lines

    assert (first["key"], first["key_encoding"], first["value"]) == ("a/8=", "base64", "v")
    assert (second["key"], second["value"], second["value_encoding"]) == ("ü", "/g==", "base64")
    assert "value_encoding" not in first
    assert first["timestamp_type"] == "create"
    assert (first["topic"], first["partition"], first["offset"]) == (topic, 0, 0)


def test_bytes_are_written_as_they_are(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog("produce", topic, stdin=b"\xff\x00\xfe\n")
    arguments = ("consume", topic, "--from", "start", "-e", "-f", "%s")

    done = subprocess.run(
        [EXECUTABLE, *arguments], capture_output=True, env={**os.environ, **riverlog.environment}, check=True
    )

    assert done.stdout == b"\xff\x00\xfe"


def test_a_reader_that_goes_away_ends_the_reading_quietly(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, *(f"line {number} {'x' * 100}" for number in range(5000)))
    process = _start(riverlog, "consume", topic, "--from", "start")
    assert process.stdout is not None

    assert process.stdout.readline().startswith(b"line 0 ")
    process.stdout.close()

    assert process.wait(15) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_new_records_come_as_they_are_produced_until_an_interrupt(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "before")
    process = _start(riverlog, "consume", topic, "--from", "start")
    assert process.stdout is not None
    assert process.stdout.readline() == b"before\n"

    riverlog.produce(topic, "after")
    assert process.stdout.readline() == b"after\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=15)

    assert (process.returncode, output, errors) == (0, b"", b"")


def test_the_tail_is_prompt(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog.produce(topic, "warm")
    process = _start(riverlog, "consume", topic, "--from", "start")
    assert process.stdout is not None
    process.stdout.readline()

    riverlog.produce(topic, "now")
    started = time.monotonic()
    process.stdout.readline()

    assert time.monotonic() - started < 1.0
    process.kill()
    process.communicate()


def test_a_tail_outlives_a_restart_of_the_broker() -> None:
    with Broker() as broker:
        riverlog = CommandLine(broker.bootstrap_servers)
        topic = riverlog.topic()
        riverlog.produce(topic, "before")
        process = _start(riverlog, "consume", topic, "--from", "start")
        assert process.stdout is not None
        assert process.stdout.readline() == b"before\n"

        broker.kill()
        assert process.stderr is not None
        assert b"the connection is lost" in process.stderr.readline()
        broker.restart()
        riverlog.produce(topic, "after")

        assert process.stdout.readline() == b"after\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=15)
        assert process.returncode == 0


def _start(riverlog: CommandLine, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [EXECUTABLE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **riverlog.environment},
    )


def test_a_group_begins_where_it_stopped(riverlog: CommandLine, digits: str) -> None:
    options = (
        "consume",
        digits,
        "--group",
        f"group-of-{digits}",
        "--from",
        "start",
        "-f",
        "%s",
        "--timeout",
        "2",
    )

    assert riverlog(*options, "--exit-at-end", "--count", "4").stdout == "0123"
    assert riverlog(*options, "--exit-at-end").stdout == "456789"
    assert riverlog(*options, "--exit-at-end").stdout == ""


@pytest.mark.parametrize("begin", ["start", "end"])
def test_a_group_that_stopped_early_goes_on_in_every_partition(riverlog: CommandLine, begin: str) -> None:
    topic = riverlog.topic("--partitions", "3")
    fill(riverlog, topic, "old")
    options = ("consume", topic, "--group", f"g-{topic}", "-e", "-f", r"%p:%s\n", "--timeout", "5")

    first = riverlog(*options, "--from", begin, "--count", "1").stdout.splitlines()
    fill(riverlog, topic, "new")
    rest = riverlog(*options).stdout.splitlines()

    old = [f"{partition}:old {number}" for partition in range(3) for number in range(4)]
    new = [f"{partition}:new {number}" for partition in range(3) for number in range(4)]
    assert sorted(first + rest) == sorted(old + new if begin == "start" else new)


def test_a_group_reads_a_partition_that_was_added_from_its_start(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    options = ("consume", topic, "--group", f"g-{topic}", "-e", "--timeout", "5")
    riverlog(*options)

    riverlog("topic", "add-partitions", topic, "--total", "2")
    riverlog.produce(topic, "in the new one", options=("-p", "1"))

    assert riverlog(*options).stdout == "in the new one\n"


def test_lag_is_known_of_every_partition_after_the_first_record(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "3")
    fill(riverlog, topic, "v")
    group = f"g-{topic}"

    riverlog("consume", topic, "--group", group, "--from", "start", "-n", "1", "--timeout", "5")

    [found] = riverlog("group", "describe", group, "-o", "json").json
    assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]
    assert sum(each["offset"] for each in found["partitions"]) == 1
    assert found["lag"] == 11


def test_from_is_said_to_be_overridden_by_commits(riverlog: CommandLine, digits: str) -> None:
    options = ("consume", digits, "--group", f"g-{digits}", "--from", "start", "-e", "--timeout", "5")

    first, second = riverlog(*options), riverlog(*options)

    assert "goes on where it stopped" not in first.stderr
    assert (second.stdout, "goes on where it stopped" in second.stderr) == ("", True)
    assert f"riverlog group seek g-{digits}" in second.stderr


def fill(riverlog: CommandLine, topic: str, name: str) -> None:
    """Four records in each of three partitions."""
    for partition in ("0", "1", "2"):
        riverlog.produce(topic, *(f"{name} {number}" for number in range(4)), options=("-p", partition))


def test_a_group_decides_itself_who_reads_what(riverlog: CommandLine, digits: str) -> None:
    assert "--partition" in riverlog("consume", digits, "-g", "g", "-p", "0", code=2).stderr
    assert "where it stopped" in riverlog("consume", digits, "-g", "g", "--from", "3", code=2).stderr
