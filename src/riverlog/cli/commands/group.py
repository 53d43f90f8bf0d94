"""`riverlog group`: see consumer groups and how far they are. What changes one is in `group_changes`."""

import sys
import time
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli.asking.cluster import OffsetRange, ranges_of_topics
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.consumer_groups import (
    committed_offsets,
    describe_groups,
    exact_state,
    kind_of,
    list_groups,
    owners_of,
)
from riverlog.cli.commands import group_changes
from riverlog.cli.failures import usage
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.again import begin_snapshot
from riverlog.cli.printing.output import counted, show_json, show_json_line, show_rows, show_table

if TYPE_CHECKING:
    from riverlog.cli.asking.kafka_admin import ConsumerGroupDescription, MemberDescription

app = typer.Typer(
    help="List, describe, move, save, restore and delete consumer groups.",
    no_args_is_help=True,
    add_completion=False,
)

_NO_COMMIT = "no commit yet"


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
    groups: Annotated[list[str] | None, typer.Argument(metavar="GROUP…", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every group there is.")] = False,
    watch: Annotated[
        bool, typer.Option("-w", "--watch", help="Show it again and again, until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Pause of --watch.")
    ] = 2.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show offsets, lag and owners, partition by partition. With --watch, JSON comes as lines.

    Every partition of the topics counts; where nothing is committed yet, all that is there is lag.

    Example: riverlog group describe billing --watch
    """
    if bool(groups) == every:
        raise usage("say which groups to describe", remedy="riverlog group describe GROUP…, or --all")
    if not watch:
        _show(_descriptions(connection, groups), output)
        return
    with suppress(KeyboardInterrupt):
        _watch(connection, groups, interval, output)


def _descriptions(connection: Connection, groups: list[str] | None) -> list[dict[str, object]]:
    """Of all groups, unless some are named."""
    names = groups or [each.group for each in list_groups(connection)]
    return [_description(connection, each) for each in describe_groups(connection, names)]


def _watch(connection: Connection, groups: list[str] | None, interval: float, output: OutputFormat) -> None:
    while True:
        found = _descriptions(connection, groups)
        begin_snapshot(output)
        if output is OutputFormat.JSON:
            show_json_line(found)
        else:
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
    places = committed.keys() | owners.keys()
    held = ranges_of_topics(connection, {topic for topic, _ in places})
    partitions = []
    for place in sorted(places | held.keys()):
        offset = committed[place].offset if place in committed else None
        partitions.append(
            {
                "topic": place[0],
                "partition": place[1],
                "offset": offset,
                "end": held[place].end if place in held else None,
                "lag": _lag(offset, held.get(place)),
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


def _lag(offset: int | None, held: OffsetRange | None) -> int | None:
    """What is still to be read; all that there is, of a partition without a commit yet."""
    if held is None:
        return None
    return max(0, held.end - max(held.start, offset or 0))


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
    owners: list[dict[str, object]] = []
    if partitions:
        show_table([_shown(each, owners) for each in partitions])
    if owners:
        typer.echo("\nmembers")
        for number, each in enumerate(owners, start=1):
            _show_member(str(number), each)
    if idle:
        typer.echo("\nmembers without partitions")
        for each in idle:
            _show_member("-", each)


def _show_member(label: str, member: dict[str, object]) -> None:
    """In two lines: the member's id is long, and begins with that of its client."""
    typer.echo(f"{label:>6}  {member['owner']}\n        {member['client']} on {member['host']}")


def _shown(partition: dict[str, object], owners: list[dict[str, object]]) -> dict[str, object]:
    """A row of the table: its owner by a number, as names of members are long. `owners` are those so far."""
    owner = {name: partition[name] for name in ("client", "host", "owner")}
    number: int | None = None
    if owner["owner"] is not None:
        if owner not in owners:
            owners.append(owner)
        number = owners.index(owner) + 1
    offset = _NO_COMMIT if partition["offset"] is None else partition["offset"]
    shown = {name: partition[name] for name in ("topic", "partition")}
    return {**shown, "offset": offset, "end": partition["end"], "lag": partition["lag"], "member": number}
