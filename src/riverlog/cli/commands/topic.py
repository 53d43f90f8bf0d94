"""`riverlog topic`: list and create topics. What describes one is in `topic_description`, what changes or
removes one in `topic_changes`."""

from fnmatch import fnmatchcase
from typing import Annotated

import typer

from riverlog.cli.asking.cluster import outcome
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.commands import topic_changes
from riverlog.cli.commands.topic_description import describe
from riverlog.cli.failures import CommandError, key_values
from riverlog.cli.old_letters import still_taking
from riverlog.cli.options import OutputFormat, OutputOption, TopicArgument
from riverlog.cli.printing.output import Row, remark, show_rows

app = typer.Typer(
    help="List, create, describe, alter, trim and delete topics.", no_args_is_help=True, add_completion=False
)


@app.command("list")
@connected
def list_topics(
    connection: Connection,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Only names that match, such as 'orders-*'.")
    ] = "*",
    internal: Annotated[bool, typer.Option("--internal", help="Show internal topics (__…) too.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List topics.

    Example: riverlog topic list 'orders*' -o json
    """
    rows: list[Row] = []
    for name, topic in sorted(connection.metadata().topics.items()):
        if not fnmatchcase(name, pattern) or (name.startswith("__") and not internal):
            continue
        partitions = topic.partitions.values()
        rows.append(
            {
                "topic": name,
                "partitions": len(partitions),
                "replication_factor": max((len(partition.replicas) for partition in partitions), default=0),
                "under_replicated": sum(len(each.isrs) < len(each.replicas) for each in partitions),
                "leaderless": sum(partition.leader < 0 for partition in partitions),
            }
        )
    show_rows(rows, output, empty="no topics; `riverlog topic create NAME` makes one")


@app.command("create", cls=still_taking(partitions="-p", config="-c"))
@connected
def create(
    connection: Connection,
    topic: TopicArgument,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", min=1, help="How many; the broker's default otherwise."),
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("-r", "--replication-factor", min=1, help="Copies of each partition.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("-s", "--set", "--config", metavar="KEY=VALUE", help="A setting of the topic."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Succeed when the topic is there already.")
    ] = False,
) -> None:
    """Create a topic.

    Example: riverlog topic create orders --partitions 6 -s retention.ms=86400000 -s compression.type=lz4
    """
    from riverlog.cli.asking.kafka_admin import NewTopic

    new = NewTopic(
        topic,
        num_partitions=partitions or -1,
        replication_factor=replication_factor or -1,
        config=key_values(config or [], "--set"),
    )
    connection.metadata()
    futures = connection.admin().create_topics(
        [new], request_timeout=connection.timeout_s, operation_timeout=connection.timeout_s
    )
    try:
        with topic_changes.suggesting_keys(new.config or {}):
            outcome(connection, futures[topic], f"topic {topic} was not created")
    except CommandError as failure:
        if if_not_exists and "TOPIC_ALREADY_EXISTS" in failure.message:
            remark(f"topic {topic} is there already")
            return
        raise
    remark(f"created topic {topic}")


app.command("describe")(describe)
app.command("alter")(topic_changes.alter)
app.command("add-partitions", cls=still_taking(total="-t"))(topic_changes.add_partitions)
app.command("trim")(topic_changes.trim)
app.command("delete")(topic_changes.delete)
