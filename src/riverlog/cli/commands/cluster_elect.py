"""`riverlog cluster elect`: preferred leaders, or any that are left for partitions without one."""

from typing import Annotated, Final

import typer

from riverlog.cli.asking.brokers import Brokers, refused
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.positions import choose_partitions
from riverlog.cli.failures import ExitCode, usage
from riverlog.cli.options import OutputFormat, OutputOption, YesOption, confirm
from riverlog.cli.printing.output import counted, remark, show_rows
from riverlog.model.errors import ErrorCode

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


@connected
def elect(
    connection: Connection,
    topics: Annotated[
        list[str] | None, typer.Argument(metavar="TOPIC…", show_default=False, help="Of these topics.")
    ] = None,
    partition: Annotated[
        list[int] | None,
        typer.Option("-p", "--partition", min=0, help="Only this one of the topics; may be repeated."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Of every partition of the cluster.")] = False,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="For partitions without a leader: take a replica that may lack acknowledged records.",
        ),
    ] = False,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Have leaders elected: each partition's first replica, if it is alive and in sync.

    With --unclean, partitions that have no leader get one that is alive, in sync or not. Records that
    only the missing replicas have are lost then, acknowledged ones too. Exit code 1 when a partition was
    not given the leader that was asked for.

    Examples:
      riverlog cluster elect --all
      riverlog cluster elect orders --partition 3 --unclean --yes
    """
    if bool(topics) == every:
        raise usage("say whose leaders to elect", remedy="riverlog cluster elect TOPIC…, or --all")
    if every and partition:
        raise usage("--all means every partition", remedy="leave out --partition, or name a topic")
    wanted = {topic: choose_partitions(connection, topic, partition) for topic in topics or ()}
    if unclean:
        confirm("Records that only the missing replicas have are lost for good.", yes=yes)
    rows = _elect(connection, None if every else wanted, unclean=unclean)
    show_rows(sorted(rows, key=lambda row: (str(row["topic"]), int(str(row["partition"])))), output)
    elected = sum(row["outcome"] == "elected" for row in rows)
    remark(f"{counted(elected, 'leader')} elected")
    if any(row["outcome"] == "failed" for row in rows):
        raise typer.Exit(ExitCode.FAILURE)


def _elect(
    connection: Connection, wanted: dict[str, list[int]] | None, *, unclean: bool
) -> list[dict[str, object]]:
    """Asked on a plain connection, as the call of confluent-kafka fails in itself. Any broker
    will do: it sends on what the controller decides."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED,
        topic_partitions=None
        if wanted is None
        else [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in wanted.items()],
        timeout_ms=int(connection.timeout_s * 1000),
    )
    with Brokers(connection) as brokers:
        address = min(brokers.addresses().items())[1]
        reply = brokers.ask(address, ApiKey.ELECT_LEADERS, request)
    if reply.error_code:
        raise refused(reply.error_code, "leaders were not elected")
    return [
        _row(topic.topic, each.partition_id, each.error_code, each.error_message)
        for topic in reply.replica_election_results
        for each in topic.partition_result
    ]


def _row(topic: str, partition: int, error: int, message: str | None) -> dict[str, object]:
    """A partition that needs no election has what was asked for."""
    known = error in set(ErrorCode)
    name = ErrorCode(error).name if known else str(error)
    result = {ErrorCode.NONE: "elected", ErrorCode.ELECTION_NOT_NEEDED: "not needed"}.get(
        ErrorCode(error) if known else ErrorCode.UNKNOWN_SERVER_ERROR, "failed"
    )
    reason = f"{name}: {message}" if message else name
    return {
        "topic": topic,
        "partition": partition,
        "outcome": result,
        "reason": reason if error else None,
    }
