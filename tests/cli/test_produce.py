"""`riverlog produce` on a real broker."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from riverlog.records.murmur2 import partition_for_key
from tests.cli.running import EXECUTABLE, CommandLine

JAVA_PLACEMENT = json.loads(Path(__file__).with_name("java_key_placement.json").read_text())


def test_each_line_of_stdin_is_a_record_and_the_count_goes_to_stderr(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    outcome = riverlog("produce", topic, stdin="one\r\ntwo\n\nlast without an end")

    assert outcome.stdout == ""
    assert "4 of 4 records delivered" in outcome.stderr
    assert riverlog.consume(topic).stdout == "one\ntwo\n\nlast without an end\n"


def test_a_file_is_read_instead_of_stdin(riverlog: CommandLine, tmp_path: Path) -> None:
    topic = riverlog.topic()
    path = tmp_path / "records.txt"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(2000)))

    riverlog("produce", topic, "--file", str(path))

    assert riverlog.consume(topic).stdout.split() == [str(number) for number in range(2000)]


def test_keys_are_placed_where_the_java_client_places_them(riverlog: CommandLine) -> None:
    expected = JAVA_PLACEMENT["placement"]
    topic = riverlog.topic("-p", str(JAVA_PLACEMENT["partitions"]))

    riverlog.produce(topic, *(f"{key}|v" for key in expected), options=("-K", "|"))

    placed = {
        record["key"]: record["partition"] for record in riverlog.consume(topic, "-o", "json").json_lines
    }
    assert placed == expected
    assert {
        key: partition_for_key(key.encode(), JAVA_PLACEMENT["partitions"]) for key in expected
    } == expected


def test_keys_headers_and_nulls_have_a_syntax(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    riverlog(
        "produce",
        topic,
        *("-K", r"\t", "--headers", "-H", "app=test", "--null", "NIL"),
        stdin="a=1,b=,c\tkey\tvalue\n\tgone\tNIL\n\tNIL\t\n",
    )

    first, tombstone, keyless = riverlog.consume(topic, "-o", "json").json_lines
    common = {"name": "app", "value": "test"}
    assert (first["key"], first["value"]) == ("key", "value")
    assert first["headers"] == [
        common,
        {"name": "a", "value": "1"},
        {"name": "b", "value": ""},
        {"name": "c", "value": None},
    ]
    assert (tombstone["key"], tombstone["value"], tombstone["headers"]) == ("gone", None, [common])
    assert (keyless["key"], keyless["value"]) == (None, "")


def test_json_lines_go_round_byte_for_byte(riverlog: CommandLine) -> None:
    source, copy = riverlog.topic("-p", "2"), riverlog.topic("-p", "2")
    lines = [
        '{"key": "k", "value": "v", "partition": 1, "timestamp": 1700000000000, "headers": {"h": "1"}}',
        '{"key": "/w==","key_encoding": "base64", "value": "AP8=", "value_encoding": "base64","partition":0}',
        '{"value": {"nested": [1, "ü"]}, "partition": 1, "headers": [{"name": "n", "value": null}]}',
        '{"key": "tombstone", "partition": 0}',
    ]
    riverlog.produce(source, *lines, options=("-i", "json"))

    exported = riverlog.consume(source, "-o", "json")
    riverlog("produce", copy, "-i", "json", stdin=exported.stdout)

    records = exported.json_lines
    again = riverlog.consume(copy, "-o", "json").json_lines
    strip = [{**record, "topic": None} for record in records]
    assert sorted(strip, key=str) == sorted(({**record, "topic": None} for record in again), key=str)
    by_place = {(record["partition"], record["offset"]): record for record in records}
    assert by_place[1, 0]["timestamp"] == 1700000000000
    assert (by_place[0, 0]["key"], by_place[0, 0]["value_encoding"]) == ("/w==", "base64")
    assert json.loads(by_place[1, 1]["value"]) == {"nested": [1, "ü"]}
    assert by_place[0, 1]["value"] is None


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["1", "all"])
def test_every_compression_and_acks_setting_delivers(
    riverlog: CommandLine, compression: str, acks: str
) -> None:
    topic = riverlog.topic()
    values = [f"{number}" * 50 for number in range(100)]

    riverlog.produce(topic, *values, options=("-z", compression, "--acks", acks))

    assert riverlog.consume(topic).stdout.split() == values


def test_an_idempotent_producer_needs_all_acks(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    riverlog.produce(topic, "a", "b", options=("--idempotent",))
    riverlog("produce", topic, "--idempotent", "--acks", "1", stdin="c", code=2)

    assert riverlog.consume(topic).stdout.split() == ["a", "b"]


def test_a_rate_slows_the_producer_down(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    started = time.monotonic()

    riverlog.produce(topic, *"abcdefghijk", options=("--rate", "20"))

    assert time.monotonic() - started >= 0.5
    assert riverlog.consume(topic, "-f", "%s").stdout == "abcdefghijk"


def test_a_bad_line_is_named_and_what_came_before_it_is_sent(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    text = riverlog("produce", topic, "-K", ":", stdin="a:1\nb:2\nbroken\nc:3\n", code=1)
    document = riverlog("produce", topic, "-i", "json", stdin='{"value": "3"}\n[]\n', code=1)

    assert "stdin, line 3: no key separator ':'" in text.stderr
    assert "2 of 2 records delivered" in text.stderr
    assert "stdin, line 2: not a JSON object" in document.stderr
    assert riverlog.consume(topic).stdout.split() == ["1", "2", "3"]


def test_a_partition_that_is_not_there_is_exit_code_4(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-p", "2")

    outcome = riverlog("produce", topic, "-p", "5", stdin="lost", code=4)

    assert "0 of 1 records delivered" in outcome.stderr


def test_a_record_above_the_limit_of_the_topic_fails_by_the_broker_s_word(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-c", "max.message.bytes=1000")

    outcome = riverlog("produce", topic, stdin="x" * 2000, code=1)

    assert "MESSAGE_TOO_LARGE" in outcome.stderr


def test_a_large_record_passes_where_the_topic_allows_it(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-c", "max.message.bytes=5000000")

    riverlog.produce(topic, "x" * 3_000_000)

    assert len(riverlog.consume(topic).stdout) == 3_000_001


def test_an_interrupt_waits_for_what_was_sent(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    process = subprocess.Popen(
        [EXECUTABLE, "produce", topic],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **riverlog.environment},
    )
    assert process.stdin is not None
    process.stdin.write(b"sent before the interrupt\n")
    process.stdin.flush()
    assert (
        riverlog("consume", topic, "--from", "start", "--count", "1").stdout == "sent before the interrupt\n"
    )

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)

    assert process.returncode == 130
    assert b"1 of 1 records delivered" in errors
    assert b"Traceback" not in errors
