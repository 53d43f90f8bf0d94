"""Frames: a size of four bytes, a header, a message.

Cutting frames out of a stream is the connection's work; this reads the header of one and builds whole ones.
A request header can be read for any version of a known API, so that ApiVersions of an unknown version can
be answered (KIP-511).
"""

import struct
from typing import Final, NamedTuple

from riverlog.model.disk import ReadableBuffer
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import MalformedMessage, encode_into
from riverlog.wire.primitives import skip_tagged_fields, too_short
from riverlog.wire.schema import Message

_HEADER: Final = struct.Struct(">hhih")
_FRAME_AND_HEADER: Final = struct.Struct(">ihhih")
_CORRELATION_ID: Final = struct.Struct(">i")
_SIZE_BYTES: Final = 4
_new_tuple = tuple.__new__  # Spares every request the Python call that a NamedTuple is made by.
_FLEXIBLE: Final = {int(key): api.flexible_version for key, api in APIS.items()}
_FLEXIBLE_RESPONSE: Final = {**_FLEXIBLE, int(ApiKey.API_VERSIONS): 1 << 15}


class RequestHeader(NamedTuple):
    """Of whatever request; the key and the version need not be ones that we know."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


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
    return _new_tuple(RequestHeader, (key, version, correlation_id, client_id)), position


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
    out = response_head(api_key, version, correlation_id)
    return _finish(out, body, version)


def response_head(api_key: int, version: int, correlation_id: int) -> bytearray:
    """Room for the size, and the header of a response."""
    out = bytearray(_SIZE_BYTES)
    out += correlation_id.to_bytes(4, signed=True)
    if version >= _FLEXIBLE_RESPONSE[api_key]:
        out.append(0)
    return out


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
    out[:_SIZE_BYTES] = (len(out) - _SIZE_BYTES).to_bytes(_SIZE_BYTES)
    return bytes(out)
