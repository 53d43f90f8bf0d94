"""`riverlog log`: look into log files and check them. Works on Apache Kafka's files too, and needs no broker
but where replicas are compared.

`dump` and `verify` only read. On the files of a running broker the end of the newest segment may be in the
making. Logs that were moved aside are no broker's any more, so that `strays` may remove them at any time.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.old_letters import still_taking
from riverlog.cli.options import OutputFormat, OutputOption, YesOption, confirm
from riverlog.cli.printing.output import (
    counted,
    human_bytes,
    progress,
    remark,
    show_rows,
    show_stream,
    warn,
)
from riverlog.cli.records.log_rows import rows_of

if TYPE_CHECKING:
    from riverlog.model.disk import Disk
    from riverlog.storage.directory.strays import Stray
    from riverlog.storage.inspect import Checked, Finding

app = typer.Typer(help="Look into log files and check them.", no_args_is_help=True, add_completion=False)

PathsArgument = Annotated[list[str], typer.Argument(metavar="PATH…", show_default=False)]
SEGMENT = re.compile(r"[0-9]{20}\.log")
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@app.command("dump", cls=still_taking(records="-r"))
def dump(
    paths: PathsArgument,
    records: Annotated[bool, typer.Option("--records", help="The records of each batch, too.")] = False,
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
    if not files:
        raise CommandError(
            f"there are no segments in {', '.join(paths)}",
            remedy="name the directory of a partition, such as riverlog-data/orders-0",
            code=ExitCode.NOT_FOUND,
        )
    for number, file in enumerate(files):
        if len(files) > 1 and output is OutputFormat.TABLE:
            typer.echo(f"{'' if number == 0 else chr(10)}{file}")
        show_stream(rows_of(_disk(), file, with_records=records), output)


@app.command("verify")
def verify(
    paths: PathsArgument,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="HOST:PORT",
            help="Compare with the replicas that this broker has, instead of checking the files.",
        ),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check every batch, index and snapshot; a flipped bit anywhere is found.

    PATH is a file, a partition's directory or a whole data directory; of several brokers on one host,
    that of one of them. Exit code 1 when anything is wrong.

    With --against, replicas are compared: byte by byte as far as both have committed records;
    those of compacted topics by the newest record of each key. Exit code 1 also when the broker has none
    of them.

    Examples:
      riverlog log verify riverlog-data
      riverlog log verify riverlog-data --against 127.0.0.1:9093
    """
    for path in paths:
        _must_exist(path)
        _must_be_of_one_broker(path)
    if against is not None:
        from riverlog.cli.commands.log_against import verify_against

        verify_against(_disk(), paths, against, output)
        return
    findings, checked = _verify(paths)
    rows = [{"file": each.path, "position": each.position, "problem": each.message} for each in findings]
    show_rows(rows, output)
    size = sum(each.size_bytes for each in checked)
    remark(f"{counted(len(checked), 'file')}, {human_bytes(size)}: {counted(len(findings), 'problem')}")
    if findings:
        raise typer.Exit(ExitCode.FAILURE)
    if not checked:
        warn(f"there are no log files in {', '.join(paths)}")


@app.command("strays")
def strays(
    paths: Annotated[list[str], typer.Argument(metavar="DATA_DIR…", show_default=False)],
    remove: Annotated[bool, typer.Option("--remove", help="Remove them, for good.")] = False,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List logs that a broker has moved aside at its start, and remove them.

    They belong to no partition in the metadata: their topic was deleted while the broker could not
    delete them, or the metadata is not the one they were written under. To have one back, stop the
    broker, restore the metadata (`riverlog metadata import`) and take the suffix off the directory's name.

    Examples:
      riverlog log strays riverlog-data
      riverlog log strays riverlog-data --remove --yes
    """
    from riverlog.storage.directory.strays import remove_stray, strays_in
    from riverlog.storage.disk.local import LocalDisk

    for path in paths:
        _must_exist(path)
    disk = LocalDisk()
    found = [stray for path in paths for stray in strays_in(disk, os.path.abspath(path))]
    show_rows([_stray_row(each) for each in found], output)
    what = f"{counted(len(found), 'stray log')}, {human_bytes(sum(each.size_bytes for each in found))}"
    remark(what)
    if remove and found:
        confirm(f"{what} will be deleted.", yes=yes)
        for stray in found:
            remove_stray(disk, stray)
        remark(f"removed {counted(len(found), 'stray log')}")


def _stray_row(stray: "Stray") -> dict[str, object]:
    from riverlog.storage.files.partition_metadata import encode_uuid

    return {
        "topic": stray.topic_partition.topic,
        "partition": stray.topic_partition.partition,
        "topic_id": None if stray.topic_id is None else encode_uuid(stray.topic_id),
        "size_bytes": stray.size_bytes,
        "directory": stray.path,
    }


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
            warn(f"{path} holds no segments")
        return found
    if not path.endswith(SUFFIXES):
        raise usage(f"{path} is none of {' '.join(SUFFIXES)}")
    return [path]


def _must_exist(path: str) -> None:
    if not os.path.exists(path):
        raise CommandError(f"there is no {path}", code=ExitCode.NOT_FOUND)


def _must_be_of_one_broker(path: str) -> None:
    """A usage error for the directory of several brokers, `serve --brokers`: it has no logs, theirs have."""
    from riverlog.storage.files import names

    if not os.path.isdir(path) or os.path.exists(os.path.join(path, names.META_PROPERTIES)):
        return
    brokers = [os.path.join(path, name) for name in os.listdir(path) if name.startswith("broker-")]
    brokers = [each for each in brokers if os.path.exists(os.path.join(each, names.META_PROPERTIES))]
    if brokers:
        told = " ".join(sorted(brokers, key=lambda each: (len(each), each)))
        raise usage(
            f"{path} is the directory of several brokers and holds no logs itself",
            remedy=f"name those of brokers: {told}",
        )


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
