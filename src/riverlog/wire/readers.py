"""Compile a reader for one message class and version from its field table.

The reader is one flat function `read(data, pos, size) -> (message, end)`: structures are inlined, adjacent
fields of fixed width (and the length before a classic string or array) share one `unpack_from`. A count is
held against the bytes left, times the least size of an element, before a list is begun. `struct.error`,
`IndexError` and `UnicodeDecodeError` escape from it; `riverlog.wire.codec` translates them. For long messages
it is a generator as well, with the same result (`riverlog.model.pieces`).
"""

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from riverlog.model.disk import ReadableBuffer
from riverlog.model.pieces import Pieces
from riverlog.wire.primitives import (
    MalformedMessage,
    id_of,
    read_long_varint,
    read_tag,
    read_tag_count,
    skip_tagged_fields,
    too_short,
)
from riverlog.wire.schema import DEFAULT, Field, Message
from riverlog.wire.source import FORMATS, LETTER_BYTES, Source

Reader = Callable[[ReadableBuffer, int, int], tuple[Any, int]]
PieceReader = Callable[[ReadableBuffer, int, int], Pieces[tuple[Any, int]]]

ELEMENTS_IN_PIECE = 32  # A power of two. So many are some tens of microseconds.
_NUMBERS_IN_PIECE = 4096

_SCOPE: dict[str, Any] = {
    "MalformedMessage": MalformedMessage,
    "id_of": id_of,
    # No constructor is called: the source sets every field of the class's table, from which that is made too.
    "new": object.__new__,
    "read_long_varint": read_long_varint,
    "read_tag": read_tag,
    "read_tag_count": read_tag_count,
    "skip_tagged_fields": skip_tagged_fields,
    "too_short": too_short,
    "unpack_from": struct.unpack_from,
}
_CLASSIC_LENGTHS = {"string": "h", "bytes": "i", "records": "i"}
_PIECES = {
    "string": "str(data[pos:{}], 'utf-8')",
    "bytes": "bytes(data[pos:{}])",
    "records": "data[pos:{}]",
}


def compile_reader(cls: type[Message], version: int) -> Reader:
    return _compile(cls, version, in_pieces=False)


def compile_piece_reader(cls: type[Message], version: int) -> PieceReader:
    return _compile(cls, version, in_pieces=True)


def _compile(cls: type[Message], version: int, *, in_pieces: bool) -> Callable[..., Any]:
    source = Source(_SCOPE)
    source.indent("def read(data, pos, size):")
    if in_pieces:
        source.line("k = 0")
        source.line("yield")
    flexible = version >= cls.FLEXIBLE
    message = _ReaderSource(source, version, flexible=flexible, in_pieces=in_pieces).struct(cls)
    source.line(f"return {message}, pos")
    return source.function("read")


def min_bytes(field: Field, version: int, flexible: bool) -> int:
    """The least number of bytes that a plain field, or one element of an array, can take."""
    if field.struct is None:
        if flexible and field.kind in ("string", "bytes", "records"):
            return 1
        return LETTER_BYTES[FORMATS.get(field.kind) or _CLASSIC_LENGTHS[field.kind]]
    total = 1 if flexible else 0
    for inner in field.struct.FIELDS:
        if inner.is_in(version) and not inner.is_tagged_in(version):
            if inner.array:
                total += 1 if flexible else 4
            elif inner.struct is not None and inner.is_nullable_in(version):
                total += 1
            else:
                total += min_bytes(inner, version, flexible)
    return total


