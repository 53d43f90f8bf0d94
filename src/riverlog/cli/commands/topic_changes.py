"""The commands of `riverlog topic` that change a topic or take something away from it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer

from riverlog.cli.asking.cluster import describe_topics, is_own, outcome, partitions_of, topic_configs
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.positions import (
    AtTime,
    Last,
    Reading,
    Start,
    choose_partitions,
    is_local_time,
    parse_position,
    resolve,
    settled,
)
from riverlog.cli.failures import CommandError, ExitCode, key_values, usage
from riverlog.cli.options import (
    OutputFormat,
    OutputOption,
    TopicArgument,
    YesOption,
    confirm,
)
from riverlog.cli.printing.output import remark, show_rows
from riverlog.model.config.definitions import TOPIC_KEYS, nearest


@contextmanager
def suggesting_keys(keys: Iterable[str]) -> Iterator[None]:
    """A refusal of settings names the key that was probably meant."""
    try:
        yield
    except CommandError as failure:
        wrong = [key for key in keys if key not in TOPIC_KEYS]
        if close := nearest(wrong[0], TOPIC_KEYS) if wrong else None:
            failure.remedy = f"did you mean {close}? {failure.remedy}"
        raise


@connected
def alter(
    connection: Connection,
    topic: TopicArgument,
    set_: Annotated[
        list[str] | None, typer.Option("-s", "--set", metavar="KEY=VALUE", help="Give a setting a value.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("-u", "--unset", metavar="KEY", help="Go back to the broker's value.")
    ] = None,
) -> None:
    """Change the settings of a topic; the others stay as they are.

    Example: riverlog topic alter orders --set retention.ms=3600000 --unset compression.type
    """
    from riverlog.cli.asking.kafka_admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    changes = key_values(set_ or [], "--set")
    if not changes and not unset:
        raise usage("there is nothing to change", remedy="--set KEY=VALUE or --unset KEY")
    if both := sorted(set(changes) & set(unset or [])):
        raise usage(f"{', '.join(both)} cannot be both set and unset")
    [_] = describe_topics(connection, [topic])
    own = {each.name for each in topic_configs(connection, topic) if is_own(each)}
    idle = [key for key in unset or [] if key not in own]
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in changes.items()
    ]
    entries += [ConfigEntry(key, None, incremental_operation=AlterConfigOpType.DELETE) for key in unset or []]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    futures = connection.admin().incremental_alter_configs([resource], request_timeout=connection.timeout_s)
    with suggesting_keys([*changes, *(unset or [])]):
        outcome(connection, futures[resource], f"topic {topic} was not altered")
    for key in idle:
        remark(f"{key} was not set on {topic}; it has the broker's value as before")
    is_altered = len(idle) < len(entries)
    remark(f"altered topic {topic}" if is_altered else f"topic {topic} stays as it was")


@connected
def add_partitions(
    connection: Connection,
    topic: TopicArgument,
    total: Annotated[
        int | None, typer.Option("--total", min=1, help="How many there are to be in the end.")
    ] = None,
    more: Annotated[int | None, typer.Option("-m", "--more", min=1, help="How many to add.")] = None,
) -> None:
    """Add partitions to a topic. Keys move to other partitions when their number changes.

    Example: riverlog topic add-partitions orders --total 12
    """
    from riverlog.cli.asking.kafka_admin import NewPartitions

    if (total is None) == (more is None):
        raise usage("say how many partitions there are to be", remedy="--total N or --more N")
    count = total if total is not None else len(partitions_of(connection, topic)) + (more or 0)
    connection.metadata()
    futures = connection.admin().create_partitions(
        [NewPartitions(topic, count)], request_timeout=connection.timeout_s
    )
    outcome(connection, futures[topic], f"no partitions were added to {topic}")
    remark(f"topic {topic} has {count} partitions")


@connected
def trim(
    connection: Connection,
    topic: TopicArgument,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="OFFSET|@TIME|end",
            help="The records before this go: an offset, a time (ISO 8601, local without a zone; ms since"
            " 1970; -1h for so long ago by the broker's clock), or all (end).",
            show_default=False,
        ),
    ],
    partition: Annotated[
        list[int] | None, typer.Option("-p", "--partition", min=0, help="Only this one; may be repeated.")
    ] = None,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete the oldest records of a topic, for good.

    Example: riverlog topic trim orders --before @2026-01-31T00:00:00 --yes
    """
    position = settled(connection, parse_position(before, "--before"))
    if isinstance(position, Start | Last):
        raise usage(f"--before {before!r} is no place to trim at", remedy="--before OFFSET, @TIME or end")
    readings = resolve(connection, topic, choose_partitions(connection, topic, partition), position)
    if beyond := [each for each in readings if each.asked_offset is not None and _is_beyond_end(each)]:
        names = ", ".join(f"{topic}-{each.partition} ends at {each.held.end}" for each in beyond)
        raise CommandError(
            f"offset {before} is beyond the end: {names}", remedy="choose partitions with -p, or use end"
        )
    if isinstance(position, AtTime):
        moment = datetime.fromtimestamp(position.timestamp_ms / 1000).astimezone()
        told = " (local time, as no zone is given)" if is_local_time(before) else ""
        remark(f"records before {moment.isoformat()}{told} go")
    doomed = sum(each.first_offset - each.held.start for each in readings)
    confirm(f"This deletes {doomed} records of {topic} for good.", yes=yes)
    show_rows([_trim_one(connection, topic, reading) for reading in readings], output)


def _is_beyond_end(reading: Reading) -> bool:
    return reading.asked_offset is not None and reading.asked_offset > reading.held.end


def _trim_one(connection: Connection, topic: str, reading: Reading) -> dict[str, object]:
    from confluent_kafka import TopicPartition

    target = TopicPartition(topic, reading.partition, reading.first_offset)
    futures = connection.admin().delete_records(
        [target], request_timeout=connection.timeout_s, operation_timeout=connection.timeout_s
    )
    [future] = futures.values()
    start = outcome(connection, future, f"{topic}-{reading.partition} was not trimmed").low_watermark
    return {"topic": topic, "partition": reading.partition, "start": start, "end": reading.held.end}


@connected
def delete(
    connection: Connection,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC…", show_default=False)],
    yes: YesOption = False,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Succeed when a topic is not there.")
    ] = False,
) -> None:
    """Delete topics and all that is in them, for good.

    Example: riverlog topic delete orders --yes
    """
    present = connection.metadata().topics
    if missing := [topic for topic in topics if topic not in present]:
        if not if_exists:
            raise CommandError(
                f"there is no topic {', '.join(missing)}; nothing was deleted",
                remedy="see what is there with `riverlog topic list`, or pass --if-exists",
                code=ExitCode.NOT_FOUND,
            )
        remark(f"there is no topic {', '.join(missing)}")
    doomed = [topic for topic in topics if topic in present]
    if not doomed:
        return
    confirm(f"This deletes {', '.join(doomed)} and all records in it for good.", yes=yes)
    futures = connection.admin().delete_topics(
        doomed, request_timeout=connection.timeout_s, operation_timeout=connection.timeout_s
    )
    for topic in doomed:
        outcome(connection, futures[topic], f"topic {topic} was not deleted")
        remark(f"deleted topic {topic}")
