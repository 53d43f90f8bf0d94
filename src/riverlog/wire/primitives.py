"""The pieces that compiled and hand-written codecs share: varints, ids, tagged fields, the one exception.

Every reader here takes the whole buffer and a position, and checks a length against the bytes left before it
uses it. `IndexError`, `struct.error` and `UnicodeDecodeError` may escape: the caller translates them.
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
    value = data[position]
    if value < 0x80:
        return value, position + 1
    byte = data[position + 1]
    value = value & 0x7F | (byte & 0x7F) << 7
    if 0 < byte < 0x80:
        return value, position + 2
    if byte and 0 < (third := data[position + 2]) < 0x80:
        return value | third << 14, position + 3
    for count in range(2, 5):
        if byte == 0:
            raise MalformedMessage("varint is not in its shortest form")
        byte = data[position + count]
        value |= (byte & 0x7F) << (7 * count)
        if 0 < byte < 0x80:
            if value > _VARINT_MAX:
                raise MalformedMessage(f"varint {value} is out of range")
            return value, position + count + 1
    raise MalformedMessage("varint is too long")


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 128:
        return VARINT[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    parts = bytearray()
    while value > 127:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def read_tag_count(data: ReadableBuffer, position: int, size: int) -> tuple[int, int]:
    """The number of tagged fields in a block, each of which takes two bytes at least."""
    count, position = read_long_varint(data, position)
    if count * 2 > size - position:
        raise too_short("tagged fields", count, size - position)
    return count, position


def read_tag(data: ReadableBuffer, position: int, size: int) -> tuple[int, int, int]:
    """The tag of a tagged field, and where its value begins and ends."""
    tag, position = read_long_varint(data, position)
    length, position = read_long_varint(data, position)
    if length > size - position:
        raise too_short("tagged field", length, size - position)
    return tag, position, position + length


def skip_tagged_fields(data: ReadableBuffer, position: int, size: int) -> int:
    """The position after a block of tagged fields none of which is known."""
    count, position = read_tag_count(data, position, size)
    for _ in range(count):
        _, _, position = read_tag(data, position, size)
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


def classic_text(text: str | None) -> bytes:
    """A string as the versions before KIP-482 have it."""
    if text is None:
        return b"\xff\xff"
    raw = text.encode()
    if len(raw) > 0x7FFF:
        raise ValueError(f"a string of {len(raw)} bytes is too long for this version")
    return len(raw).to_bytes(2) + raw


def compact_text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    raw = text.encode()
    length = len(raw) + 1
    return (VARINT[length] if length < 128 else varint(length)) + raw
