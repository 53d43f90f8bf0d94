"""The pieces that compiled and hand-written codecs share: varints, ids, tagged fields, the one exception.

Every reader here takes the whole buffer and a position, and checks a length against the bytes left before it
uses it. `IndexError`, `struct.error` and `UnicodeDecodeError` may escape: whoever calls translates them.
"""

from functools import lru_cache
from typing import Final
from uuid import UUID

from riverlog.model.disk import ReadableBuffer

VARINT: Final = tuple(bytes([value]) for value in range(128))
"""The varints of one byte, which nearly all lengths are."""

_VARINT_MAX: Final = (1 << 31) - 1
_ZERO_ID: Final = bytes(16)


class MalformedMessage(ValueError):  # noqa: N818 - named for what the bytes are
    """The bytes are not a message of the version they claim to be."""


def read_long_varint(data: ReadableBuffer, position: int) -> tuple[int, int]:
    """An unsigned varint of any length at `position`, and the position after it.

    Stricter than Kafka, which takes padded varints: no client writes them.
    """
    value = 0
    for count in range(5):
        byte = data[position + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            if value > _VARINT_MAX or (byte == 0 and count):
                raise MalformedMessage("varint is too large or not in its shortest form")
            return value, position + count + 1
    raise MalformedMessage("varint is longer than five bytes")


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 128:
        return VARINT[value]
    parts = bytearray()
    while value > 127:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def skip_tagged_fields(data: ReadableBuffer, position: int, size: int) -> int:
    """The position after a block of tagged fields none of which is known."""
    count, position = read_long_varint(data, position)
    if count * 2 > size - position:
        raise MalformedMessage(f"{count} tagged fields do not fit into {size - position} bytes")
    for _ in range(count):
        _, position = read_long_varint(data, position)
        length, position = read_long_varint(data, position)
        position += length
        if position > size:
            raise MalformedMessage("tagged field ends after the message")
    return position


@lru_cache(maxsize=4096)
def id_of(raw: bytes) -> UUID | None:
    """An id of 16 bytes; zero means none. Cached, since the same few topic ids come again and again."""
    return None if raw == _ZERO_ID else UUID(bytes=raw)


def id_bytes(value: UUID | None) -> bytes:
    return _ZERO_ID if value is None else value.int.to_bytes(16)


def too_short(what: str, length: int, left: int) -> MalformedMessage:
    """The error for a length or count that is negative or that the bytes left cannot hold."""
    return MalformedMessage(f"{what} of length {length} does not fit into the {left} bytes left")
