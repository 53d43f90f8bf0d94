"""The commands of `riverlog group` that set or save its offsets, or remove it."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place, outcome
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.consumer_groups import (
    Committed,
    commit,
    committed_offsets,
    delete_offsets,
    describe_groups,
    find_group,
    list_groups,
    require_empty,
)
from riverlog.cli.asking.positions import choose_partitions, parse_position, resolve, settled, shifted
from riverlog.cli.failures import CommandError, ExitCode, usage
from riverlog.cli.options import OutputFormat, OutputOption, YesOption, confirm
from riverlog.cli.printing.output import Row, counted, remark, show_json, show_rows

_GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", show_default=False)]
_GroupsArgument = Annotated[list[str], typer.Argument(metavar="GROUP…", show_default=False)]
_DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
_FORMAT = 1


@connected
def seek(
    connection: Connection,
    group: _GroupArgument,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="earliest|latest|OFFSET|-N|@TIME",
            help="Where to go on reading: -N is the last N records, @TIME is ISO 8601 (local without a"
            " zone), ms since 1970, or -1h for so long ago by the broker's clock.",
        ),
    ] = None,
    by: Annotated[
        int | None,
        typer.Option("--by", metavar="N", help="Go N records on, or back (--by=-N), from where it stopped."),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("-t", "--topic", help="Only this one; may be repeated. Otherwise all that it has read."),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("-p", "--partition", min=0, help="Only this one; may be repeated.")
    ] = None,
    dry_run: _DryRunOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Set where a group without members goes on reading.

    Example: riverlog group seek billing --to @2026-01-31T00:00:00 --dry-run
    """
    if (to is None) == (by is None):
        raise usage(
            "say where the group is to go on", remedy="--to start, end, OFFSET, -N or @TIME; or --by N"
        )
    position = None if to is None else settled(connection, parse_position(to, "--to"))
    require_empty(find_group(connection, group), "moved")
    before = committed_offsets(connection, group)
    topics = topic or sorted({name for name, _ in before})
    if not topics:
        raise CommandError(
            f"group {group} has no committed offsets",
            remedy="name the topics with --topic; `riverlog group list` shows the groups",
            code=ExitCode.NOT_FOUND,
        )
    after: dict[Place, int] = {}
    for name in topics:
        partitions = choose_partitions(connection, name, partition)
        if position is not None:
            readings = resolve(connection, name, partitions, position)
        else:
            known = {index: before[name, index].offset for index in partitions if (name, index) in before}
            readings = shifted(connection, name, known, by or 0)
        for each in readings:
            after[name, each.partition] = each.first_offset
            if each.was_moved:
                at = f"{name}-{each.partition}"
                remark(f"{at} has no offset {each.asked_offset}; {each.first_offset} is the nearest")
    if not dry_run:
        commit(connection, group, {place: Committed(offset) for place, offset in after.items()})
    show_rows(_changes(group, before, after), output)
    remark(_done(dry_run, f"{counted(len(after), 'offset')} of group {group}", "set"))


@connected
def export(
    connection: Connection,
    groups: Annotated[list[str] | None, typer.Argument(metavar="GROUP…", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every group there is.")] = False,
) -> None:
    """Print the committed offsets of groups as JSON, for `import`.

    Example: riverlog group export billing > billing.json
    """
    if bool(groups) == every:
        raise usage("say which groups to export", remedy="riverlog group export GROUP…, or --all")
    names = groups or [each.group for each in list_groups(connection)]
    saved = []
    for name in names:
        offsets = committed_offsets(connection, name)
        if not offsets and groups:
            describe_groups(connection, [name])
        saved.append({"group": name, "offsets": [_saved(place, offsets[place]) for place in sorted(offsets)]})
    show_json({"format": _FORMAT, "groups": saved})


@connected
def import_(
    connection: Connection,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `export` printed; - is standard input.")
    ] = Path("-"),
    dry_run: _DryRunOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Commit the offsets that were exported, for groups without members.

    Example: riverlog group import billing.json --dry-run
    """
    text = sys.stdin.read() if str(file) == "-" else file.read_text()
    wanted = _parsed(text, str(file))
    for name in wanted:
        require_empty(find_group(connection, name), "changed")
    rows: list[Row] = []
    for name, offsets in wanted.items():
        before = committed_offsets(connection, name)
        rows += _changes(name, before, {place: committed.offset for place, committed in offsets.items()})
        if not dry_run and offsets:
            commit(connection, name, offsets)
    show_rows(rows, output)
    what = f"{counted(len(rows), 'offset')} of {counted(len(wanted), 'group')}"
    remark(_done(dry_run, what, "set"))


@connected
def delete(
    connection: Connection,
    groups: _GroupsArgument,
    topic: Annotated[
        list[str] | None,
        typer.Option("-t", "--topic", help="Only the offsets of this topic, not the group; may be repeated."),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Delete groups without members, with the offsets that they have committed.

    Examples:
      riverlog group delete billing --yes
      riverlog group delete billing --topic orders --yes
    """
    if topic:
        _delete_offsets(connection, groups, topic, yes)
        return
    for description in describe_groups(connection, groups):
        require_empty(description, "deleted")
    what = f"Group {groups[0]}" if len(groups) == 1 else f"{len(groups)} groups"
    confirm(f"{what} will be deleted, with all committed offsets.", yes=yes)
    futures = connection.admin().delete_consumer_groups(groups, request_timeout=connection.timeout_s)
    for name in groups:
        outcome(connection, futures[name], f"group {name} was not deleted")
        remark(f"deleted group {name}")


def _delete_offsets(connection: Connection, groups: list[str], topics: list[str], yes: bool) -> None:
    describe_groups(connection, groups)
    confirm(f"The committed offsets of {', '.join(groups)} in {', '.join(topics)} will be deleted.", yes=yes)
    with Brokers(connection) as brokers:
        for group in groups:
            places = [place for place in committed_offsets(connection, group) if place[0] in topics]
            delete_offsets(connection, brokers, group, places)
            remark(f"deleted {counted(len(places), 'offset')} of group {group}")


def _done(dry_run: bool, what: str, verb: str) -> str:
    return f"{what} would be {verb} (--dry-run)" if dry_run else f"{verb} {what}"


def _changes(group: str, before: dict[Place, Committed], after: dict[Place, int]) -> list[Row]:
    return [
        {
            "group": group,
            "topic": place[0],
            "partition": place[1],
            "from": before[place].offset if place in before else None,
            "to": after[place],
        }
        for place in sorted(after)
    ]


def _saved(place: Place, committed: Committed) -> dict[str, object]:
    saved: dict[str, object] = {"topic": place[0], "partition": place[1], "offset": committed.offset}
    return saved | ({"metadata": committed.metadata} if committed.metadata else {})


def _parsed(text: str, name: str) -> dict[str, dict[Place, Committed]]:
    try:
        document: Any = json.loads(text)
        if document["format"] != _FORMAT:
            raise usage(f"{name} is of format {document['format']}, which this release does not know")
        return {
            str(group["group"]): {
                (str(each["topic"]), int(each["partition"])): Committed(
                    int(each["offset"]), str(each.get("metadata", ""))
                )
                for each in group["offsets"]
            }
            for group in document["groups"]
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise usage(
            f"{name} is not what `riverlog group export` prints: {type(error).__name__}: {error}"
        ) from error
