"""`riverlog explain`: why a consumer does not see a record, or that it should."""

from typing import Annotated

import typer

from riverlog.cli.asking.broker_time import now_ms
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.commands.consume import Isolation
from riverlog.cli.explaining.group_reasons import reasons_in_group
from riverlog.cli.explaining.keys import placed_elsewhere, placement, records_of_key
from riverlog.cli.explaining.reasons import Reason, reasons_in_log, why_not_there
from riverlog.cli.failures import usage
from riverlog.cli.options import OutputFormat, OutputOption, TopicArgument
from riverlog.cli.printing.durations import parse_duration
from riverlog.cli.printing.output import show_json

app = typer.Typer(add_completion=False)

_RECORDS_SHOWN = 20


@app.command()
@connected
def explain(
    connection: Connection,
    topic: TopicArgument,
    partition: Annotated[int | None, typer.Argument(metavar="PARTITION", min=0, show_default=False)] = None,
    offset: Annotated[int | None, typer.Argument(metavar="OFFSET", min=0, show_default=False)] = None,
    key: Annotated[
        str | None, typer.Option("-k", "--key", help="The key of the record.", metavar="KEY")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="10m",
            help="Without an offset: look at the key's records of so long, by the broker's clock.",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("-g", "--group", help="As seen by the consumers of this group.")
    ] = None,
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="As seen by consumers of this isolation level.")
    ] = Isolation.COMMITTED,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say why a consumer does not see a record: the first reason, all others, and what to do.

    Asks what any client may ask, so that it explains Apache Kafka as well. What no API tells is said
    to be unknown.

    Examples:
      riverlog explain orders 0 4711
      riverlog explain orders 0 4711 --group billing --isolation read_uncommitted
      riverlog explain orders --key customer-7 --since 10m
    """
    if (partition is None) != (offset is None) or (offset is None and (key is None or since is None)):
        raise usage(
            "say which record", remedy="riverlog explain TOPIC PARTITION OFFSET, or --key K --since 10m"
        )
    since_ms = None if since is None else now_ms(connection) - parse_duration(since, "--since")
    wanted = None if key is None else key.encode()
    found: list[dict[str, object]] = []
    if missing := why_not_there(connection, topic, partition):
        found.append(_told(topic, partition, offset, missing))
    else:
        with Brokers(connection) as brokers:
            asking = _Asking(connection, brokers, topic, wanted, group, isolation)
            if partition is not None and offset is not None:
                found.append(asking.about((topic, partition), offset))
            elif wanted is not None and since_ms is not None:
                found += asking.about_key(wanted, since_ms)
    _show(found, output, isolation)


class _Asking:
    def __init__(
        self,
        connection: Connection,
        brokers: Brokers,
        topic: str,
        key: bytes | None,
        group: str | None,
        isolation: Isolation,
    ) -> None:
        self._connection = connection
        self._brokers = brokers
        self._topic = topic
        self._key = key
        self._group = group
        self._committed_only = isolation is Isolation.COMMITTED

    def about(self, place: Place, offset: int) -> dict[str, object]:
        found = reasons_in_log(
            self._brokers,
            self._connection,
            place,
            offset,
            committed_only=self._committed_only,
            key=self._key,
        )
        if self._group is not None:
            found += reasons_in_group(self._brokers, self._connection, self._group, place, offset)
        if self._key is not None:
            found += placed_elsewhere(self._key, place[1], self._partition_count())
        return _told(*place, offset, found)

    def about_key(self, key: bytes, since_ms: int) -> list[dict[str, object]]:
        """The newest records of the key; where it would be, if there are none."""
        places = records_of_key(self._brokers, self._connection, self._topic, key, since_ms)
        if places:
            return [self.about(place, offset) for place, offset in places[-_RECORDS_SHOWN:]]
        what = f"no record of this key since then; {placement(key, self._partition_count())}"
        reason = Reason("no-record-of-key", what, "look further back with --since, longer with --timeout")
        return [_told(self._topic, None, None, [reason])]

    def _partition_count(self) -> int:
        return len(self._connection.metadata().topics[self._topic].partitions)


def _told(topic: str, partition: int | None, offset: int | None, reasons: list[Reason]) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "reasons": [{"reason": each.name, "what": each.what, "remedy": each.remedy} for each in reasons],
    }


def _show(found: list[dict[str, object]], output: OutputFormat, isolation: Isolation) -> None:
    if output is OutputFormat.JSON:
        show_json(found)
        return
    record = "a committed record" if isolation is Isolation.COMMITTED else "a record, committed or not,"
    for each in found:
        reasons = each["reasons"]
        assert isinstance(reasons, list)
        place = each["topic"] if each["partition"] is None else f"{each['topic']}-{each['partition']}"
        at = "" if each["offset"] is None else f" offset {each['offset']}"
        verdict = "" if reasons else f" {record} is there, and a consumer that asks for it gets it"
        typer.echo(f"{place}{at}:{verdict}")
        for number, reason in enumerate(reasons, start=1):
            typer.echo(f"  {number}. {reason['reason']}: {reason['what']}")
            if reason["remedy"]:
                typer.echo(f"     try: {reason['remedy']}")
