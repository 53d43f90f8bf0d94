"""Lines, JSON and formats, without a broker."""

import base64
import json

import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from riverlog.cli.asking.positions import AtOffset, AtTime, End, Last, Start, parse_position
from riverlog.cli.failures import CommandError, ExitCode, from_kafka
from riverlog.cli.records.documents import Documents
from riverlog.cli.records.format import json_writer, text_writer
from riverlog.cli.records.json_form import InputRecord, RecordSyntaxError, decode_record
from riverlog.cli.records.lines import LineSyntax, parse_headers, unescape

BYTES = Documents({})
optional_bytes = st.none() | st.binary(max_size=50)
header_lists = st.lists(st.tuples(st.text(max_size=10), optional_bytes), max_size=4)


@given(optional_bytes, optional_bytes, header_lists, st.integers(0, 2**31 - 1), st.integers(0, 2**40))
def test_what_is_printed_as_json_is_read_back_the_same(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    partition: int,
    timestamp_ms: int,
) -> None:
    message = Message(
        topic="t",
        partition=partition,
        offset=7,
        key=key,
        value=value,
        headers=list(headers),
        timestamp=(1, timestamp_ms),
    )

    record = decode_record(json_writer(BYTES)(message))

    assert record == InputRecord(key, value, tuple(headers), partition, timestamp_ms)


@given(st.binary().filter(lambda data: b"\n" not in data))
def test_a_plain_line_is_a_value_byte_for_byte(value: bytes) -> None:
    assert LineSyntax().parse(value) == InputRecord(value=value)


def test_a_key_ends_at_the_first_separator() -> None:
    syntax = LineSyntax(key_separator=b"::")

    assert syntax.parse(b"a::b::c") == InputRecord(key=b"a", value=b"b::c")
    assert syntax.parse(b"::") == InputRecord(key=b"", value=b"")
    with pytest.raises(RecordSyntaxError, match="no key separator '::'"):
        syntax.parse(b"a:b")


def test_headers_may_be_empty_or_null() -> None:
    assert parse_headers(b"") == ()
    assert parse_headers(b"a=1,b=,c,d=x=y") == (("a", b"1"), ("b", b""), ("c", None), ("d", b"x=y"))
    with pytest.raises(RecordSyntaxError, match="no TAB"):
        LineSyntax(has_headers=True).parse(b"a=1 value")
    with pytest.raises(RecordSyntaxError, match="not UTF-8"):
        parse_headers(b"\xff=1")


@pytest.mark.parametrize(
    ("text", "expected"), [(r"\t", "\t"), (r"\\t", r"\t"), (r"\x41\n", "A\n"), (r"\q", r"\q"), ("\\", "\\")]
)
def test_escapes_are_resolved_once(text: str, expected: str) -> None:
    assert unescape(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nonsense",
        b"[]",
        b"{}",
        b'{"key": "a deletion that nobody asked for"}',
        b'{"id": 7, "value": "plain JSON"}',
        b'{"Value": "a typo"}',
        b'{"value": "v", "key": "!", "key_encoding": "base64"}',
        b'{"value": "v", "key": "a", "key_encoding": "rot13"}',
        b'{"value": "v", "headers": "a=b"}',
        b'{"value": "v", "headers": [{"value": "nameless"}]}',
        b'{"value": "v", "headers": [{"name": "valueless"}]}',
        b'{"value": "v", "headers": [{"name": "n", "value": "v", "val": "w"}]}',
        b'{"value": "v", "partition": "0"}',
        b'{"value": "v", "timestamp": true}',
    ],
)
def test_a_json_line_that_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(RecordSyntaxError):
        decode_record(line)


def test_a_percent_sign_may_stand_anywhere_in_a_format() -> None:
    message = Message(topic="t", partition=0, offset=1, key=None, value=b"%k\xff", timestamp=(1, 5))

    assert text_writer("%%k=%k %s%%", "N", BYTES, lambda _: None)(message) == b"%k=N %k\xff%"


def test_json_flags_base64() -> None:
    document = json.loads(
        json_writer(BYTES)(Message(topic="t", partition=0, offset=0, value=b"\xff", timestamp=(0, 0)))
    )

    assert base64.b64decode(document["value"]) == b"\xff"
    assert document["value_encoding"] == "base64"
    assert document["timestamp"] is None


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("start", Start()),
        ("end", End()),
        ("0", AtOffset(0)),
        ("12", AtOffset(12)),
        ("-12", Last(12)),
        ("@1700000000000", AtTime(1_700_000_000_000)),
        ("@2023-11-14T22:13:20Z", AtTime(1_700_000_000_000)),
        ("@2023-11-14T23:13:20.250+01:00", AtTime(1_700_000_000_250)),
    ],
)
def test_positions_have_a_syntax(text: str, position: object) -> None:
    assert parse_position(text, "--from") == position


@pytest.mark.parametrize("text", ["", "-", "@", "@soon", "1e3", "٣"])
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse_position(text, "--from")
    assert caught.value.code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (KafkaError._AUTHENTICATION, ExitCode.AUTHENTICATION),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ExitCode.AUTHENTICATION),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ExitCode.NOT_FOUND),
        (KafkaError._UNKNOWN_PARTITION, ExitCode.NOT_FOUND),
        (KafkaError._TIMED_OUT, ExitCode.CONNECTION),
        (KafkaError.REQUEST_TIMED_OUT, ExitCode.CONNECTION),
        (KafkaError._ALL_BROKERS_DOWN, ExitCode.CONNECTION),
        (KafkaError.INVALID_CONFIG, ExitCode.FAILURE),
        (KafkaError.MSG_SIZE_TOO_LARGE, ExitCode.FAILURE),
    ],
)
def test_a_kafka_error_has_its_exit_code(code: int, exit_code: ExitCode) -> None:
    assert from_kafka(KafkaError(code)).code is exit_code
