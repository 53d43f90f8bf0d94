"""Option types that several commands share, so that one name means one thing everywhere."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from riverlog.cli.failures import usage


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[
    OutputFormat, typer.Option("-o", "--output", help="How to print: a table for people, JSON for programs.")
]
YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")]
TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something that cannot be undone; a script must say --yes instead."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise usage(
            f"{question} This needs a confirmation, and there is no terminal to ask at", remedy="add --yes"
        )
    if not typer.confirm(f"{question} Go on?", err=True):
        raise typer.Exit(1)
