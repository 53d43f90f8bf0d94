r"""How `consume` writes a record: by a format string, or as a line of JSON.

Tokens, as in kcat: %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %K length of the key,
%s value, %S length of the value (-1 for null), %h headers as NAME=VALUE,…, %% a percent sign; and the
escapes \n, \t, \0, \\, \xHH. The bytes of keys, values and headers are written as they are.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from riverlog.cli.failures import usage
from riverlog.cli.record_json import Headers, encode_bytes, encode_headers
from riverlog.cli.record_lines import unescape

if TYPE_CHECKING:
    from confluent_kafka import Message

Writer = Callable[["Message"], bytes]
_TIMESTAMP_TYPES = {0: None, 1: "create", 2: "append"}


def text_writer(template: str, null: str) -> Writer:
    """A function that fills the template; `null` stands for a null key, value or header."""
    parts = _compile(template, null.encode())

    def write(message: "Message") -> bytes:
        return b"".join([part if isinstance(part, bytes) else part(message) for part in parts])

    return write


def write_json(message: "Message") -> bytes:
    kind, timestamp_ms = message.timestamp()
    document = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp_ms if _TIMESTAMP_TYPES.get(kind) else None,
        "timestamp_type": _TIMESTAMP_TYPES.get(kind),
        **encode_bytes("key", message.key()),
        **encode_bytes("value", message.value()),
        "headers": encode_headers(headers_of(message)),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def headers_of(message: "Message") -> Headers:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)


def _compile(template: str, null: bytes) -> list[bytes | Writer]:
    tokens: dict[str, bytes | Writer] = {
        "%": b"%",
        "t": lambda message: (message.topic() or "").encode(),
        "p": lambda message: b"%d" % (message.partition() or 0),
        "o": lambda message: b"%d" % (message.offset() or 0),
        "T": lambda message: b"%d" % message.timestamp()[1],
        "k": lambda message: _or_null(message.key(), null),
        "K": lambda message: _length(message.key()),
        "s": lambda message: _or_null(message.value(), null),
        "S": lambda message: _length(message.value()),
        "h": lambda message: _header_text(headers_of(message), null),
    }
    literal, *rest = _split_at_percent(template)
    parts: list[bytes | Writer] = [unescape(literal).encode()]
    for piece in rest:
        if not piece or piece[0] not in tokens:
            raise usage(f"--format has no token %{piece[:1]}", remedy=f"the tokens are %{' %'.join(tokens)}")
        parts += [tokens[piece[0]], unescape(piece[1:]).encode()]
    return parts


def _split_at_percent(template: str) -> list[str]:
    """The text before the first token, then for each token its letter and the text that follows."""
    pieces, start, index = [], 0, 0
    while (index := template.find("%", index)) >= 0:
        pieces.append(template[start:index])
        start, index = index + 1, index + 2
    return [*pieces, template[start:]]


def _or_null(data: bytes | None, null: bytes) -> bytes:
    return null if data is None else data


def _length(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))


def _header_text(headers: Headers, null: bytes) -> bytes:
    return b",".join(name.encode() + b"=" + _or_null(value, null) for name, value in headers)
