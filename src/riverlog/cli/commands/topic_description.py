"""`riverlog topic describe`: partitions with their replicas, offsets and sizes, and a topic's settings."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from riverlog.cli.asking.cluster import (
    OffsetRange,
    has_leader,
    offset_ranges,
)
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.eligible_leaders import Eligible, eligible_leaders
from riverlog.cli.asking.held_back import held_back
from riverlog.cli.asking.record_counts import record_counts
from riverlog.cli.asking.replica_lag import Lags, Replicated, replica_lags
from riverlog.cli.asking.silent_brokers import silent_brokers
from riverlog.cli.asking.without_controller import settings_of_topics, topics_described
from riverlog.cli.options import OutputFormat, OutputOption
from riverlog.cli.printing.again import IntervalOption, WatchOption, show_again
from riverlog.cli.printing.output import human_bytes, show_json, show_json_line, show_table
from riverlog.cli.records.stopping_short import account

if TYPE_CHECKING:
    from confluent_kafka import TopicPartitionInfo

    from riverlog.cli.asking.kafka_admin import ConfigEntry, TopicDescription

_MIN_ISR = "min.insync.replicas"
_NAMED_MAX = 20
_JSON_ONLY = frozenset({"records_counted", "offline", "leader_answers", "under_min_isr", "under_replicated"})


@connected
def describe(
    connection: Connection,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC…", show_default=False)],
    all_configs: Annotated[
        bool, typer.Option("--all-configs", help="Show the settings that have their default value too.")
    ] = False,
    watch: WatchOption = False,
    interval: IntervalOption = 2.0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show partitions, leaders, replicas and their lag, offsets, records, sizes and settings.

    ISR are the replicas in sync, LAG the records that each replica lacks, in the order of REPLICAS (- where a
    broker does not answer; if it leads, nor are offsets told). ELR are replicas outside of the ISR that have
    everything committed, and may lead (KIP-966); they are shown where there are any. Exit code 1 when a
    partition has no leader.

    Records are counted up to 64 MiB of a topic, without the markers of transactions. Of what is larger, and
    with --watch, the offsets are told, with ≤, as markers and what compaction has removed have offsets too.

    Example: riverlog topic describe orders
    """

    def show() -> bool:
        silent = silent_brokers(connection)
        described = topics_described(connection, topics, silent)
        found = [
            _description(connection, description, silent, all_configs, counts=not watch)
            for description in described
        ]
        if output is OutputFormat.JSON:
            (show_json_line if watch else show_json)(found)
        else:
            _show_descriptions(found)
        return not any(each["offline"] for row in found for each in _partitions(row))

    show_again(show, watch, interval, output)


class _Known(NamedTuple):
    """What is known of one partition. Of offsets, records and size nothing is while it has no leader,
    or one that does not answer."""

    held: OffsetRange | None
    stable: int | None
    """None where no transaction holds committed records back."""
    records: int | None
    """None where the records were not counted."""
    size: int | None
    eligible: Eligible | None
    lags: Lags
    leader_answers: bool


def _description(
    connection: Connection,
    topic: "TopicDescription",
    silent: Collection[int],
    all_configs: bool,
    *,
    counts: bool,
) -> dict[str, object]:
    from riverlog.cli.asking.log_dirs import partition_sizes

    name = topic.name
    led = [each.id for each in topic.partitions if has_leader(each) and each.leader.id not in silent]
    held = offset_ranges(connection, name, led)
    stuck = held_back(connection, {(name, index): held[index].end for index in led}, silent)
    stable = {each.place[1]: each.last_stable_offset for each in stuck}
    sizes = partition_sizes(connection, topic, silent)
    counted = record_counts(connection, name, held, sizes) if counts else {}
    eligible = eligible_leaders(connection, [name], silent)
    lags = replica_lags(connection, [_replicated(name, each) for each in topic.partitions], silent)
    entries = settings_of_topics(connection, [name], silent)[name]
    min_isr = next((int(each.value) for each in entries if each.name == _MIN_ISR and each.value), 1)
    configs = [_config_row(entry) for entry in entries]
    rows = []
    for partition in sorted(topic.partitions, key=lambda each: each.id):
        index = partition.id
        known = _Known(
            held.get(index),
            stable.get(index),
            counted.get(index),
            sizes.get(index),
            eligible.get((name, index)),
            lags[name, index],
            has_leader(partition) and partition.leader.id not in silent,
        )
        rows.append(_partition_row(partition, known, min_isr))
    return {
        "topic": name,
        "topic_id": str(topic.topic_id).replace("+", "-").replace("/", "_"),
        "internal": topic.is_internal,
        "min_insync_replicas": min_isr,
        "partitions": rows,
        "held_back": [account(each) for each in stuck],
        "configs": [row for row in configs if all_configs or row["source"] != "default"],
    }


