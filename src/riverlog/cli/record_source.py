"""Where `produce` gets its records from: stdin or a file, line by line."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from riverlog.cli.failures import CommandError
from riverlog.cli.output import progress, remark
from riverlog.cli.record_json import InputRecord, RecordSyntaxError


def read_records(path: Path | None, parse: Callable[[bytes], InputRecord]) -> Iterator[InputRecord]:
    """The records of a file, with a progress bar, or of stdin. A line that is no record ends it."""
    if path is None:
        if sys.stdin.isatty():
            remark("one record per line; Ctrl-D ends")
        yield from _parsed(sys.stdin.buffer, parse, "stdin")
        return
    with path.open("rb") as stream, progress(path.name, path.stat().st_size, in_bytes=True) as bar:
        yield from _parsed(_counted(stream, bar.advance), parse, str(path))


def _counted(lines: Iterator[bytes], advance: Callable[[float], None]) -> Iterator[bytes]:
    for line in lines:
        yield line
        advance(len(line))


def _parsed(
    lines: Iterator[bytes], parse: Callable[[bytes], InputRecord], name: str
) -> Iterator[InputRecord]:
    for number, line in enumerate(lines, start=1):
        try:
            yield parse(line)
        except RecordSyntaxError as error:
            raise CommandError(
                f"{name}, line {number}: {error}",
                remedy="the records before it were sent; `riverlog produce --help` shows the syntax",
            ) from None
