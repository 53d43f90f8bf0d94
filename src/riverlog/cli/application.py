"""The root of the command tree.

The table below is the whole list of commands. A module is imported when its command is asked for.
"""

import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from riverlog import __version__
from riverlog.cli.failures import ExitCode, is_usage_error, report, report_usage_error

COMMANDS = {
    "serve": "riverlog.cli.commands.serve",
    "topic": "riverlog.cli.commands.topic",
    "produce": "riverlog.cli.commands.produce",
    "consume": "riverlog.cli.commands.consume",
    "explain": "riverlog.cli.commands.explain",
    "group": "riverlog.cli.commands.group",
    "txn": "riverlog.cli.commands.txn",
    "cluster": "riverlog.cli.commands.cluster",
    "registry": "riverlog.cli.commands.registry",
    "log": "riverlog.cli.commands.log",
    "config": "riverlog.cli.commands.config",
    "pipeline": "riverlog.cli.commands.pipeline",
    "metadata": "riverlog.cli.commands.metadata",
    "version": "riverlog.cli.commands.version",
}


class CommandTable(MutableMapping[str, Any]):
    """Commands by name, each imported when it is first looked up."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            command = typer.main.get_command(import_module(COMMANDS[name]).app)
            command.name = name
            self._loaded[name] = command
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]


class RootGroup(TyperGroup):
    """Finds commands in the table and reports what they fail with."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = CommandTable()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (Exception, KeyboardInterrupt) as error:  # The edge of the program: reported, and not lost.
            code = report(error)
            if code is None:
                raise
            raise typer.Exit(code) from None
        return result

    def main(self, *args: Any, **options: Any) -> Any:
        """Run, and report what the option parser complains about in the words of every other error."""
        try:
            result = super().main(*args, **{**options, "standalone_mode": False})
        except typer.Abort:
            sys.exit(ExitCode.FAILURE)
        except Exception as error:
            if not is_usage_error(error):
                raise
            report_usage_error(error)
            sys.exit(ExitCode.USAGE)
        sys.exit(result if isinstance(result, int) else ExitCode.OK)


app = typer.Typer(
    name="riverlog",
    cls=RootGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"riverlog {__version__}")
        raise typer.Exit


@app.callback()
def riverlog(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit."),
    ] = False,
) -> None:
    """A distributed commit log that speaks Apache Kafka's protocol.

    Commands talk to the broker of -b HOST:PORT or RIVERLOG_BOOTSTRAP,
    otherwise 127.0.0.1:9092. They work on Apache Kafka too.

    Exit codes: 0 ok, 1 failure, 2 usage, 3 authentication,
    4 not found, 5 connection or time-out, 130 interrupted.
    """
