"""Which records `consume` reads: of several topics, between two places, in several forms; kcat beside it."""

import subprocess
import time
import uuid

import pytest

from tests.cli.conftest import BASE_MS
from tests.cli.running import CommandLine


def kcat(riverlog: CommandLine, topic: str, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = ["kcat", "-b", riverlog.bootstrap, "-C", "-t", topic, "-f", "%s", *options]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--from", "2", "--to", "5"), "234"),
        (("--from", "2:5"), "234"),
        (("--to", "3"), "012"),
        (("--from", "-4", "--to", "-2"), "67"),
        (("--from", "-4:-2"), "67"),
        (("--from", "7", "--to", "end"), "789"),
        (("--from", "5:5"), ""),
        (("--from", "5:2"), ""),
        (("--from", f"@{BASE_MS + 2000}", "--to", f"@{BASE_MS + 4000}"), "23"),
        (("--from", f"@{BASE_MS + 2000}:@{BASE_MS + 4000}"), "23"),
        (("--from", "@2023-11-14T22:13:21Z:@2023-11-14T22:13:23Z"), "12"),
        (("--from", "2:8", "--count", "2"), "23"),
    ],
)
def test_reading_stops_where_it_is_told(
    riverlog: CommandLine, digits: str, options: tuple[str, ...], expected: str
) -> None:
    outcome = riverlog("consume", digits, *options, "-f", "%s")

    assert (outcome.stdout, outcome.stderr) == (expected, "")


def test_a_range_of_times_is_the_one_that_kcat_reads(riverlog: CommandLine, digits: str) -> None:
    first, end = BASE_MS + 3000, BASE_MS + 6000

    ours = riverlog("consume", digits, "--from", f"@{first}", "--to", f"@{end}", "-f", "%s").stdout

    assert ours == kcat(riverlog, digits, "-o", f"s@{first}", "-o", f"e@{end}").stdout == "345"


def test_a_range_ends_in_each_partition(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")
    for partition in ("0", "1"):
        riverlog.produce(topic, *(f"{partition}{letter}" for letter in "abcd"), options=("-p", partition))

    outcome = riverlog("consume", topic, "--from", "1:3")

    assert sorted(outcome.stdout.split()) == ["0b", "0c", "1b", "1c"]


def test_an_end_beyond_the_log_is_the_end_of_the_log_with_a_warning(
    riverlog: CommandLine, digits: str
) -> None:
    outcome = riverlog("consume", digits, "--from", "8", "--to", "30", "-f", "%s")

    assert outcome.stdout == "89"
    assert f"{digits}-0 holds 0 to 10; reading ends at 10" in outcome.stderr


def test_a_range_that_ends_at_no_record_still_ends(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog("produce", topic, "--transactional", stdin="a\nb\n")
    riverlog.produce(topic, "c")

    assert riverlog("consume", topic, "--from", "0:3").stdout.split() == ["a", "b"], "offset 2 is a marker"


def test_a_time_may_be_so_long_ago(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    now_ms = int(time.time() * 1000)
    lines = (f'{{"value": "{age}h", "timestamp": {now_ms - age * 3_600_000 - 60_000}}}' for age in (5, 3, 1))
    riverlog.produce(topic, *lines, options=("-i", "json"))

    assert riverlog.consume(topic, "--from", "@-4h").stdout.split() == ["3h", "1h"]
    assert riverlog.consume(topic, "--from", "@-4h:@-120m").stdout.split() == ["3h"]
    assert "no length of time" in riverlog("consume", topic, "--from", "@-4weeks", "-e", code=2).stderr


def test_an_end_that_is_given_twice_or_to_a_group_is_a_usage_error(
    riverlog: CommandLine, digits: str
) -> None:
    assert "has an end already" in riverlog("consume", digits, "--from", "1:2", "--to", "3", code=2).stderr
    assert "leave out --to" in riverlog("consume", digits, "--group", "g", "--to", "3", code=2).stderr
    assert "try: " in riverlog("consume", digits, "--from", "1:", code=2).stderr


def test_several_topics_and_patterns_are_read_together(riverlog: CommandLine) -> None:
    prefix = f"several-{uuid.uuid4().hex[:8]}"
    names = [f"{prefix}-{letter}" for letter in "abc"]
    for name in names:
        riverlog("topic", "create", name)
        riverlog.produce(name, f"in {name}")

    two = riverlog("consume", names[0], names[2], "--from", "start", "-e", "-f", "%t=%s\\n")
    all_three = riverlog("consume", f"{prefix}-*", names[1], "--from", "start", "-e", "-f", "%t=%s\\n")

    assert sorted(two.stdout.splitlines()) == [f"{name}=in {name}" for name in (names[0], names[2])]
    assert sorted(all_three.stdout.splitlines()) == [f"{name}=in {name}" for name in names]


def test_a_group_reads_several_topics_and_goes_on_in_all_of_them(riverlog: CommandLine) -> None:
    prefix = f"grouped-{uuid.uuid4().hex[:8]}"
    for letter in "ab":
        riverlog("topic", "create", f"{prefix}-{letter}")
        riverlog.produce(f"{prefix}-{letter}", f"{letter}1")

    first = riverlog("consume", f"{prefix}-?", "--group", prefix, "--from", "start", "-e")
    for letter in "ab":
        riverlog.produce(f"{prefix}-{letter}", f"{letter}2")
    second = riverlog("consume", f"{prefix}-a", f"{prefix}-b", "--group", prefix, "-e")

    assert sorted(first.stdout.split()) == ["a1", "b1"]
    assert sorted(second.stdout.split()) == ["a2", "b2"]


def test_a_pattern_that_matches_nothing_is_not_found(riverlog: CommandLine) -> None:
    assert "no topic matches 'nothing-*'" in riverlog("consume", "nothing-*", "-e", code=4).stderr


def test_bytes_and_times_have_other_forms(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    riverlog("produce", topic, "-K", ":", "-H", "h=\u00fc", stdin=b"k\xff:v\x00\n")
    line = f'{{"value": null, "timestamp": {BASE_MS + 7}}}'
    riverlog.produce(topic, line, options=("-i", "json"))

    template = r"%k{hex} %s{base64} %h{hex} %k{%K}\n"
    first, second = riverlog.consume(topic, "-f", template, "--null", "NIL").stdout.splitlines()
    moments = riverlog("consume", topic, "--from", "1:2", "-f", "%T{iso}").stdout

    assert first == "6bff dgA= h=c3bc k\ufffd{2}"
    assert second == "NIL NIL  NIL{-1}"
    assert moments == "2023-11-14T22:13:20.007Z"


@pytest.mark.parametrize("template", ["%s{rot13}", "%p{hex}", "%k{iso}"])
def test_a_form_that_is_none_is_a_usage_error(riverlog: CommandLine, digits: str, template: str) -> None:
    error = riverlog("consume", digits, "-f", template, "-e", code=2).stderr

    assert f"no token {template}" in error
    assert "%s{base64}" in error


def test_the_end_of_a_partition_is_told_as_kcat_tells_it(riverlog: CommandLine, digits: str) -> None:
    ours = riverlog.consume(digits, "--show-ends", "-f", "%s")
    theirs = kcat(riverlog, digits, "-o", "beginning", "-e")

    assert ours.stdout == theirs.stdout
    assert ours.stderr == f"{digits}-0: end at offset 10\n"
    assert f"Reached end of topic {digits} [0] at offset 10" in theirs.stderr
    assert riverlog.consume(digits).stderr == ""
