"""One record as one line of JSON: what `consume -o json` prints and `produce --input json` reads.

A key, value or header that is not UTF-8 stands in base64 with `"…_encoding": "base64"` beside it, so that
what was consumed can be produced again byte for byte.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Headers = tuple[tuple[str, bytes | None], ...]


class RecordSyntaxError(ValueError):
    """A line that is no record; the message says why."""


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


def decode_record(line: bytes) -> InputRecord:
    """The record of a JSON line; members it does not know (topic, offset…) are left aside."""
    try:
        document = json.loads(line)
    except ValueError as error:
        raise RecordSyntaxError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise RecordSyntaxError('not a JSON object such as {"key": "k", "value": "v"}')
    return InputRecord(
        key=_bytes(document, "key"),
        value=_bytes(document, "value"),
        headers=_headers(document.get("headers")),
        partition=_whole_number(document, "partition"),
        timestamp_ms=_whole_number(document, "timestamp"),
    )


def _bytes(document: Mapping[str, Any], name: str) -> bytes | None:
    content, encoding = document.get(name), document.get(f"{name}_encoding", "utf-8")
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
            return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        case _:
            raise RecordSyntaxError(f"{name}_encoding {encoding!r} is neither utf-8 nor base64")


def _headers(content: object) -> Headers:
    match content:
        case None:
            return ()
        case dict():
            return tuple((name, _bytes({"value": value}, "value")) for name, value in content.items())
        case list() if all(isinstance(item, dict) and isinstance(item.get("name"), str) for item in content):
            return tuple((item["name"], _bytes(item, "value")) for item in content)
        case _:
            raise RecordSyntaxError('headers are neither {"name": "value"} nor [{"name": …, "value": …}]')


def _whole_number(document: Mapping[str, Any], name: str) -> int | None:
    number = document.get(name)
    if number is None or (isinstance(number, int) and not isinstance(number, bool)):
        return number
    raise RecordSyntaxError(f"{name} {number!r} is not a whole number")
