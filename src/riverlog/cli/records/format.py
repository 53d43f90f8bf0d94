r"""How `consume` writes a record: by a format string, or as a line of JSON.

Tokens, as in kcat: %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %K length of the key,
%s value, %S length of the value (-1 for null), %h headers as NAME=VALUE,…, %% a percent sign; and the
escapes \n, \t, \0, \\, \xHH. The bytes of keys, values and headers are written as they are, or as a name in
braces behind the token says: %k{hex}, %s{base64}; %T{iso} is the timestamp in UTC as ISO 8601. Where a schema
is chosen, %k and %s are documents of JSON; lengths and named forms are those of the bytes. %P is the id of
the producer, %P{epoch} its epoch and %P{sequence} the record's number in its sequence.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from riverlog.cli.failures import usage
from riverlog.cli.records.documents import Documents
from riverlog.cli.records.json_form import Headers, compact_json, encode_headers
from riverlog.cli.records.lines import unescape
from riverlog.cli.records.producers import Origin
from riverlog.cli.schemas.choice import Side

if TYPE_CHECKING:
    from confluent_kafka import Message

Writer = Callable[["Message"], bytes]
OriginOf = Callable[["Message"], Origin | None]
_NAMED_FORM = re.compile(r"[a-zA-Z]\{[a-z0-9]+\}")
_FORMS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "{hex}": binascii.hexlify,
    "{base64}": base64.b64encode,
}
_TIMESTAMP_TYPES = {0: None, 1: "create", 2: "append"}


def text_writer(template: str, null: str, documents: Documents, origin_of: OriginOf) -> Writer:
    """A function that fills the template; `null` stands for a null key, value or header, or no producer."""
    tokens = _tokens(null.encode())
    tokens |= _tokens_of_documents(null.encode(), documents)
    tokens |= _tokens_of_producers(null.encode(), origin_of)
    parts = _compile(template, tokens)

    def write(message: "Message") -> bytes:
        return b"".join([part if isinstance(part, bytes) else part(message) for part in parts])

    return write


def json_writer(documents: Documents) -> Writer:
    return lambda message: compact_json(_json_form(message, documents)) + b"\n"


def _json_form(message: "Message", documents: Documents) -> dict[str, Any]:
    kind, timestamp_ms = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp_ms if _TIMESTAMP_TYPES.get(kind) else None,
        "timestamp_type": _TIMESTAMP_TYPES.get(kind),
        **documents.members(Side.KEY, message),
        **documents.members(Side.VALUE, message),
        "headers": encode_headers(headers_of(message)),
    }


def headers_of(message: "Message") -> Headers:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)


def _compile(template: str, tokens: Mapping[str, bytes | Writer]) -> list[bytes | Writer]:
    literal, *rest = _split_at_percent(template)
    parts: list[bytes | Writer] = [unescape(literal).encode()]
    for piece in rest:
        named = _NAMED_FORM.match(piece)
        token = named[0] if named else piece[:1]
        if token not in tokens:
            raise usage(f"--format has no token %{token}", remedy=f"the tokens are %{' %'.join(tokens)}")
        parts += [tokens[token], unescape(piece[len(token) :]).encode()]
    return parts


def _tokens(null: bytes) -> dict[str, bytes | Writer]:
    tokens: dict[str, bytes | Writer] = {
        "%": b"%",
        "t": lambda message: (message.topic() or "").encode(),
        "p": lambda message: b"%d" % (message.partition() or 0),
        "o": lambda message: b"%d" % (message.offset() or 0),
        "T": lambda message: b"%d" % message.timestamp()[1],
        "T{iso}": lambda message: _iso_time(message, null),
        "K": lambda message: _length(message.key()),
        "S": lambda message: _length(message.value()),
    }
    for form, encode in _FORMS.items():
        tokens |= _tokens_of_bytes(form, encode, null)
    return tokens


def _tokens_of_bytes(form: str, encode: Callable[[bytes], bytes], null: bytes) -> dict[str, Writer]:
    def text(data: bytes | None) -> bytes:
        return null if data is None else encode(data)

    def header_text(message: "Message") -> bytes:
        return b",".join(name.encode() + b"=" + text(value) for name, value in headers_of(message))

    return {
        f"k{form}": lambda message: text(message.key()),
        f"s{form}": lambda message: text(message.value()),
        f"h{form}": header_text,
    }


def _tokens_of_documents(null: bytes, documents: Documents) -> dict[str, Writer]:
    def text(side: Side) -> Writer:
        return lambda message: null if (found := documents.text(side, message)) is None else found

    return {"k": text(Side.KEY), "s": text(Side.VALUE)}


def _tokens_of_producers(null: bytes, origin_of: OriginOf) -> dict[str, Writer]:
    def number(field: str) -> Writer:
        def write(message: "Message") -> bytes:
            origin = origin_of(message)
            return null if origin is None else b"%d" % getattr(origin, field)

        return write

    return {"P": number("producer_id"), "P{epoch}": number("epoch"), "P{sequence}": number("sequence")}


def _split_at_percent(template: str) -> list[str]:
    """The text before the first token, then for each token its letter and the text that follows."""
    pieces, start, index = [], 0, 0
    while (index := template.find("%", index)) >= 0:
        pieces.append(template[start:index])
        start, index = index + 1, index + 2
    return [*pieces, template[start:]]


def _length(data: bytes | None) -> bytes:
    return b"%d" % (-1 if data is None else len(data))


def _iso_time(message: "Message", null: bytes) -> bytes:
    kind, timestamp_ms = message.timestamp()
    if not _TIMESTAMP_TYPES.get(kind):
        return null
    moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC).replace(microsecond=timestamp_ms % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