class _ReaderSource:
    """Writes the source of one reader. `_run` holds fixed-width fields that await one common unpack."""

    def __init__(self, source: Source, version: int, *, flexible: bool, in_pieces: bool) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._in_pieces = in_pieces
        self._run: list[tuple[str, str]] = []

    def struct(self, cls: type[Message]) -> str:
        """Read a structure and return the variable that holds it."""
        source = self._source
        values: dict[str, str] = {}
        tagged: list[Field] = []
        for field in cls.FIELDS:
            if not field.is_in(self._version):
                continue
            if field.is_tagged_in(self._version):
                tagged.append(field)
            else:
                values[field.name] = self._field(field)
        self._flush()
        if self._flexible:
            values |= self._tagged_fields(tagged)
        target = source.name("m")
        source.line(f"{target} = new({source.constant('C', cls)})")
        for field in cls.FIELDS:
            value = values.get(field.name) or self._default(field)
            source.line(f"{target}.{field.name} = {value}")
        return target

    def _field(self, field: Field) -> str:
        if field.array:
            return self._array(field)
        nullable = field.is_nullable_in(self._version)
        if field.struct is not None:
            return self._nullable_struct(field.struct) if nullable else self.struct(field.struct)
        if field.kind in FORMATS:
            variable = self._source.name("v")
            self._run.append((FORMATS[field.kind], variable))
            return f"id_of({variable})" if field.kind == "uuid" else variable
        return self._sized(field.kind, nullable)

    def _flush(self) -> None:
        if not self._run:
            return
        letters = "".join(letter for letter, _ in self._run)
        names = ", ".join(name for _, name in self._run)
        unpack = self._source.bound(letters, "unpack_from")
        self._source.line(f"{names}, = {unpack}(data, pos)")
        self._source.line(f"pos += {sum(LETTER_BYTES[letter] for letter, _ in self._run)}")
        self._run.clear()

    def _varint(self) -> str:
        self._flush()
        variable = self._source.name("n")
        self._source.line(f"{variable} = data[pos]")
        self._source.line(f"if {variable} < 128: pos += 1")
        self._source.line(f"else: {variable}, pos = read_long_varint(data, pos)")
        return variable

    def _length(self, letter: str) -> str:
        """Read a length, in which null is -1."""
        if not self._flexible:
            variable = self._source.name("n")
            self._run.append((letter, variable))
            self._flush()
            return variable
        variable = self._varint()
        self._source.line(f"{variable} -= 1")
        return variable

    def _sized(self, kind: str, nullable: bool) -> str:
        source = self._source
        length = self._length(_CLASSIC_LENGTHS[kind])
        value, end = source.name("v"), source.name("e")
        if nullable:
            source.line(f"if {length} < 0: {value} = None")
            source.indent("else:")
            source.line(f"{end} = pos + {length}")
            source.line(f"if {end} > size: raise too_short({kind!r}, {length}, size - pos)")
        else:
            source.line(f"{end} = pos + {length}")
            source.line(f"if {length} < 0 or {end} > size: raise too_short({kind!r}, {length}, size - pos)")
        source.line(f"{value} = {_PIECES[kind].format(end)}")
        source.line(f"pos = {end}")
        if nullable:
            source.dedent()
        return value

    def _array(self, field: Field) -> str:
        source = self._source
        count = self._length("i")
        value = source.name("v")
        least = max(1, min_bytes(field, self._version, self._flexible))
        misfit = f"{count} * {least} > size - pos: raise too_short('array', {count}, size - pos)"
        if field.is_nullable_in(self._version):
            source.line(f"if {count} < 0: {value} = None")
            source.line(f"elif {misfit}")
            source.indent("else:")
        else:
            source.line(f"if {count} < 0 or {misfit}")
            source.indent("if 1:")
        self._elements(field, count, value)
        source.dedent()
        return value

    def _elements(self, field: Field, count: str, value: str) -> None:
        source = self._source
        letter = FORMATS.get(field.kind)
        if letter is not None and field.kind != "uuid":
            self._numbers(letter, count, value)
            return
        source.line(f"{value} = []")
        source.indent(f"for _ in range({count}):")
        if self._in_pieces:
            source.line("k += 1")
            source.line(f"if not k & {ELEMENTS_IN_PIECE - 1}: yield")
        element = self._field(field._replace(array=False, nullable=(1, 0)))
        self._flush()
        source.line(f"{value}.append({element})")
        source.dedent()

    def _numbers(self, letter: str, count: str, value: str) -> None:
        source = self._source
        if not self._in_pieces:
            source.line(f"{value} = list(unpack_from(f'>{{{count}}}{letter}', data, pos))")
            source.line(f"pos += {count} * {LETTER_BYTES[letter]}")
            return
        left, some = source.name("n"), source.name("n")
        source.line(f"{value} = []")
        source.indent(f"for {left} in range({count}, 0, -{_NUMBERS_IN_PIECE}):")
        source.line(f"{some} = min({left}, {_NUMBERS_IN_PIECE})")
        source.line(f"{value} += unpack_from(f'>{{{some}}}{letter}', data, pos)")
        source.line(f"pos += {some} * {LETTER_BYTES[letter]}")
        source.line("yield")
        source.dedent()

    def _nullable_struct(self, cls: type[Message]) -> str:
        """A structure behind a byte that is negative when there is none (KIP-893)."""
        source = self._source
        marker = source.name("n")
        self._run.append(("b", marker))
        self._flush()
        value = source.name("v")
        source.line(f"if {marker} < 0: {value} = None")
        source.indent("else:")
        source.line(f"{value} = {self.struct(cls)}")
        source.dedent()
        return value

    def _tagged_fields(self, fields: list[Field]) -> dict[str, str]:
        """Known tags are read, in any order, the last of a kind wins; unknown ones are skipped (KIP-482)."""
        source = self._source
        if not fields:
            source.line("if data[pos] == 0: pos += 1")
            source.line("else: pos = skip_tagged_fields(data, pos, size)")
            return {}
        values = {field.name: source.name("t") for field in fields}
        for field in fields:
            source.line(f"{values[field.name]} = {self._default(field)}")
        count, tag, end = source.name("n"), source.name("n"), source.name("e")
        source.line("if data[pos] == 0: pos += 1")
        source.indent("else:")
        source.line(f"{count}, pos = read_tag_count(data, pos, size)")
        source.indent(f"for _ in range({count}):")
        source.line(f"{tag}, pos, {end} = read_tag(data, pos, size)")
        for index, field in enumerate(fields):
            source.indent(f"{'elif' if index else 'if'} {tag} == {field.tag}:")
            value = self._tagged_field(field)
            self._flush()
            source.line(f"{values[field.name]} = {value}")
            source.dedent()
        source.line("else: pos = " + end)
        source.line(f"if pos != {end}: raise MalformedMessage('tagged field of a wrong length')")
        source.dedent(2)
        return values

    def _tagged_field(self, field: Field) -> str:
        if field.struct is None or field.array or not field.is_nullable_in(self._version):
            return self._field(field)
        # Unlike elsewhere, a structure in a tagged field is behind a 0 when there is none.
        source = self._source
        marker, value = self._varint(), source.name("v")
        source.line(f"if {marker} == 0: {value} = None")
        source.indent("else:")
        source.line(f"{value} = {self.struct(field.struct)}")
        source.dedent()
        return value

    def _default(self, field: Field) -> str:
        if field.default is not DEFAULT:
            assert field.default is None or isinstance(field.default, int | float | str | bytes | UUID)
            return repr(field.default)
        return "[]" if field.array else f"{self._source.constant('C', field.struct)}()"
