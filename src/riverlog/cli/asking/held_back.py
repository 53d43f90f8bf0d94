"""Partitions in which committed records end before the log does, and the transaction that is the reason."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from riverlog.cli.asking.broker_time import BrokerTime
from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place, last_stable_offsets
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.transactions import Transaction, all_transactions, open_producers
from riverlog.cli.failures import CommandError


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Readers of committed records stop at `last_stable_offset`. The producer is None where it cannot be
    asked for, the transaction where no coordinator knows the producer."""

    place: Place
    last_stable_offset: int
    end: int
    producer_id: int | None = None
    transaction: Transaction | None = None
    age_ms: int | None = None
    """Of the transaction."""


def held_back(
    connection: Connection, ends: Mapping[Place, int], silent: Collection[int] = ()
) -> list[HeldBack]:
    """Those of the partitions, given with their ends, that an open transaction holds back. Leaders that are
    silent are not to be among those of the partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(ends):
        by_topic.setdefault(topic, []).append(partition)
    found = [
        HeldBack((topic, partition), stable, ends[topic, partition])
        for topic, partitions in by_topic.items()
        for partition, stable in last_stable_offsets(connection, topic, partitions).items()
        if stable < ends[topic, partition]
    ]
    return _with_reasons(connection, found, silent) if found else []


def _with_reasons(
    connection: Connection, found: Sequence[HeldBack], silent: Collection[int]
) -> list[HeldBack]:
    try:
        with Brokers(connection, silent) as brokers:
            holders = {each.place: _holder(brokers, connection, each) for each in found}
            known = _by_producer(brokers, {each for each in holders.values() if each is not None})
            broker_time = BrokerTime(brokers)
            return [_with_reason(each, holders[each.place], known, broker_time) for each in found]
    except CommandError:
        return list(found)


def _with_reason(
    held: HeldBack, holder: int | None, known: Mapping[int, Transaction], broker_time: BrokerTime
) -> HeldBack:
    transaction = None if holder is None else known.get(holder)
    age_ms = None if transaction is None else broker_time.age_ms(transaction)
    return replace(held, producer_id=holder, transaction=transaction, age_ms=age_ms)


def _holder(brokers: Brokers, connection: Connection, held: HeldBack) -> int | None:
    """The producer whose transaction is the oldest there."""
    starts = open_producers(brokers, connection, *held.place)
    return min(starts, key=lambda producer_id: starts[producer_id], default=None)


def _by_producer(brokers: Brokers, wanted: Collection[int]) -> dict[int, Transaction]:
    return {each.producer_id: each for each in all_transactions(brokers) if each.producer_id in wanted}
