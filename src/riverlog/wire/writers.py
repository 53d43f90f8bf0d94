"""Compile a writer for one message class and version from its field table.

The writer is one flat function that appends to a `bytearray`; adjacent fields of fixed width (and the length
before a classic string or array) share one `pack`. `write(message, out)` copies records as it does all else;
`write(message, out, gaps)` leaves them out and notes in `gaps` what belongs where, so that records which lie
in a file can be sent from there. A value in a field that the version does not have is left out without a
word: the tables do not say where Kafka would rather refuse.

For long messages the last one is a generator as well (`riverlog.model.pieces`). To that one a structure in an
array may also be the bytes that it is encoded as; large ones are not copied, but become gaps.
"""

import struct
from collections.abc import Callable
from typing import Any

from riverlog.model.disk import FileSlice
from riverlog.model.pieces import Pieces
from riverlog.wire.primitives import VARINT, id_bytes, varint
from riverlog.wire.schema import DEFAULT, Field, Message, RecordData
from riverlog.wire.source import FORMATS, Source

Gap = tuple[int, RecordData, int]
"""Where records belong in the bytes written, the records, and how many bytes they are; never none."""

Writer = Callable[[Any, bytearray], None]
GapWriter = Callable[[Any, bytearray, list[Gap]], None]
PieceWriter = Callable[[Any, bytearray, list[Gap]], Pieces[None]]

_SCOPE: dict[str, Any] = {
    "FileSlice": FileSlice,
    "VARINT": VARINT,
    "id_bytes": id_bytes,
    "pack": struct.pack,
    "varint": varint,
}
_CLASSIC_LENGTHS = {"string": "h", "bytes": "i", "records": "i"}
_ELEMENTS_IN_PIECE = 32  # A power of two. So many are some tens of microseconds.
_COPIED_BYTES_MAX = 4096


def compile_writer(cls: type[Message], version: int) -> Writer:
    return _compile(cls, version, "def write(m, out):")


def compile_gap_writer(cls: type[Message], version: int) -> GapWriter:
    return _compile(cls, version, "def write(m, out, gaps):", has_gaps=True)


def compile_piece_writer(cls: type[Message], version: int) -> PieceWriter:
    return _compile(cls, version, "def write(m, out, gaps):", has_gaps=True, in_pieces=True)


def _compile(
    cls: type[Message], version: int, signature: str, *, has_gaps: bool = False, in_pieces: bool = False
) -> Callable[..., Any]:
    source = Source(_SCOPE)
    source.indent(signature)
    if in_pieces:
        source.line("k = 0")
        source.line("yield")
    flexible = version >= cls.FLEXIBLE
    writer = _WriterSource(source, version, flexible=flexible, has_gaps=has_gaps, in_pieces=in_pieces)
    writer.struct(cls, "m")
    source.line("return")
    return source.function("write")


