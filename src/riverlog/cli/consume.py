"""`riverlog consume`: records out of a topic, to stdout.

Without a group it reads chosen partitions from a chosen place and leaves no trace on the cluster. With a
group it shares the topic with the other members, begins where the group stopped, and commits what it has
written, so that a record is printed at least once.
"""

from enum import StrEnum
from typing import Annotated

import typer

from riverlog.cli.connection import Connection, connected
from riverlog.cli.failures import usage
from riverlog.cli.options import TopicArgument
from riverlog.cli.reading import Limits, read_as_group, read_partitions
from riverlog.cli.record_format import text_writer, write_json

app = typer.Typer(add_completion=False)


class RecordOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


class Isolation(StrEnum):
    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


@app.command()
@connected
def consume(
    connection: Connection,
    topic: TopicArgument,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="start|end|N|-N|@TIME",
            help="Where to begin: the start, the end, an offset, the last N of each partition, or a time"
            " (ISO 8601 or ms since 1970). Default: end; with --group, where the group stopped.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("-c", "--count", min=1, help="Stop after so many records.")
    ] = None,
    exit_at_end: Annotated[
        bool, typer.Option("-e", "--exit-at-end", help="Stop when all that was there at the start is read.")
    ] = False,
    partition: Annotated[
        list[int] | None, typer.Option("-p", "--partition", min=0, help="Only this one; may be repeated.")
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            "-f",
            "--format",
            help="%t topic, %p partition, %o offset, %T timestamp, %k key, %K its length, %s value,"
            " %S its length, %h headers, %% percent; \\n \\t \\0 \\xHH.",
        ),
    ] = "%s\\n",
    null: Annotated[
        str, typer.Option("--null", metavar="TEXT", help="How a null is written in a format.")
    ] = "",
    output: Annotated[
        RecordOutput, typer.Option("-o", "--output", help="By the format, or a line of JSON per record.")
    ] = RecordOutput.TEXT,
    group: Annotated[
        str | None, typer.Option("-g", "--group", help="Read as a member of this group and commit.")
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="Whether records of open transactions are shown.")
    ] = Isolation.COMMITTED,
) -> None:
    """Consume records and print them.

    Examples:
      riverlog consume orders --from start --exit-at-end
      riverlog consume orders --from -10 -f '%p/%o %k=%s\\n'
      riverlog consume orders --from @2026-01-31T12:00:00Z -o json
      riverlog consume orders --group billing --count 100
    """
    writer = write_json if output is RecordOutput.JSON else text_writer(template, null)
    limits = Limits(count=count, exit_at_end=exit_at_end)
    if group is None:
        read_partitions(connection, topic, partition, start or "end", isolation.value, limits, writer)
        return
    if partition:
        raise usage(
            "a group decides itself who reads which partition", remedy="leave out --partition or --group"
        )
    if start not in (None, "start", "end"):
        raise usage(
            "a group begins where it stopped; --from says only where a new group begins: start or end"
        )
    read_as_group(connection, topic, group, start or "end", isolation.value, limits, writer)
