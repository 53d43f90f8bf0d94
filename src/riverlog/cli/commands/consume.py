"""`riverlog consume`: records out of topics, to stdout.

Without a group it reads chosen partitions from a chosen place and leaves no trace on the cluster. With a
group it shares the topics with the other members, begins where the group stopped, and commits what it has
written, so that a record is printed at least once. Ctrl-C is the normal end of a reading that has no other.
"""

from enum import StrEnum
from typing import Annotated

import typer

from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.positions import parse_span, settled_span
from riverlog.cli.failures import usage
from riverlog.cli.interrupts import heeded_once
from riverlog.cli.old_letters import still_taking
from riverlog.cli.records.documents import Documents
from riverlog.cli.records.format import Writer, json_writer, text_writer
from riverlog.cli.records.group_reading import read_as_group
from riverlog.cli.records.producers import Producers
from riverlog.cli.records.reading import read_partitions
from riverlog.cli.records.wanted import Limits, Wanted, is_pattern, matching_topics
from riverlog.cli.schema_options import RegistryOption, registry_at

app = typer.Typer(add_completion=False)


class RecordOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


class Isolation(StrEnum):
    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


@app.command(cls=still_taking(count="-c"))
@connected
def consume(
    connection: Connection,
    topics: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC…",
            help="Names, or patterns such as 'orders-*', also for topics that come while it reads.",
            show_default=False,
        ),
    ],
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="start|end|N|-N|@TIME",
            help="Where to begin: the start, the end, an offset, the last N of each partition, or a time"
            " (ISO 8601, local without a zone; ms since 1970; -1h, in s, m, h or d, for so long ago by the"
            " broker's clock)."
            " Default: end, and start with --to; with --group, where the group stopped, and the end for a"
            " new group."
            " FROM:TO stands for both options.",
        ),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="end|N|-N|@TIME",
            help="Where to stop, as in --from: this record is not read any more, nor is one that comes while"
            " it reads.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("-n", "--count", min=1, help="Stop after so many records.")
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
            " %S its length, %h headers, %P producer id, %% percent; \\n \\t \\0 \\xHH. In another form:"
            " %k{hex}, %k{base64}, so %s and %h; %T{iso}; %P{epoch}, %P{sequence}.",
        ),
    ] = "%s\\n",
    null: Annotated[
        str, typer.Option("--null", metavar="TEXT", help="How a null is written in a format.")
    ] = "",
    output: Annotated[
        RecordOutput, typer.Option("-o", "--output", help="By the format, or a line of JSON per record.")
    ] = RecordOutput.TEXT,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema",
            metavar="SIDE=FORMAT",
            help="Keys or values are by the schemas of a registry: key=avro, value=json, value=protobuf."
            " They are printed as JSON. May be repeated.",
        ),
    ] = None,
    schema_registry: RegistryOption = None,
    group: Annotated[
        str | None,
        typer.Option(
            "-g",
            "--group",
            help="Read as a member of this group and commit. A new group begins at the end, so that it is"
            " given only what comes from then on, unless there is --from start.",
        ),
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="Whether records of open transactions are shown.")
    ] = Isolation.COMMITTED,
    tells_ends: Annotated[
        bool, typer.Option("--show-ends", help="Say on stderr when the end of a partition is reached.")
    ] = False,
) -> None:
    """Consume records and print them.

    Without --count, --exit-at-end and --to it goes on until Ctrl-C, which is its normal end.
    A new group begins where --from says, in all partitions, and without --from at the end; one that is not
    new goes on where it stopped.
    A topic that comes later and matches a pattern is read from its start.

    Examples:
      riverlog consume orders --from start --exit-at-end
      riverlog consume orders --from -10 -f '%p/%o %k=%s\\n'
      riverlog consume orders --from @2026-01-31T12:00:00Z -o json
      riverlog consume orders 'payments-*' --from 10:20 -f '%t %s{hex}\\n'
      riverlog consume orders --from @-2h --to @-1h -f '%T{iso} %s\\n'
      riverlog consume orders --from -10 -f '%o %P %P{epoch} %P{sequence} %s\\n'
      riverlog consume orders --group billing --from start --count 100
      riverlog consume orders --schema value=avro --schema-registry http://127.0.0.1:8081

    For %P the batches are fetched a second time: the client does not tell who has written a record.
    """
    documents = _documents(connection, schema or [], schema_registry)
    producers = Producers(connection)
    writer: Writer
    if output is RecordOutput.JSON:
        writer = json_writer(documents)
    else:
        writer = text_writer(template, null, documents, producers.of)
    if group is not None:
        _check_options_of_group(partition, start, end)
    default = "end" if end is None else "start"
    span = settled_span(connection, *parse_span(start or default, end, "--from", "--to"))
    limits = Limits(count=count, exit_at_end=exit_at_end or span.end is not None)
    try:
        with heeded_once(), producers:
            patterns = () if limits.exit_at_end else tuple(filter(is_pattern, topics))
            found = matching_topics(connection, topics, waits=bool(patterns))
            wanted = Wanted(found, writer, limits, isolation.value, tells_ends, patterns)
            if group is None:
                read_partitions(connection, wanted, span, partition)
            else:
                read_as_group(connection, wanted, group, start)
    except KeyboardInterrupt:
        if limits.has_end:
            raise


def _check_options_of_group(partition: list[int] | None, start: str | None, end: str | None) -> None:
    if end is not None:
        raise usage("a group has no end of its reading", remedy="leave out --to or --group")
    if partition:
        raise usage(
            "a group decides itself who reads which partition", remedy="leave out --partition or --group"
        )
    if start not in (None, "start", "end"):
        raise usage(
            "a group begins where it stopped; --from says only where a new group begins: start or end"
        )


def _documents(connection: Connection, schemas: list[str], registry: str | None) -> Documents:
    from riverlog.cli.schemas.choice import parse_choices

    choices = parse_choices(schemas)
    if not choices:
        return Documents({})
    from riverlog.cli.schemas.sides import decoders

    return Documents(decoders(registry_at(connection, registry), choices))
