"""`riverlog txn`: transactions that are open, how old they are, and the end of one that nobody will end."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Annotated

import typer

from riverlog.cli.asking.broker_time import BrokerTime
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.connection import Connection, connected
from riverlog.cli.asking.transactions import (
    ONGOING,
    Transaction,
    abort,
    all_transactions,
    ending_command,
    find_transaction,
    is_of_spark,
    start_offsets,
)
from riverlog.cli.failures import CommandError
from riverlog.cli.options import OutputFormat, OutputOption, YesOption, confirm
from riverlog.cli.printing.durations import human_duration
from riverlog.cli.printing.output import remark, show_json, show_rows, show_table, warn

app = typer.Typer(help="List, describe and abort transactions.", no_args_is_help=True, add_completion=False)

_WARN_KEY = "riverlog.2pc.warn.ms"
_WARN_DEFAULT_MS = 3_600_000
_IdArgument = Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID…", show_default=False)]


@app.command("list")
@connected
def list_transactions(
    connection: Connection,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="Only ids that match, such as 'orders-*'.")
    ] = "*",
    only_open: Annotated[bool, typer.Option("--open", help="Only those with an open transaction.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List transactional ids, with the age of the transactions that are open, by their coordinators' clocks.

    Example: riverlog txn list --open
    """
    with Brokers(connection) as brokers:
        found = sorted(
            (each for each in all_transactions(brokers) if fnmatchcase(each.transactional_id, pattern)),
            key=lambda each: each.transactional_id,
        )
        shown = [each for each in found if each.is_open or not only_open]
        ages = _ages(brokers, shown)
    rows = [_row(each, ages[each.transactional_id], output) for each in shown]
    show_rows(rows, output, empty="no open transactions" if only_open else "no transactional ids")
    _warn_of_old(connection, shown, ages)


@app.command("describe")
@connected
def describe(connection: Connection, ids: _IdArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show the state of transactional ids, and the partitions that their transactions hold up.

    Example: riverlog txn describe orders-1
    """
    described = []
    with Brokers(connection) as brokers:
        for name in ids:
            transaction = find_transaction(connection, brokers, name)
            starts = start_offsets(brokers, connection, transaction)
            described.append((transaction, _partition_rows(transaction, starts)))
        ages = _ages(brokers, [each for each, _ in described])
    if output is OutputFormat.JSON:
        show_json(
            [
                {**_row(each, ages[each.transactional_id], output), "partitions": partitions}
                for each, partitions in described
            ]
        )
    else:
        for number, (each, partitions) in enumerate(described):
            if number:
                typer.echo()
            show_table([_row(each, ages[each.transactional_id], output)])
            if partitions:
                typer.echo()
                show_table(partitions)
    _warn_of_old(connection, [each for each, _ in described], ages)


@app.command("abort")
@connected
def abort_transactions(connection: Connection, ids: _IdArgument, yes: YesOption = False) -> None:
    """Abort the open transactions of ids whose producers are gone. A producer that lives is fenced.

    Example: riverlog txn abort orders-1 --yes
    """
    with Brokers(connection) as brokers:
        for name in ids:
            transaction = find_transaction(connection, brokers, name)
            if transaction.state != ONGOING:
                raise CommandError(
                    f"{name} has no open transaction; its state is {transaction.state}",
                    remedy="see what is open with `riverlog txn list --open`",
                )
            if is_of_spark(name):
                warn(
                    f"{name} is of a Spark query, whose rows are lost if it is decided already; "
                    f"`{ending_command(name)}` commits what is decided and aborts the rest"
                )
        what = ids[0] if len(ids) == 1 else f"{len(ids)} ids"
        confirm(f"The open transaction of {what} will be aborted, and its records lost.", yes=yes)
        for name in ids:
            abort(connection, brokers, name)
            remark(f"aborted the transaction of {name}")


def _ages(brokers: Brokers, transactions: Iterable[Transaction]) -> dict[str, int | None]:
    broker_time = BrokerTime(brokers)
    return {each.transactional_id: broker_time.age_ms(each) for each in transactions}


def _row(transaction: Transaction, age_ms: int | None, output: OutputFormat) -> dict[str, object]:
    row: dict[str, object] = {
        "transactional_id": transaction.transactional_id,
        "state": transaction.state,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
    }
    if output is OutputFormat.JSON:
        return row | {
            "age_ms": age_ms,
            "timeout_ms": transaction.timeout_ms,
            "started_ms": transaction.started_ms if transaction.is_open else None,
            "partitions": len(transaction.partitions),
        }
    timeout_ms = transaction.timeout_ms
    return row | {
        "age": None if age_ms is None else human_duration(age_ms),
        "timeout": "never" if timeout_ms is None else human_duration(timeout_ms),
        "partitions": len(transaction.partitions),
    }


def _partition_rows(transaction: Transaction, starts: dict[str, int]) -> list[dict[str, object]]:
    return [
        {"topic": topic, "partition": index, "start_offset": starts.get(f"{topic}-{index}")}
        for topic, index in sorted(transaction.partitions)
    ]


def _warn_of_old(
    connection: Connection, transactions: list[Transaction], ages: Mapping[str, int | None]
) -> None:
    ongoing = [each.transactional_id for each in transactions if each.state == ONGOING]
    if not ongoing:
        return
    limit_ms = _warn_ms(connection)
    for name in ongoing:
        age_ms = ages[name]
        if age_ms is not None and age_ms > limit_ms:
            warn(
                f"the transaction of {name} has been open for {human_duration(age_ms)}, and readers of "
                f"committed records wait; if its producer is gone, `{ending_command(name)}`"
            )


def _warn_ms(connection: Connection) -> int:
    """From when on an open transaction is old; Apache Kafka has no such setting."""
    from riverlog.cli.asking.cluster import outcome
    from riverlog.cli.asking.kafka_admin import ConfigResource, ResourceType

    node_id = min(connection.metadata().brokers)
    resource = ConfigResource(ResourceType.BROKER, str(node_id))
    futures = connection.admin().describe_configs([resource], request_timeout=connection.timeout_s)
    entries = outcome(connection, futures[resource], f"configs of broker {node_id}")
    return int(entries[_WARN_KEY].value) if _WARN_KEY in entries else _WARN_DEFAULT_MS
