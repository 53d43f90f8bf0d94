"""Showing something once, or again and again until Ctrl-C."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
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
            if output is OutputFormat.TABLE and sys.stdout.isatty():
                typer.echo(_CLEAR_SCREEN, nl=False)
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