def _replicated(topic: str, partition: "TopicPartitionInfo") -> Replicated:
    leader = partition.leader.id if has_leader(partition) else None
    return Replicated((topic, partition.id), leader, tuple(node.id for node in partition.replicas))


def _partition_row(partition: "TopicPartitionInfo", known: _Known, min_isr: int) -> dict[str, object]:
    held, eligible = known.held, known.eligible
    offsets = held.end - held.start if held else None
    replicas, isr = [node.id for node in partition.replicas], [node.id for node in partition.isr]
    return {
        "partition": partition.id,
        "leader": partition.leader.id if has_leader(partition) else None,
        "replicas": replicas,
        "isr": isr,
        "elr": None if eligible is None else eligible.elr,
        "last_known_elr": None if eligible is None else eligible.last_known,
        "lag": {str(node_id): known.lags[node_id] for node_id in replicas},
        "start": held.start if held else None,
        "end": held.end if held else None,
        "last_stable_offset": known.stable if known.stable is not None or held is None else held.end,
        "records": offsets if known.records is None else known.records,
        "records_counted": known.records is not None or offsets == 0,
        "size": known.size,
        "offline": not has_leader(partition),
        "leader_answers": known.leader_answers,
        "under_min_isr": len(isr) < min(min_isr, len(replicas)),
        "under_replicated": not set(replicas) <= set(isr),
    }


def _config_row(entry: "ConfigEntry") -> dict[str, object]:
    from riverlog.cli.asking.kafka_admin import ConfigSource

    source = ConfigSource(entry.source).name.lower().removesuffix("_config").replace("_", " ")
    return {"key": entry.name, "value": None if entry.is_sensitive else entry.value, "source": source}


def _partitions(row: dict[str, object]) -> list[dict[str, object]]:
    partitions = row["partitions"]
    assert isinstance(partitions, list)
    return partitions


def _show_descriptions(rows: Sequence[dict[str, object]]) -> None:
    for number, row in enumerate(rows):
        if number:
            typer.echo()
        _show_description(row)


def _show_description(row: dict[str, object]) -> None:
    partitions, configs, held = _partitions(row), row["configs"], row["held_back"]
    assert isinstance(configs, list)
    assert isinstance(held, list)
    sizes = [each["size"] for each in partitions if isinstance(each["size"], int)]
    internal = ", internal" if row["internal"] else ""
    total = f", {human_bytes(sum(sizes))}" if sizes else ""
    typer.echo(f"{row['topic']}  (id {row['topic_id']}, {len(partitions)} partitions{total}{internal})")
    hidden = _JSON_ONLY | _untold(partitions)
    show_table([_shown(each, hidden) for each in partitions])
    _show_lacking(partitions, row["min_insync_replicas"])
    for each in held:
        typer.echo(f"\n{each}")
    if configs:
        typer.echo()
        show_table(configs)


def _untold(partitions: Sequence[dict[str, object]]) -> set[str]:
    """Columns in which there is nothing to see."""
    untold = {name for name in ("elr", "last_known_elr") if not any(each[name] for each in partitions)}
    if all(each["last_stable_offset"] == each["end"] for each in partitions):
        untold.add("last_stable_offset")
    if all(len(each["replicas"]) == 1 for each in partitions):  # type: ignore[arg-type]
        untold.add("lag")
    return untold


def _shown(row: dict[str, object], hidden: Collection[str]) -> dict[str, object]:
    """As a person sees it: what was not counted is told as the most that there can be."""
    counted, records, lag = row["records_counted"], row["records"], row["lag"]
    assert isinstance(lag, dict)
    told = {
        **row,
        "records": records if counted or records is None else f"≤{records}",
        "lag": ["-" if each is None else each for each in lag.values()],
    }
    return {name: each for name, each in told.items() if name not in hidden}


def _show_lacking(partitions: Sequence[dict[str, object]], min_isr: object) -> None:
    """Which partitions lack something, the worst first."""
    for name, text in (
        ("offline", "without a leader"),
        ("silent", "the leader does not answer"),
        ("under_min_isr", f"fewer in sync than {_MIN_ISR}={min_isr}"),
        ("under_replicated", "under-replicated"),
    ):
        lacking = [each["partition"] for each in partitions if _lacks(each, name)]
        if lacking:
            more = f" and {len(lacking) - _NAMED_MAX} more" if len(lacking) > _NAMED_MAX else ""
            typer.echo(f"{text}: {', '.join(map(str, lacking[:_NAMED_MAX]))}{more}")


def _lacks(row: dict[str, object], name: str) -> bool:
    return not (row["offline"] or row["leader_answers"]) if name == "silent" else bool(row[name])
