"""Showing something once, or again and again until Ctrl-C."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated

import typer

from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.options import OutputFormat
from riverlog.cli.printing.output import remark

_CLEAR_SCREEN = "\x1b[H\x1b[2J"
WatchOption = Annotated[bool, typer.Option("-w", "--watch", help="Show it again and again, until Ctrl-C.")]
IntervalOption = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Pause of --watch.")
]


def show_again(show: Callable[[], bool], watch: bool, interval: float, output: OutputFormat) -> None:
    """Exits with 1 where `show`, called once, says that something is wrong."""
    if not watch:
        if not show():
            raise typer.Exit(ExitCode.FAILURE)
        return
    is_first = True
    with suppress(KeyboardInterrupt):
        while True:
            begin_snapshot(output)
            try:
                show()
            except CommandError as failure:
                # Brokers come and go, which is what is being watched; an address that is wrong is not.
                if is_first:
                    raise
                remark(failure.message)
            is_first = False
            sys.stdout.flush()
            time.sleep(interval)


def begin_snapshot(output: OutputFormat) -> None:
    """On a terminal each takes the place of the one before; in a file, where they follow one another, a line
    with the time is between them. JSON has a line for each as it is."""
    if output is not OutputFormat.TABLE:
        return
    if sys.stdout.isatty():
        typer.echo(_CLEAR_SCREEN, nl=False)
    else:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        typer.echo(f"--- {moment}")
