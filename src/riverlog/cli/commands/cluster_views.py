"""What `riverlog cluster` prints of a cluster: a status, a list of brokers, a broker with its partitions."""

from collections.abc import Sequence

import typer

from riverlog.cli.asking.overview import BrokerView, Overview, PartitionView
from riverlog.cli.asking.replica_states import ReplicaStates
from riverlog.cli.options import OutputFormat
from riverlog.cli.printing.output import counted, show_json, show_json_line, show_rows, show_table

_SHOWN = 20


def show_status(found: Overview, states: ReplicaStates, output: OutputFormat, *, compact: bool) -> None:
    lacking = found.lacking
    row = {
        "cluster": found.cluster_id,
        "brokers": len(found.brokers) - len(found.away),
        "away": found.away,
        "no_answer": sorted(found.silent),
        "controller": found.controller,
        "topics": len(found.topics - found.internal_topics),
        "internal_topics": len(found.internal_topics),
        "partitions": len(found.partitions),
        "without_leader": len(found.without_leader),
        "under_min_isr": sum(map(states.is_under_min_isr, lacking)),
        "under_replicated": len(found.under_replicated),
        "silent_leader": len(found.with_silent_leader),
        "max_lag": states.max_lag,
    }
    if output is OutputFormat.JSON:
        _show_json(
            {**row, "lacking": [_lacking_row(each, found, states) for each in lacking]}, compact=compact
        )
        return
    for name, value in row.items():
        typer.echo(f"{name.replace('_', ' '):<17} {_told(value)}")
    if lacking:
        typer.echo()
        show_table([_told_lacking(_lacking_row(each, found, states)) for each in lacking[:_SHOWN]])
    if len(lacking) > _SHOWN:
        typer.echo(f"and {counted(len(lacking) - _SHOWN, 'more partition')}; all of them with -o json")


def _lacking_row(partition: PartitionView, found: Overview, states: ReplicaStates) -> dict[str, object]:
    eligible, lags = states.eligible.get(partition.place), states.lags.get(partition.place, {})
    return {
        **_partition_row(partition),
        "elr": None if eligible is None else eligible.elr,
        "lag": {str(each): lags.get(each) for each in partition.replicas},
        "state": _state(partition, found, states),
    }


def _state(partition: PartitionView, found: Overview, states: ReplicaStates) -> str:
    """What is worst."""
    if partition.leader is None:
        return "offline"
    if partition.leader in found.silent:
        return "silent leader"
    return "under min ISR" if states.is_under_min_isr(partition) else "under-replicated"


def _told_lacking(row: dict[str, object]) -> dict[str, object]:
    lag = row["lag"]
    assert isinstance(lag, dict)
    return {**row, "lag": ["-" if each is None else each for each in lag.values()]}


def show_brokers(
    found: Overview, chosen: Sequence[BrokerView], output: OutputFormat, *, compact: bool
) -> None:
    described = [
        {
            **broker_row(broker),
            "partitions": [
                _partition_row(each) for each in found.partitions if broker.node_id in each.replicas
            ],
        }
        for broker in chosen
    ]
    if output is OutputFormat.JSON:
        _show_json(described, compact=compact)
        return
    for number, (broker, row) in enumerate(zip(chosen, described, strict=True)):
        if number:
            typer.echo()
        rack = f", rack {broker.rack}" if broker.rack else ""
        role = ", controller" if broker.is_controller else ""
        typer.echo(f"broker {broker.node_id} at {broker.address or 'no address: it is away'}{rack}{role}")
        typer.echo(f"leads {broker.leads} of {counted(broker.replicas, 'partition')}")
        if partitions := row["partitions"]:
            assert isinstance(partitions, list)
            show_table(partitions)


def show_list(rows: Sequence[dict[str, object]], output: OutputFormat, *, compact: bool) -> None:
    if output is OutputFormat.JSON:
        _show_json(rows, compact=compact)
    else:
        show_rows(rows, output)


def _show_json(value: object, *, compact: bool) -> None:
    (show_json_line if compact else show_json)(value)


def in_order(found: Overview) -> list[BrokerView]:
    return [found.brokers[node_id] for node_id in sorted(found.brokers)]


def broker_row(broker: BrokerView) -> dict[str, object]:
    return {
        "broker": broker.node_id,
        "address": broker.address,
        "rack": broker.rack,
        "controller": broker.is_controller,
        "leads": broker.leads,
        "replicas": broker.replicas,
        "in_sync": broker.in_sync,
    }


def _partition_row(partition: PartitionView) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "leader": partition.leader,
        "replicas": list(partition.replicas),
        "in_sync": list(partition.in_sync),
    }


def _told(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
