"""`riverlog log`: look into log files and check them. Needs no broker; works on Apache Kafka's files too.

Both commands only read. On the files of a running broker the end of the newest segment may be in the making.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.log_rows import rows_of
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.output import counted, human_bytes, progress, remark, show_rows, show_stream, warn

if TYPE_CHECKING:
    from riverlog.model.disk import Disk
    from riverlog.storage.inspect import Checked, Finding

app = typer.Typer(help="Look into log files and check them.", no_args_is_help=True, add_completion=False)

PathsArgument = Annotated[list[str], typer.Argument(metavar="PATH…", show_default=False)]
SEGMENT = re.compile(r"[0-9]{20}\.log")
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@app.command("dump")
def dump(
    paths: PathsArgument,
    records: Annotated[bool, typer.Option("-r", "--records", help="The records of each batch, too.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print what is in segment files, indexes and producer snapshots.

    A directory stands for its .log files. JSON comes as one object a line.

    Examples:
      riverlog log dump riverlog-data/orders-0
      riverlog log dump 00000000000000000000.log --records -o json
      riverlog log dump 00000000000000000000.timeindex
    """
    files = [file for path in paths for file in _files(path)]
    for number, file in enumerate(files):
        if len(files) > 1 and output is OutputFormat.TABLE:
            typer.echo(f"{'' if number == 0 else chr(10)}{file}")
        show_stream(rows_of(_disk(), file, with_records=records), output)


@app.command("verify")
def verify(paths: PathsArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Check every batch, index and snapshot; a flipped bit anywhere is found.

    PATH is a file, a partition's directory or a whole data directory.
    Exit code 1 when anything is wrong.

    Example: riverlog log verify riverlog-data
    """
    for path in paths:
        _must_exist(path)
    findings, checked = _verify(paths)
    rows = [{"file": each.path, "position": each.position, "problem": each.message} for each in findings]
    show_rows(rows, output)
    size = sum(each.size_bytes for each in checked)
    remark(f"{counted(len(checked), 'file')}, {human_bytes(size)}: {counted(len(findings), 'problem')}")
    if findings:
        raise typer.Exit(ExitCode.FAILURE)
    if not checked:
        warn(f"there are no log files in {', '.join(paths)}")


def _verify(paths: list[str]) -> "tuple[list[Finding], list[Checked]]":
    from riverlog.storage import inspect

    findings: list[Finding] = []
    checked: list[Checked] = []
    total = sum(map(_size_below, paths))
    with progress("checking", total, in_bytes=True) as bar:
        for path in paths:
            for outcome in inspect.verify(_disk(), os.path.abspath(path)):
                match outcome:
                    case inspect.Finding():
                        findings.append(outcome)
                    case inspect.Checked():
                        checked.append(outcome)
                        bar.advance(outcome.size_bytes)
    return findings, checked


def _files(path: str) -> list[str]:
    _must_exist(path)
    if os.path.isdir(path):
        found = [os.path.join(path, name) for name in sorted(os.listdir(path)) if SEGMENT.fullmatch(name)]
        if not found:
            raise CommandError(
                f"{path} holds no segments",
                remedy="name the directory of a partition, such as riverlog-data/orders-0",
                code=ExitCode.NOT_FOUND,
            )
        return found
    if not path.endswith(SUFFIXES):
        raise usage(f"{path} is none of {' '.join(SUFFIXES)}")
    return [path]


def _must_exist(path: str) -> None:
    if not os.path.exists(path):
        raise CommandError(f"there is no {path}", code=ExitCode.NOT_FOUND)


def _size_below(path: str) -> int:
    return sum(os.path.getsize(file) for file in _all_files(path) if file.endswith(SUFFIXES))


def _all_files(path: str) -> Iterable[str]:
    return _walk(path) if os.path.isdir(path) else (path,)


def _walk(path: str) -> Iterator[str]:
    for directory, _, names in os.walk(path):
        yield from (os.path.join(directory, name) for name in names)


def _disk() -> "Disk":
    from riverlog.cli.read_only_disk import ReadOnlyDisk

    return ReadOnlyDisk()
