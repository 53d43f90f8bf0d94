"""`riverlog config`: which settings a server would run with, and what a key means. Asks no broker."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli.failures import CommandError, ExitCode
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.output import Row, show_json, show_rows, warn
from riverlog.cli.server_options import (
    ConfigFileOption,
    DataDirOption,
    InsecureOption,
    ListenOption,
    SetOption,
)
from riverlog.cli.starting import ServeOptions, load_settings

if TYPE_CHECKING:
    from riverlog.model.config.settings import Settings
    from riverlog.model.config.table import Key

app = typer.Typer(
    help="Show the settings of a server and explain them.", no_args_is_help=True, add_completion=False
)

KeysArgument = Annotated[list[str] | None, typer.Argument(metavar="KEY…", show_default=False)]


@app.command("show")
def show(
    keys: KeysArgument = None,
    config: ConfigFileOption = None,
    data_dir: DataDirOption = None,
    listen: ListenOption = None,
    set_: SetOption = None,
    insecure: InsecureOption = False,
    everything: Annotated[
        bool, typer.Option("-a", "--all", help="Also the keys of Kafka that have no effect here.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the settings that `serve` would run with, and where each comes from.

    Examples:
      riverlog config show -c server.properties
      riverlog config show log.segment.bytes num.partitions -o json
    """
    from riverlog.model.config.definitions import BROKER_KEYS
    from riverlog.model.config.table import Status

    settings = load_settings(ServeOptions(config, data_dir, listen, set_ or (), insecure))
    for warning in settings.warnings:
        warn(warning)
    if keys:
        shown = [_known(key, BROKER_KEYS) for key in keys]
    else:
        shown = [
            key
            for key in BROKER_KEYS.values()
            if everything or key.status is Status.WORKS or key.name in settings
        ]
    rows = [_setting_row(settings, key) for key in sorted(shown, key=lambda each: each.name)]
    show_rows(rows, output)


@app.command("docs")
def docs(
    keys: KeysArgument = None,
    topic: Annotated[bool, typer.Option("--topic", help="The keys of topics instead of servers.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Explain keys; without one, list them all.

    Examples:
      riverlog config docs log.segment.bytes
      riverlog config docs --topic retention.ms
    """
    from riverlog.model.config.definitions import BROKER_KEYS, TOPIC_KEYS

    known = TOPIC_KEYS if topic else BROKER_KEYS
    if not keys:
        rows = [_docs_row(key) for _, key in sorted(known.items()) if not key.is_internal]
        brief = [{name: row[name] for name in ("key", "type", "default", "status")} for row in rows]
        show_rows(rows if output is OutputFormat.JSON else brief, output)
        return
    # A key that is only a topic's is found without --topic, too.
    found = [_docs_row(_known(key, known if key in known else {**known, **TOPIC_KEYS})) for key in keys]
    if output is OutputFormat.JSON:
        show_json(found)
        return
    for number, row in enumerate(found):
        if number:
            typer.echo()
        for line in _docs_lines(row):
            typer.echo(line)


def _known(name: str, keys: "Mapping[str, Key]") -> "Key":
    from riverlog.model.config.definitions import nearest

    if name not in keys:
        close = nearest(name, keys)
        raise CommandError(
            f"there is no setting {name}",
            remedy=close or "`riverlog config docs` lists them",
            code=ExitCode.NOT_FOUND,
        )
    return keys[name]


def _setting_row(settings: "Settings", key: "Key") -> Row:
    from riverlog.model.config.values import Secret, render

    value = settings.get(key.name)
    text = "[hidden]" if isinstance(value, Secret) else render(value)
    return {"key": key.name, "value": text, "source": settings.origin(key.name)}


def _docs_row(key: "Key") -> dict[str, object]:
    return {
        "key": key.name,
        "type": key.type.name.lower(),
        "default": key.default,
        "allowed": _allowed_text(key),
        "importance": key.importance.value,
        "changes": key.mode.value,
        "status": key.status.value,
        "documentation": key.documentation,
    }


def _allowed_text(key: "Key") -> str | None:
    from riverlog.model.config.table import OneOf, Range, Shape
    from riverlog.model.config.values import shown_number

    match key.allowed:
        case Range(minimum, maximum, also):
            bound = f"at least {shown_number(minimum)}"
            if maximum is not None:
                bound = f"{shown_number(minimum)} to {shown_number(maximum)}"
            return bound if also is None else f"{bound}, or {shown_number(also)}"
        case OneOf(choices):
            return ", ".join(choices)
        case Shape() as shape:
            return shape.value
        case None:
            return None


def _docs_lines(row: dict[str, object]) -> Iterator[str]:
    yield str(row["key"])
    yield f"  {row['documentation']}"
    for name in ("type", "default", "allowed", "importance", "changes", "status"):
        if row[name] is not None:
            yield f"  {name + ':':<12} {row[name]}"
