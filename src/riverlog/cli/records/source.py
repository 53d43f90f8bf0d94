"""Where `produce` gets its records from: stdin or a file, piece by piece or as a whole."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from riverlog.cli.failures import CommandError
from riverlog.cli.printing.output import progress, remark
from riverlog.cli.records.json_form import InputRecord, RecordSyntaxError

NEWLINE = b"\n"
_READ_BYTES = 64 * 1024


def read_records(
    path: Path | None, delimiter: bytes | None, parse: Callable[[bytes], InputRecord]
) -> Iterator[InputRecord]:
    """The records of a file, with a progress bar, or of stdin. What is no record ends it.

    Each ends with the delimiter; None takes all that there is as one.
    """
    if path is None:
        if sys.stdin.isatty():
            remark("one record per line; Ctrl-D ends")
        yield from _parsed(_pieces(sys.stdin.buffer, delimiter), parse, "stdin")
        return
    with path.open("rb") as stream, progress(path.name, path.stat().st_size, in_bytes=True) as bar:
        yield from _parsed(_counted(_pieces(stream, delimiter), bar.advance), parse, str(path))


def _pieces(stream: BinaryIO, delimiter: bytes | None) -> Iterator[bytes]:
    """Without their delimiters; what follows the last one is a piece if it is not empty."""
    if delimiter is None:
        yield stream.read()
    elif delimiter == NEWLINE:
        for line in stream:
            yield line.removesuffix(NEWLINE)
    else:
        yield from _split(stream, delimiter)


def _split(stream: BinaryIO, delimiter: bytes) -> Iterator[bytes]:
    rest = b""
    # A pipe gives what it has, so that a record is sent when it comes and not when much has come.
    while data := stream.read1(_READ_BYTES) if hasattr(stream, "read1") else stream.read(_READ_BYTES):
        *whole, rest = (rest + data).split(delimiter)
        yield from whole
    if rest:
        yield rest


def _counted(pieces: Iterator[bytes], advance: Callable[[float], None]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        advance(len(piece) + 1)


def _parsed(
    pieces: Iterator[bytes], parse: Callable[[bytes], InputRecord], name: str
) -> Iterator[InputRecord]:
    for number, piece in enumerate(pieces, start=1):
        try:
            yield parse(piece)
        except RecordSyntaxError as error:
            raise CommandError(
                f"{name}, line {number}: {error}",
                remedy=error.remedy
                or "it and what follows it were not sent; `riverlog produce --help` shows the syntax",
            ) from None
