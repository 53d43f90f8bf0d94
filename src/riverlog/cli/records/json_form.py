"""One record as one line of JSON: what `consume -o json` prints and `produce --input json` reads.

A key, value or header that is not UTF-8 stands in base64 with `"…_encoding": "base64"` beside it, so that
what was consumed can be produced again byte for byte. A null value deletes a key from a compacted topic, so
it is never taken from silence: `value` must be there, and a member that no record has is an error.
"""

import base64
import binascii
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

Headers = tuple[tuple[str, bytes | None], ...]
_SENT: Final = ("key", "key_encoding", "value", "value_encoding", "headers", "partition", "timestamp")
_TOLD_ONLY: Final = ("topic", "offset", "timestamp_type")
"""What `consume` tells of a record and `produce` cannot choose."""
_OF_HEADER: Final = ("name", "value", "value_encoding")
_PLAIN_VALUES: Final = "for lines that are values themselves use --input json-values"


class RecordSyntaxError(ValueError):
    """A line that is no record; the message says why."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class InputRecord:
    """What is to be produced. None for a partition or timestamp leaves it to the client."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def encode_bytes(name: str, data: bytes | None) -> dict[str, str | None]:
    """`{name: text}`, or the base64 and its flag."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {name: base64.b64encode(data).decode(), f"{name}_encoding": "base64"}


def encode_headers(headers: Headers) -> list[dict[str, str | None]]:
    return [{"name": name, **encode_bytes("value", value)} for name, value in headers]


def compact_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def decode_record(line: bytes, documents: Collection[str] = ()) -> InputRecord:
    """The record of a JSON line. What `consume` tells besides (topic, offset…) is left aside.

    `documents` names the members (key, value) that are documents: their JSON is taken, whatever they are.
    """
    document = _document(line)
    if not isinstance(document, dict):
        raise RecordSyntaxError(f'not a JSON object such as {{"key": "k", "value": "v"}}; {_PLAIN_VALUES}')
    if unknown := sorted(document.keys() - {*_SENT, *_TOLD_ONLY}):
        raise RecordSyntaxError(f"a record has no {unknown[0]!r}, only {', '.join(_SENT)}; {_PLAIN_VALUES}")
    if "value" not in document:
        raise RecordSyntaxError(f'no "value", which may be null for a deletion; {_PLAIN_VALUES}')
    return InputRecord(
        key=_bytes(document, "key", is_document="key" in documents),
        value=_bytes(document, "value", is_document="value" in documents),
        headers=_headers(document.get("headers")),
        partition=_whole_number(document, "partition"),
        timestamp_ms=_whole_number(document, "timestamp"),
    )


def decode_value(line: bytes) -> InputRecord:
    """A record whose value is the whole line, byte for byte, which must be JSON."""
    _document(line)
    return InputRecord(value=line)


def _document(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise RecordSyntaxError(f"not JSON: {error}") from None


def _bytes(document: Mapping[str, Any], name: str, *, is_document: bool = False) -> bytes | None:
    content, encoding = document.get(name), document.get(f"{name}_encoding", "utf-8")
    if is_document:
        return None if content is None else compact_json(content)
    match content, encoding:
        case None, _:
            return None
        case str(), "utf-8":
            return content.encode()
        case str(), "base64":
            try:
                return base64.b64decode(content, validate=True)
            except binascii.Error as error:
                raise RecordSyntaxError(f"{name} is not base64: {error}") from None
        case _, "utf-8":
            # A nested document is a common value; it travels as compact JSON.
            return compact_json(content)
        case _:
            raise RecordSyntaxError(f"{name}_encoding {encoding!r} is neither utf-8 nor base64")


def _headers(content: object) -> Headers:
    match content:
        case None:
            return ()
        case dict():
            return tuple((name, _bytes({"value": value}, "value")) for name, value in content.items())
        case list() if all(map(_is_header, content)):
            return tuple((item["name"], _bytes(item, "value")) for item in content)
        case _:
            raise RecordSyntaxError('headers are neither {"name": "value"} nor [{"name": …, "value": …}]')


def _is_header(item: object) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("name"), str)
        and "value" in item
        and item.keys() <= set(_OF_HEADER)
    )


def _whole_number(document: Mapping[str, Any], name: str) -> int | None:
    number = document.get(name)
    if number is None or (isinstance(number, int) and not isinstance(number, bool)):
        return number
    raise RecordSyntaxError(f"{name} {number!r} is not a whole number")