class _WriterSource:
    """Writes the source of one writer. `_run` holds fixed-width values that await one common pack."""

    def __init__(
        self, source: Source, version: int, *, flexible: bool, has_gaps: bool, in_pieces: bool
    ) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._has_gaps = has_gaps
        self._in_pieces = in_pieces
        self._out = "out"
        self._run: list[tuple[str, str]] = []

    def struct(self, cls: type[Message], message: str) -> None:
        tagged: list[Field] = []
        for field in cls.FIELDS:
            if not field.is_in(self._version):
                continue
            if field.is_tagged_in(self._version):
                tagged.append(field)
            else:
                self._field(field, f"{message}.{field.name}")
        if not self._flexible:
            self._flush()
        elif not tagged:
            self._run.append(("b", "0"))
            self._flush()
        else:
            self._flush()
            self._tagged_fields(sorted(tagged, key=lambda field: field.tag), message)

    def _field(self, field: Field, value: str) -> None:
        nullable = field.is_nullable_in(self._version)
        if field.array:
            self._array(field, value, nullable)
        elif field.struct is not None:
            self._struct_field(field.struct, value, nullable)
        elif field.kind == "uuid":
            self._run.append(("16s", f"id_bytes({value})"))
        elif field.kind in FORMATS:
            self._run.append((FORMATS[field.kind], value))
        elif field.kind == "records" and self._has_gaps:
            self._gap(value, nullable)
        else:
            self._sized(field.kind, value, nullable)

    def _flush(self) -> None:
        if not self._run:
            return
        letters = "".join(letter for letter, _ in self._run)
        values = ", ".join(value for _, value in self._run)
        if values == "0":
            self._source.line(f"{self._out}.append(0)")
        else:
            self._source.line(f"{self._out} += {self._source.bound(letters, 'pack')}({values})")
        self._run.clear()

    def _varint(self, value: str) -> None:
        self._flush()
        self._source.line(f"{self._out} += VARINT[{value}] if {value} < 128 else varint({value})")

    def _length(self, letter: str, length: str) -> None:
        """Write a length that is in a variable, in which null is -1."""
        if self._flexible:
            self._source.line(f"{length} += 1")
            self._varint(length)
        else:
            self._run.append((letter, length))
            self._flush()

    def _sized(self, kind: str, value: str, nullable: bool) -> None:
        source = self._source
        raw, length = source.name("b"), source.name("n")
        is_text = kind == "string"
        if nullable:
            source.line(f"{raw} = {value}")
            source.line(f"if {raw} is None: {raw} = b''; {length} = -1")
            convert = f"{raw} = {raw}.encode(); " if is_text else ""
            source.line(f"else: {convert}{length} = len({raw})")
        else:
            source.line(f"{raw} = {value}.encode()" if is_text else f"{raw} = {value}")
            source.line(f"{length} = len({raw})")
        self._length(_CLASSIC_LENGTHS[kind], length)
        source.line(f"{self._out} += {raw}")

    def _gap(self, value: str, nullable: bool) -> None:
        """The length of records, and a note of where they belong."""
        assert self._out == "out", "records in a tagged field would be noted at a wrong place"
        source = self._source
        records, size, length = source.name("b"), source.name("s"), source.name("n")
        source.line(f"{records} = {value}")
        measure = f"{size} = {records}.length if type({records}) is FileSlice else len({records})"
        if nullable:
            source.line(f"if {records} is None: {size} = -1")
            source.line(f"else: {measure}")
        else:
            source.line(measure)
        source.line(f"{length} = {size}")
        self._length(_CLASSIC_LENGTHS["records"], length)
        source.line(f"if {size} > 0: gaps.append((len(out), {records}, {size}))")

    def _array(self, field: Field, value: str, nullable: bool) -> None:
        source = self._source
        elements, length = source.name("a"), source.name("n")
        source.line(f"{elements} = {value}")
        if nullable:
            source.line(f"if {elements} is None: {elements} = (); {length} = -1")
            source.line(f"else: {length} = len({elements})")
        else:
            source.line(f"{length} = len({elements})")
        self._length("i", length)
        letter = FORMATS.get(field.kind)
        if letter is not None and field.kind != "uuid":
            source.line(f"{self._out} += pack(f'>{{len({elements})}}{letter}', *{elements})")
            return
        element = source.name("m")
        source.indent(f"for {element} in {elements}:")
        if self._in_pieces:
            self._pause(element, is_struct=field.struct is not None)
        self._field(field._replace(array=False, nullable=(1, 0)), element)
        self._flush()
        source.dedent()

    def _pause(self, element: str, *, is_struct: bool) -> None:
        source = self._source
        source.line("k += 1")
        source.line(f"if not k & {_ELEMENTS_IN_PIECE - 1}: yield")
        if not is_struct:
            return
        source.indent(f"if type({element}) is bytes:")
        if self._out == "out":
            noted = f"gaps.append((len(out), {element}, len({element})))"
            source.line(f"if len({element}) > {_COPIED_BYTES_MAX}: {noted}")
            source.line(f"else: out += {element}")
        else:
            source.line(f"{self._out} += {element}")
        source.line("continue")
        source.dedent()

    def _struct_field(self, cls: type[Message], value: str, nullable: bool, null_byte: int = 255) -> None:
        source = self._source
        struct_name = source.name("m")
        if not nullable:
            source.line(f"{struct_name} = {value}")
            self.struct(cls, struct_name)
            return
        self._flush()
        source.line(f"{struct_name} = {value}")
        source.line(f"if {struct_name} is None: {self._out}.append({null_byte})")
        source.indent("else:")
        self._run.append(("b", "1"))
        self.struct(cls, struct_name)
        source.dedent()

    def _tagged_fields(self, fields: list[Field], message: str) -> None:
        """A field is written only when it is not the default, each behind its tag and length (KIP-482)."""
        source = self._source
        values = [source.name("t") for _ in fields]
        for field, value in zip(fields, values, strict=True):
            source.line(f"{value} = {message}.{field.name}")
        tests = [self._is_set(field, value) for field, value in zip(fields, values, strict=True)]
        source.indent(f"if {' or '.join(tests)}:")
        parts = source.name("p")
        source.line(f"{parts} = []")
        for field, value, is_set in zip(fields, values, tests, strict=True):
            source.indent(f"if {is_set}:")
            outer, self._out = self._out, source.name("o")
            source.line(f"{self._out} = bytearray()")
            self._tagged_field(field, value)
            self._flush()
            tag = source.constant("T", varint(field.tag))
            source.line(f"{parts}.append({tag} + varint(len({self._out})) + {self._out})")
            self._out = outer
            source.dedent()
        source.line(f"{self._out} += varint(len({parts})) + b''.join({parts})")
        source.dedent()
        source.line(f"else: {self._out}.append(0)")

    def _tagged_field(self, field: Field, value: str) -> None:
        if field.struct is None or field.array:
            self._field(field, value)
        else:
            # Unlike elsewhere, a structure in a tagged field is behind a 0 when there is none.
            self._struct_field(field.struct, value, field.is_nullable_in(self._version), null_byte=0)

    def _is_set(self, field: Field, value: str) -> str:
        if field.default is not DEFAULT:
            return f"{value} is not None" if field.default is None else f"{value} != {field.default!r}"
        if field.array:
            return f"{value} is None or {value}" if field.is_nullable_in(self._version) else value
        assert field.struct is not None
        is_any_set = " or ".join(
            self._is_set(inner, f"{value}.{inner.name}") for inner in field.struct.FIELDS
        )
        return f"{value} is None or {is_any_set}" if field.is_nullable_in(self._version) else is_any_set
