"""Decode and encode messages of any API and version by their tables.

Readers and writers are compiled on first use and kept. `MalformedMessage` is the only exception that `decode`
raises for any bytes at all. Bytes after the message are the caller's business: `decode` says where it ended.
What ends in `in_pieces` is for long messages, and does the same with pauses.
"""

import struct
from typing import TypeVar, cast

from riverlog.model.disk import ReadableBuffer
from riverlog.model.pieces import Pieces
from riverlog.wire.primitives import MalformedMessage
from riverlog.wire.readers import (
    ELEMENTS_IN_PIECE,
    PieceReader,
    Reader,
    compile_piece_reader,
    compile_reader,
)
from riverlog.wire.schema import Message
from riverlog.wire.writers import (
    Gap,
    GapWriter,
    PieceWriter,
    Writer,
    compile_gap_writer,
    compile_piece_writer,
    compile_writer,
)

__all__ = [
    "AT_ONCE_MAX",
    "LongMessageError",
    "MalformedMessage",
    "decode",
    "decode_if_short",
    "decode_in_pieces",
    "encode",
    "encode_around_records",
    "encode_in_pieces",
    "encode_into",
    "encoded_element",
]

M = TypeVar("M", bound=Message)

_PIECES_AT_ONCE = 4
AT_ONCE_MAX = _PIECES_AT_ONCE * ELEMENTS_IN_PIECE

_readers: dict[tuple[type[Message], int], Reader] = {}
_writers: dict[tuple[type[Message], int], Writer] = {}
_gap_writers: dict[tuple[type[Message], int], GapWriter] = {}
_piece_readers: dict[tuple[type[Message], int], PieceReader] = {}
_piece_writers: dict[tuple[type[Message], int], PieceWriter] = {}


def decode(cls: type[M], version: int, data: ReadableBuffer, start: int = 0) -> tuple[M, int]:
    """The message at `start` and the position after it.

    Fields that the version lacks hold their defaults. Record data is a slice of `data`: of a `memoryview`
    a view, so that nothing is copied.
    """
    reader = _readers.get((cls, version))
    if reader is None:
        _check_version(cls, version)
        reader = _readers[cls, version] = compile_reader(cls, version)
    try:
        return reader(data, start, len(data))
    except MalformedMessage as error:
        raise MalformedMessage(f"{cls.__name__} v{version}: {error}") from None
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"{cls.__name__} v{version}: {error}") from error


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message. Values in fields that the version lacks are left out.

    Kafka's own code refuses such a value, unless its schema calls the field ignorable. The tables here do not
    say which fields are: the sender of a request picks a version that can say all that is meant.
    """
    out = bytearray()
    encode_into(out, message, version)
    return bytes(out)


def encode_into(out: bytearray, message: Message, version: int) -> None:
    """Append the bytes of a message to `out`."""
    cls = type(message)
    writer = _writers.get((cls, version))
    if writer is None:
        _check_version(cls, version)
        writer = _writers[cls, version] = compile_writer(cls, version)
    try:
        writer(message, out)
    except (AttributeError, TypeError, struct.error) as error:
        raise _unfit(cls, version, error) from error


def encode_around_records(out: bytearray, message: Message, version: int) -> list[Gap]:
    """Append the bytes of a message to `out`, all but its records: those are returned with their places."""
    cls = type(message)
    writer = _gap_writers.get((cls, version))
    if writer is None:
        _check_version(cls, version)
        writer = _gap_writers[cls, version] = compile_gap_writer(cls, version)
    gaps: list[Gap] = []
    try:
        writer(message, out, gaps)
    except (AttributeError, TypeError, struct.error) as error:
        raise _unfit(cls, version, error) from error
    return gaps


def decode_in_pieces(
    cls: type[M], version: int, data: ReadableBuffer, start: int = 0
) -> Pieces[tuple[M, int]]:
    """As `decode`. The data must stay as it is meanwhile."""
    reader = _piece_readers.get((cls, version))
    if reader is None:
        _check_version(cls, version)
        reader = _piece_readers[cls, version] = compile_piece_reader(cls, version)
    try:
        return (yield from reader(data, start, len(data)))
    except MalformedMessage as error:
        raise MalformedMessage(f"{cls.__name__} v{version}: {error}") from None
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage(f"{cls.__name__} v{version}: {error}") from error


class LongMessageError(Exception):
    """It has more elements than are read at once."""


def decode_if_short(cls: type[M], version: int, data: ReadableBuffer, start: int = 0) -> tuple[M, int]:
    """As `decode`. Raises `LongMessageError` where its arrays have more than `AT_ONCE_MAX` elements."""
    pieces = decode_in_pieces(cls, version, data, start)
    try:
        for _ in range(_PIECES_AT_ONCE):
            next(pieces)
    except StopIteration as stop:
        read: tuple[M, int] = stop.value
        return read
    raise LongMessageError


def encode_in_pieces(out: bytearray, message: Message, version: int) -> Pieces[list[Gap]]:
    """As `encode_around_records`; structures in arrays may be those that `encoded_element` has made."""
    cls = type(message)
    writer = _piece_writers.get((cls, version))
    if writer is None:
        _check_version(cls, version)
        writer = _piece_writers[cls, version] = compile_piece_writer(cls, version)
    gaps: list[Gap] = []
    try:
        yield from writer(message, out, gaps)
    except (AttributeError, TypeError, struct.error) as error:
        raise _unfit(cls, version, error) from error
    return gaps


def encoded_element(element: M, version: int) -> Pieces[M]:
    """A structure from an array of a long message, encoded: it takes the place of the structure there."""
    out = bytearray()
    gaps = yield from encode_in_pieces(out, element, version)
    parts: list[bytes | bytearray] = []
    start = 0
    for position, inner, _ in gaps:
        assert type(inner) is bytes, "elements hold no records"
        parts += (out[start:position], inner)
        start = position
    # What stands for a message here is known to the writer alone.
    return cast(M, b"".join((*parts, out[start:])))


def _unfit(cls: type[Message], version: int, error: Exception) -> ValueError:
    return ValueError(f"{cls.__name__} v{version} cannot hold these values: {error}")


def _check_version(cls: type[Message], version: int) -> None:
    first, last = cls.VERSIONS
    if not first <= version <= last:
        raise ValueError(f"{cls.__name__} has the versions {first} to {last}, not {version}")
