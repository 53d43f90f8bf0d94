"""`riverlog registry`: brokers and consumers as the registries of the ZooKeeper days, computed."""

import json
from typing import Annotated

import typer

from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.registry import Content, Node, Registry, content_of
from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.output import show_json, show_rows

app = typer.Typer(
    help="Look at brokers and consumers as in the registries of the ZooKeeper days.",
    no_args_is_help=True,
    add_completion=False,
)


@app.command("ls")
@connected
def ls(
    connection: Connection,
    path: Annotated[str, typer.Argument(metavar="PATH", show_default=False)] = "/",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List what is below a path: /brokers, /cluster, /consumers, /controller and what is in them.

    Nothing of it is stored. Members of groups have paths as long as their
    session lasts, as ephemeral nodes had; offsets stay.

    Examples:
      riverlog registry ls /consumers/billing/owners
      riverlog registry ls /brokers/ids
    """
    found = _found(connection, path)
    names = [] if isinstance(found, str) else list(found)
    show_rows([{"name": name} for name in names], output, empty=f"nothing is below {path}")


@app.command("get")
@connected
def get(
    connection: Connection,
    path: Annotated[str, typer.Argument(metavar="PATH", show_default=False)],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print what is at a path.

    With -o json, everything below it too.

    Examples:
      riverlog registry get /consumers/billing/offsets/orders/0
      riverlog registry get /consumers/billing -o json
    """
    found = _found(connection, path)
    if output is OutputFormat.JSON:
        show_json(_all(found))
    elif isinstance(found, str):
        typer.echo(found)
    else:
        raise CommandError(
            f"{path} has no data, but nodes below it",
            remedy=f"riverlog registry ls {path}, or riverlog registry get {path} -o json",
            code=ExitCode.NOT_FOUND,
        )


def _found(connection: Connection, path: str) -> Content:
    found = Registry(connection).find(path)
    if found is None:
        above = "/" + "/".join([part for part in path.split("/") if part][:-1])
        raise CommandError(
            f"there is nothing at {path}",
            remedy=f"see what is there with `riverlog registry ls {above}`",
            code=ExitCode.NOT_FOUND,
        )
    return found


def _all(node: Node) -> object:
    """Data is JSON itself, mostly; then it is shown as such."""
    content = content_of(node)
    if not isinstance(content, str):
        return {name: _all(child) for name, child in content.items()}
    try:
        return json.loads(content)
    except ValueError:
        return content
