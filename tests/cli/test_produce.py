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

    outcome = riverlog("produce", topic, stdin="one\ntwo\n\nlast without an end")

    assert outcome.stdout == ""
    assert "4 of 4 records delivered" in outcome.stderr
    assert riverlog.consume(topic).stdout == "one\ntwo\n\nlast without an end\n"


def test_a_carriage_return_arrives_as_it_was_sent(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    riverlog("produce", topic, stdin=b"one\r\ntwo\r\r\n\r\n")

    assert riverlog.consume(topic, "-f", "%s|").stdout == "one\r|two\r\r|\r|"


def test_a_file_is_read_instead_of_stdin(riverlog: CommandLine, tmp_path: Path) -> None:
    topic = riverlog.topic()
    path = tmp_path / "records.txt"
    path.write_bytes(b"".join(b"%d\n" % number for number in range(2000)))

    riverlog("produce", topic, "--file", str(path))

    assert riverlog.consume(topic).stdout.split() == [str(number) for number in range(2000)]


def test_keys_are_placed_where_the_java_client_places_them(riverlog: CommandLine) -> None:
    expected = JAVA_PLACEMENT["placement"]
    topic = riverlog.topic("--partitions", str(JAVA_PLACEMENT["partitions"]))

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
    source, copy = riverlog.topic("--partitions", "2"), riverlog.topic("--partitions", "2")
    lines = [
        '{"key": "k", "value": "v", "partition": 1, "timestamp": 1700000000000, "headers": {"h": "1"}}',
        '{"key": "/w==","key_encoding": "base64", "value": "AP8=", "value_encoding": "base64","partition":0}',
        '{"value": {"nested": [1, "ü"]}, "partition": 1, "headers": [{"name": "n", "value": null}]}',
        '{"key": "tombstone", "value": null, "partition": 0}',
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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"key": "k"}', 'no "value"'),
        ('{"id": 1}', "a record has no 'id'"),
        ('{"key": "k", "vale": 1}', "'vale'"),
    ],
)
def test_json_that_says_nothing_of_a_value_deletes_nothing(
    riverlog: CommandLine, line: str, words: str
) -> None:
    topic = riverlog.topic("-s", "cleanup.policy=compact")

    outcome = riverlog(
        "produce", topic, "-i", "json", stdin=f'{{"key": "k", "value": "v"}}\n{line}\n', code=1
    )

    assert "stdin, line 2: " in outcome.stderr
    assert words in outcome.stderr
    assert "--input json-values" in outcome.stderr
    assert riverlog.consume(topic, "-f", "%k=%s").stdout == "k=v"


