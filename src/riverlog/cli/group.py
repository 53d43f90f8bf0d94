"""`riverlog group`: see consumer groups and how far they are. What changes one is in `group_changes`."""

import json
import sys
import time
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli import group_changes
from riverlog.cli.connection import Connection, connected
from riverlog.cli.consumer_groups import (
    committed_offsets,
    describe_groups,
    end_offsets,
    exact_state,
    kind_of,
    list_groups,
    owners_of,
)
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.output import counted, show_json, show_rows, show_table

if TYPE_CHECKING:
    from riverlog.cli.kafka_admin import ConsumerGroupDescription, MemberDescription

app = typer.Typer(
    help="List, describe, move, save, restore and delete consumer groups.",
    no_args_is_help=True,
    add_completion=False,
)

_CLEAR_SCREEN = "\x1b[H\x1b[2J"


@app.command("list")
@connected
def list_command(
    connection: Connection,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Only names that match, such as 'billing-*'.")
    ] = "*",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List consumer groups.

    Example: riverlog group list 'billing*' -o json
    """
    rows = [
        {"group": each.group, "type": each.kind, "state": each.state}
        for each in list_groups(connection)
        if fnmatchcase(each.group, pattern)
    ]
    show_rows(rows, output, empty="no consumer groups")


@app.command("describe")
@connected
def describe(
    connection: Connection,
    groups: Annotated[list[str], typer.Argument(metavar="GROUP…", show_default=False)],
    watch: Annotated[
        bool, typer.Option("-w", "--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Pause of --watch.")
    ] = 2.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show offsets, lag and owners, partition by partition. With --watch, JSON comes as lines.

    Example: riverlog group describe billing --watch
    """
    if not watch:
        _show([_description(connection, each) for each in describe_groups(connection, groups)], output)
        return
    while True:
        found = [_description(connection, each) for each in describe_groups(connection, groups)]
        if output is OutputFormat.JSON:
            typer.echo(json.dumps(found, ensure_ascii=False, separators=(",", ":")))
        else:
            if sys.stdout.isatty():
                typer.echo(_CLEAR_SCREEN, nl=False)
            _show(found, output)
        sys.stdout.flush()
        time.sleep(interval)


app.command("seek")(group_changes.seek)
app.command("export")(group_changes.export)
app.command("import")(group_changes.import_)
app.command("delete")(group_changes.delete)


def _description(connection: Connection, group: "ConsumerGroupDescription") -> dict[str, object]:
    committed = committed_offsets(connection, group.group_id)
    owners = owners_of(group)
    places = sorted(committed.keys() | owners.keys())
    ends = end_offsets(connection, places)
    partitions = []
    for place in places:
        offset = committed[place].offset if place in committed else None
        end = ends.get(place)
        partitions.append(
            {
                "topic": place[0],
                "partition": place[1],
                "offset": offset,
                "end": end,
                "lag": None if offset is None or end is None else max(0, end - offset),
                **_owner(owners.get(place)),
            }
        )
    return {
        "group": group.group_id,
        "type": kind_of(group),
        "state": exact_state(connection, group),
        "assignor": group.partition_assignor or None,
        "coordinator": group.coordinator.id if group.coordinator is not None else None,
        "members": len(group.members),
        "idle_members": [
            _owner(member) for member in group.members if not member.assignment.topic_partitions
        ],
        "lag": sum(each["lag"] for each in partitions if isinstance(each["lag"], int)),
        "partitions": partitions,
    }


def _owner(member: "MemberDescription | None") -> dict[str, object]:
    if member is None:
        return {"owner": None, "host": None, "client": None}
    return {
        "owner": member.group_instance_id or member.member_id,
        "host": member.host.removeprefix("/"),
        "client": member.client_id,
    }


def _show(described: list[dict[str, object]], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        show_json(described)
        return
    for number, row in enumerate(described):
        if number:
            typer.echo()
        _show_one(row)


def _show_one(row: dict[str, object]) -> None:
    partitions, idle = row["partitions"], row["idle_members"]
    assert isinstance(partitions, list)
    assert isinstance(idle, list)
    members = row["members"]
    assert isinstance(members, int)
    assignor = f", {row['assignor']}" if row["assignor"] else ""
    typer.echo(
        f"{row['group']}  ({row['type']}, {row['state']}{assignor}, {counted(members, 'member')}, "
        f"lag {row['lag']})"
    )
    if partitions:
        show_table(partitions)
    if idle:
        typer.echo("\nmembers without partitions")
        show_table(idle)
