"""What stands before a key or value that was written by a schema of a registry. Pure.

A zero byte and the number of the schema, four bytes; Protobuf has besides which message of the schema it is:
the way to it by indexes, as zigzag varints after their count, where a count of zero is the first message.
"""

import struct

_HEAD = struct.Struct(">bI")
_MAGIC = 0


class NotFramedError(ValueError):
    """Bytes that no registry's client has written; the message says why."""


def frame(schema_id: int, payload: bytes) -> bytes:
    return _HEAD.pack(_MAGIC, schema_id) + payload


def split_frame(data: bytes) -> tuple[int, bytes]:
    """The number of the schema, and what was written by it."""
    if len(data) < _HEAD.size:
        raise NotFramedError(
            f"is not in the framing of a registry: it has {len(data)} bytes, fewer than five"
        )
    magic, schema_id = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise NotFramedError(
            f"is not in the framing of a registry: its first byte is {data[0]:#04x}, not 0x00"
        )
    return schema_id, data[_HEAD.size :]


def write_indexes(indexes: tuple[int, ...]) -> bytes:
    if indexes == (0,):
        return _varint(0)
    return _varint(len(indexes)) + b"".join(map(_varint, indexes))


def read_indexes(payload: bytes) -> tuple[tuple[int, ...], bytes]:
    """The way to the message, and the message itself."""
    count, position = _read_varint(payload, 0)
    if not 0 <= count <= len(payload):
        raise NotFramedError("does not say which message of its schema it is")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(payload, position)
        indexes.append(index)
    return tuple(indexes) or (0,), payload[position:]


def _varint(number: int) -> bytes:
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise NotFramedError("does not say which message of its schema it is")
