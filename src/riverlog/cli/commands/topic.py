"""`riverlog topic`: see and create topics. What changes or removes one is in `topic_changes`."""

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from riverlog.cli.asking.cluster import (
    OffsetRange,
    describe_topics,
    has_leader,
    offset_ranges,
    outcome,
    topic_configs,
)
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.eligible_leaders import Eligible, eligible_leaders
from riverlog.cli.asking.held_back import held_back
from riverlog.cli.asking.record_counts import record_counts
from riverlog.cli.commands import topic_changes
from riverlog.cli.failures import CommandError, key_values
from riverlog.cli.old_letters import still_taking
from riverlog.cli.options import OutputFormat, OutputOption, TopicArgument
from riverlog.cli.printing.output import Row, human_bytes, remark, show_json, show_rows, show_table
from riverlog.cli.records.stopping_short import account

if TYPE_CHECKING:
    from confluent_kafka import TopicPartitionInfo

    from riverlog.cli.asking.kafka_admin import ConfigEntry, TopicDescription

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


@app.command("describe")
@connected
def describe(
    connection: Connection,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC…", show_default=False)],
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="Show the settings that have their default value too.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show partitions, leaders, in-sync replicas, offsets, records, sizes and settings.

    ELR are replicas outside of the ISR that have everything committed, and may lead (KIP-966); they are
    shown where there are any.

    Records are counted up to 64 MiB of a topic, without the markers of transactions. Of what is larger the
    offsets are told, with ≤, as markers and what compaction has removed have offsets too.

    Example: riverlog topic describe orders
    """
    found = [
        _description(connection, description, all_configs)
        for description in describe_topics(connection, topics)
    ]
    if output is OutputFormat.JSON:
        show_json(found)
        return
    for number, row in enumerate(found):
        if number:
            typer.echo()
        _show_description(row)


app.command("alter")(topic_changes.alter)
app.command("add-partitions", cls=still_taking(total="-t"))(topic_changes.add_partitions)
app.command("trim")(topic_changes.trim)
app.command("delete")(topic_changes.delete)


def _description(connection: Connection, topic: "TopicDescription", all_configs: bool) -> dict[str, object]:
    from riverlog.cli.asking.log_dirs import partition_sizes

    led = [partition.id for partition in topic.partitions if has_leader(partition)]
    held = offset_ranges(connection, topic.name, led)
    stuck = held_back(connection, {(topic.name, index): held[index].end for index in led})
    stable = {each.place[1]: each.last_stable_offset for each in stuck}
    sizes = partition_sizes(connection, topic)
    counts = record_counts(connection, topic.name, held, sizes)
    eligible = eligible_leaders(connection, topic.name)
    configs = [_config_row(entry) for entry in topic_configs(connection, topic.name)]
    return {
        "topic": topic.name,
        "topic_id": str(topic.topic_id).replace("+", "-").replace("/", "_"),
        "internal": topic.is_internal,
        "partitions": [
            _partition_row(
                partition,
                held.get(partition.id),
                stable.get(partition.id),
                counts.get(partition.id),
                sizes.get(partition.id),
                eligible.get(partition.id),
            )
            for partition in sorted(topic.partitions, key=lambda each: each.id)
        ],
        "held_back": [account(each) for each in stuck],
        "configs": [row for row in configs if all_configs or row["source"] != "default"],
    }


def _partition_row(
    partition: "TopicPartitionInfo",
    held: OffsetRange | None,
    stable: int | None,
    count: int | None,
    size: int | None,
    eligible: Eligible | None,
) -> dict[str, object]:
    """Offsets and size are not known while a partition has no leader. `stable` is None where no transaction
    holds committed records back, `count` where the records were not counted."""
    offsets = held.end - held.start if held else None
    return {
        "partition": partition.id,
        "leader": partition.leader.id if has_leader(partition) else None,
        "replicas": [node.id for node in partition.replicas],
        "isr": [node.id for node in partition.isr],
        "elr": None if eligible is None else eligible.elr,
        "last_known_elr": None if eligible is None else eligible.last_known,
        "start": held.start if held else None,
        "end": held.end if held else None,
        "last_stable_offset": stable if stable is not None or held is None else held.end,
        "records": offsets if count is None else count,
        "records_counted": count is not None or offsets == 0,
        "size": size,
    }


def _shown(row: dict[str, object], hidden: Collection[str]) -> dict[str, object]:
    """As a person sees it: what was not counted is told as the most that there can be."""
    counted, records = row["records_counted"], row["records"]
    told = records if counted or records is None else f"≤{records}"
    return {name: told if name == "records" else each for name, each in row.items() if name not in hidden}


def _config_row(entry: "ConfigEntry") -> dict[str, object]:
    from riverlog.cli.asking.kafka_admin import ConfigSource

    source = ConfigSource(entry.source).name.lower().removesuffix("_config").replace("_", " ")
    return {"key": entry.name, "value": None if entry.is_sensitive else entry.value, "source": source}


def _show_description(row: dict[str, object]) -> None:
    partitions, configs, held = row["partitions"], row["configs"], row["held_back"]
    assert isinstance(partitions, list)
    assert isinstance(configs, list)
    assert isinstance(held, list)
    sizes = [each["size"] for each in partitions if each["size"] is not None]
    internal = ", internal" if row["internal"] else ""
    total = f", {human_bytes(sum(sizes))}" if sizes else ""
    empty = [name for name in ("elr", "last_known_elr") if not any(each[name] for each in partitions)]
    shown = [_shown(each, {"records_counted", *empty}) for each in partitions]
    typer.echo(f"{row['topic']}  (id {row['topic_id']}, {len(partitions)} partitions{total}{internal})")
    show_table(shown)
    for each in held:
        typer.echo(f"\n{each}")
    if configs:
        typer.echo()
        show_table(configs)
