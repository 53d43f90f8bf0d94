"""Frames: a size of four bytes, a header, a message.

Cutting frames out of a stream is the connection's work; this reads the header of one and builds whole ones.
A request header can be read for any version of a known API, so that ApiVersions of an unknown version can
be answered (KIP-511).
"""

import struct
from typing import Final, NamedTuple

from riverlog.model.disk import ReadableBuffer
from riverlog.model.named_tuples import maker_of
from riverlog.model.pieces import Pieces
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import MalformedMessage, encode_around_records, encode_in_pieces, encode_into
from riverlog.wire.primitives import skip_tagged_fields, too_short
from riverlog.wire.schema import Message, RecordData
from riverlog.wire.writers import Gap

_HEADER: Final = struct.Struct(">hhih")
_FRAME_AND_HEADER: Final = struct.Struct(">ihhih")
_CORRELATION_ID: Final = struct.Struct(">i")
_SIZE_BYTES: Final = 4
_put_size: Final = struct.Struct(">i").pack_into
_classic_head: Final = struct.Struct(">ii").pack
_flexible_head: Final = struct.Struct(">iiB").pack
_FLEXIBLE: Final = {int(key): api.flexible_version for key, api in APIS.items()}
_FLEXIBLE_RESPONSE: Final = {**_FLEXIBLE, int(ApiKey.API_VERSIONS): 1 << 15}


class RequestHeader(NamedTuple):
    """Of any request; the key and the version need not be ones that we know."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


_request_header: Final = maker_of(RequestHeader)


def decode_request_header(data: ReadableBuffer, start: int = 0) -> tuple[RequestHeader, int]:
    """The header of a request and the position of its body.

    An unknown API is taken to have no tagged fields: there is nothing to be done with its body anyhow.
    """
    size = len(data)
    try:
        key, version, correlation_id, length = _HEADER.unpack_from(data, start)
        position = start + _HEADER.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > size:
                raise too_short("client id", length, size - position)
            client_id = str(data[position:end], "utf-8", "replace")  # Any bytes will do, as in Kafka.
            position = end
        if version >= _FLEXIBLE.get(key, 1 << 15):
            position = position + 1 if data[position] == 0 else skip_tagged_fields(data, position, size)
    except (IndexError, struct.error) as error:
        raise MalformedMessage(f"request header: {error}") from error
    return _request_header((key, version, correlation_id, client_id)), position


def encode_request(header: RequestHeader, message: Message) -> bytes:
    """A whole frame, size included."""
    key, version, correlation_id, client_id = header
    raw = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(raw)
    out = bytearray(_FRAME_AND_HEADER.pack(0, key, version, correlation_id, length))
    out += raw
    if version >= _FLEXIBLE[key]:
        out.append(0)
    return _finish(out, message, version)


def encode_response(api_key: int, version: int, correlation_id: int, body: Message) -> bytes:
    """A whole frame, size included."""
    out = _response_head(api_key, version, correlation_id)
    return _finish(out, body, version)


def encode_response_in_parts(
    api_key: int, version: int, correlation_id: int, body: Message
) -> list[RecordData]:
    """The same frame in parts, to be sent one after the other; records stand in it as the body holds them."""
    out = _response_head(api_key, version, correlation_id)
    return _in_parts(out, encode_around_records(out, body, version))


def encode_response_in_pieces(
    api_key: int, version: int, correlation_id: int, body: Message
) -> Pieces[list[RecordData]]:
    """The same for a long body, with pauses."""
    out = _response_head(api_key, version, correlation_id)
    return _in_parts(out, (yield from encode_in_pieces(out, body, version)))


def _in_parts(out: bytearray, gaps: list[Gap]) -> list[RecordData]:
    size = len(out) - _SIZE_BYTES
    for _, _, length in gaps:
        size += length
    _put_size(out, 0, size)
    written = bytes(out)
    if not gaps:
        return [written]
    parts: list[RecordData] = []
    start = 0
    for position, records, _ in gaps:
        if start < position:
            parts.append(written[start:position])
        parts.append(records)
        start = position
    if start < len(written):
        parts.append(written[start:])
    return parts


def _response_head(api_key: int, version: int, correlation_id: int) -> bytearray:
    """Room for the size, and the header of a response."""
    if version >= _FLEXIBLE_RESPONSE[api_key]:
        return bytearray(_flexible_head(0, correlation_id, 0))
    return bytearray(_classic_head(0, correlation_id))


def decode_response_header(
    api_key: int, version: int, data: ReadableBuffer, start: int = 0
) -> tuple[int, int]:
    """The correlation id of a response, and the position of its body."""
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(data, start)
        position = start + _CORRELATION_ID.size
        if version >= _FLEXIBLE_RESPONSE[api_key]:
            position = skip_tagged_fields(data, position, len(data))
    except (IndexError, struct.error) as error:
        raise MalformedMessage(f"response header: {error}") from error
    return correlation_id, position


def _finish(out: bytearray, body: Message, version: int) -> bytes:
    encode_into(out, body, version)
    _put_size(out, 0, len(out) - _SIZE_BYTES)
    return bytes(out)
