"""Printing: rows as a table or as JSON on stdout, remarks and progress on stderr.

A row is a plain mapping; its keys are the JSON names and, with blanks for underscores, the column titles.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import typer

from riverlog.cli.options import OutputFormat

Row = Mapping[str, object]


def show_rows(rows: Sequence[Row], output: OutputFormat, *, empty: str = "") -> None:
    """Print a list; `empty` is the remark for people when there is nothing in it."""
    if output is OutputFormat.JSON:
        show_json(list(rows))
    elif rows:
        show_table(rows)
    elif empty:
        remark(empty)


def show_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def show_json_line(value: object) -> None:
    """One line each time, for programs that read line by line."""
    typer.echo(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def show_table(rows: Sequence[Row], title: str | None = None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    # Off a terminal nothing is wrapped or cut: a table in a pipe is read by grep and awk.
    console = Console(file=sys.stdout, width=None if terminal else 10_000, highlight=False)
    table = Table(
        box=box.SIMPLE_HEAD if terminal else None, pad_edge=False, title=title, title_justify="left"
    )
    for key in rows[0]:
        numeric = all(isinstance(row[key], int | float | None) for row in rows)
        table.add_column(
            key.replace("_", " ").upper(), justify="right" if numeric else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(_cell(key, value) for key, value in row.items()))
    console.print(table)


def show_stream(rows: Iterator[Row], output: OutputFormat) -> None:
    """Print rows as they come, however many: lines of JSON, or columns of a fixed width.

    In a table a row with other keys than the first belongs to the row above; it is shown below it.
    """
    columns: tuple[str, ...] = ()
    for row in rows:
        if output is OutputFormat.JSON:
            typer.echo(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
            continue
        if not columns:
            columns = tuple(row)
            typer.echo("  ".join(_fixed(name, name.replace("_", " ").upper()) for name in columns).rstrip())
        if tuple(row) == columns:
            typer.echo("  ".join(_fixed(name, _plain(value)) for name, value in row.items()).rstrip())
        else:
            typer.echo("    " + " ".join(f"{name}={_quoted(value)}" for name, value in row.items()))


_WORDS = ("codec", "kind", "crc")


def _fixed(name: str, text: str) -> str:
    if name in _WORDS:
        return text.ljust(len(name) + 2)
    return text.rjust(max(len(name), 13 if "timestamp" in name else 10))


def _plain(value: object) -> str:
    return "-" if value is None else str(value)


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def remark(text: str) -> None:
    """Something worth knowing that is not data."""
    typer.echo(text, err=True)


def warn(text: str) -> None:
    typer.secho("warning: ", fg="yellow", err=True, nl=False)
    typer.echo(text, err=True)


def human_bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _cell(key: str, value: object) -> str:
    from rich.markup import escape

    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int() if key.endswith("size"):
            return human_bytes(value)
        case list() | tuple():
            return ",".join(str(item) for item in value)
        case dict():
            return " ".join(f"{name}={item}" for name, item in value.items())
        case _:
            return escape(str(value))


class Progress(Protocol):
    """How far a long piece of work has come."""

    def advance(self, amount: float) -> None: ...


class _Silent:
    def advance(self, amount: float) -> None:
        return


@contextmanager
def progress(
    what: str, total: float | None, *, in_bytes: bool = False, wanted: bool = True
) -> Iterator[Progress]:
    """A progress bar on stderr while the block runs, if stderr is a terminal; otherwise nothing."""
    if not wanted or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    class Bar:
        def advance(self, amount: float) -> None:
            bars.advance(task, amount)

    count = DownloadColumn() if in_bytes else MofNCompleteColumn()
    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield Bar()