def test_plain_json_is_the_value_where_that_is_said(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    riverlog.produce(topic, '{"id":  1}', "[2]", options=("-i", "json-values", "-H", "a=b"))
    refused = riverlog("produce", topic, "-i", "json-values", stdin="3\n{oops\n", code=1)

    assert riverlog.consume(topic, "-f", "%s %h|").stdout == '{"id":  1} a=b|[2] a=b|3 |'
    assert "stdin, line 2: not JSON" in refused.stderr


def test_the_copy_of_the_help_copies_a_topic_to_one_with_fewer_partitions(riverlog: CommandLine) -> None:
    """The line is taken from the help, so that what is documented is what is tested."""
    source, copy = riverlog.topic("--partitions", "4"), riverlog.topic("--partitions", "2")
    riverlog.produce(source, *(f"{number}:value {number}" for number in range(20)), options=("-K", ":"))
    help_text = riverlog("produce", "--help").stdout
    [line] = [each for each in help_text.splitlines() if "riverlog consume a" in each]
    example = (
        line.strip("│ ").replace("consume a", f"consume {source}").replace("produce b", f"produce {copy}")
    )

    done = subprocess.run(
        ["sh", "-c", example.replace("riverlog", EXECUTABLE)],
        env={**os.environ, **riverlog.environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "20 of 20 records delivered" in done.stderr
    copied, original = (riverlog.consume(each, "-f", r"%k=%s\n").stdout for each in (copy, source))
    assert sorted(copied.splitlines()) == sorted(original.splitlines())


def test_a_partition_that_the_target_lacks_is_named_with_the_flag(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")
    lines = '{"value": "a", "partition": 1}\n{"value": "b", "partition": 2}\n'

    refused = riverlog("produce", topic, "-i", "json", stdin=lines, code=1)
    riverlog("produce", topic, "-i", "json", "--ignore-partitions", stdin=lines)

    assert "stdin, line 2: the topic has no partition 2, only 0 to 1" in refused.stderr
    assert "--ignore-partitions" in refused.stderr
    assert sorted(riverlog.consume(topic).stdout.split()) == ["a", "a", "b"]


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


def test_a_compacted_topic_is_said_to_need_keys(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "cleanup.policy=compact")

    outcome = riverlog("produce", topic, stdin="no key\n", code=1)

    assert "(INVALID_RECORD)" in outcome.stderr
    assert "try: a compacted topic (cleanup.policy=compact) takes records with a key only" in outcome.stderr


def test_what_was_not_delivered_before_a_bad_line_has_its_reason(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "cleanup.policy=compact")

    outcome = riverlog("produce", topic, "-i", "json", stdin='{"value": "no key"}\n[]\n', code=1)

    assert "0 of 1 records delivered" in outcome.stderr
    assert "1 failed: Broker: Broker failed to validate record" in outcome.stderr
    assert "stdin, line 2: not a JSON object" in outcome.stderr


def test_a_partition_that_is_not_there_is_exit_code_4(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")

    outcome = riverlog("produce", topic, "-p", "5", stdin="lost", code=4)

    assert "0 of 1 records delivered" in outcome.stderr


def test_a_record_above_the_limit_of_the_topic_fails_by_the_broker_s_word(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "max.message.bytes=1000")

    outcome = riverlog("produce", topic, stdin="x" * 2000, code=1)

    assert "MESSAGE_TOO_LARGE" in outcome.stderr


def test_a_large_record_passes_where_the_topic_allows_it(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "max.message.bytes=5000000")

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


def test_records_end_where_the_delimiter_says(riverlog: CommandLine) -> None:
    topic = riverlog.topic()

    riverlog("produce", topic, "--delimiter", r"\0", stdin=b"one\nline\0two\0")
    riverlog("produce", topic, "-D", r"\r\n", stdin=b"three\r\nfour\n\r\n")

    assert riverlog.consume(topic, "-f", "%s|").stdout == "one\nline|two|three|four\n|"


def test_a_whole_file_is_one_record_with_a_key_of_its_own(riverlog: CommandLine, tmp_path: Path) -> None:
    topic = riverlog.topic()
    path = tmp_path / "document"
    path.write_bytes(b"many\nlines\n")

    riverlog("produce", topic, "--whole", "--key", "name", "--file", str(path))

    assert riverlog.consume(topic, "-f", "%k=%s|").stdout == "name=many\nlines\n|"
    assert "keys of their own" in riverlog("produce", topic, "-k", "a", "-K", ":", code=2).stderr


def test_partition_and_offset_of_what_arrived_can_be_had(riverlog: CommandLine) -> None:
    topic = riverlog.topic("--partitions", "2")

    outcome = riverlog("produce", topic, "-p", "1", "--offsets", "--statistics", stdin="a\nb\n")

    assert outcome.stdout == "1 0\n1 1\n"
    assert "2 B of keys and values in" in outcome.stderr
    assert "records and" in outcome.stderr


@pytest.mark.parametrize("acks", ["-1", "all"])
def test_acks_of_all_has_two_names(riverlog: CommandLine, acks: str) -> None:
    riverlog("produce", riverlog.topic(), "--acks", acks, "--idempotent", stdin="a\n")


def test_a_transaction_is_all_or_nothing(riverlog: CommandLine) -> None:
    topic = riverlog.topic()
    lines = '{"value": "a"}\n{"value": "b"}\n'

    done = riverlog("produce", topic, "-i", "json", "--transactional", stdin=lines)
    failed = riverlog("produce", topic, "-i", "json", "--transactional", stdin=lines + "broken\n", code=1)

    assert "the transaction is committed" in done.stderr
    assert "stdin, line 3: not JSON" in failed.stderr
    assert "the transaction is aborted" in failed.stderr
    assert "before it were sent" not in failed.stderr
    assert "it and what follows it were not sent" in failed.stderr
    assert riverlog.consume(topic).stdout == "a\nb\n"
    assert "--acks all" in riverlog("produce", topic, "--transactional", "--acks", "1", code=2).stderr


def test_kcat_sends_the_same_with_a_delimiter_and_a_key(riverlog: CommandLine) -> None:
    ours, theirs = riverlog.topic(), riverlog.topic()
    data = b"one;two\n;three;"

    riverlog("produce", ours, "-D", ";", "-k", "fixed", stdin=data)
    subprocess.run(
        ["kcat", "-b", riverlog.bootstrap, "-P", "-t", theirs, "-D", ";", "-k", "fixed"],
        input=data,
        check=True,
    )

    assert riverlog.consume(ours, "-f", "%k=%s|").stdout == riverlog.consume(theirs, "-f", "%k=%s|").stdout


def test_a_record_that_is_too_large_comes_with_the_remedy(riverlog: CommandLine) -> None:
    topic = riverlog.topic("-s", "max.message.bytes=1000")

    assert "--set max.message.bytes" in riverlog("produce", topic, stdin="x" * 2000, code=1).stderr
