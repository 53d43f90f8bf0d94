"""Questions about transactions, asked of their coordinators and answered in plain values.

No printing and no options here: `txn` builds on it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from riverlog.cli.asking.brokers import Brokers, refused
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.coordinators import CoordinatorKind, coordinator_of, wait_or_raise
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address

ONGOING: Final = "Ongoing"
_OPEN: Final = frozenset({ONGOING, "PrepareCommit", "PrepareAbort"})
_NO_TIMEOUT_MS: Final = 2**31 - 1
_FENCING_TIMEOUT_MS: Final = 60_000
_OF_SPARK: Final = ("riverlog-spark/", "riverlog-spark-driver/")
"""What the transactional ids of the Spark sink begin with; a test compares them with the sink's."""


@dataclass(frozen=True, slots=True)
class Transaction:
    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int | None
    """None: it is in an outside two-phase commit, and is never timed out."""
    started_ms: int | None
    partitions: tuple[tuple[str, int], ...]
    coordinator: int | None

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN


def is_of_spark(name: str) -> bool:
    return name.startswith(_OF_SPARK)


def ending_command(name: str) -> str:
    """What ends an open transaction whose producer is gone.

    That of a Spark query may be decided already, and then is to be committed, as the query itself would do.
    """
    return f"riverlog pipeline abort-leftovers {name}" if is_of_spark(name) else f"riverlog txn abort {name}"


def all_transactions(brokers: Brokers) -> Iterator[Transaction]:
    """Those of every coordinator, each broker being one for its share."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.list_transactions import ListTransactionsRequest

    for node_id, address in sorted(brokers.addresses().items()):
        listed = brokers.ask(address, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
        if listed.error_code:
            raise refused(listed.error_code, f"transactions of broker {node_id}")
        names = [each.transactional_id for each in listed.transaction_states]
        if names:
            described = _describe(brokers, address, names, node_id)
            yield from (each for each in described if isinstance(each, Transaction))


def find_transaction(connection: Connection, brokers: Brokers, name: str) -> Transaction:
    deadline = time.monotonic() + connection.timeout_s
    while True:
        address = coordinator_of(connection, brokers, name, CoordinatorKind.TRANSACTIONS, deadline)
        coordinator = next((node for node, each in brokers.addresses().items() if each == address), None)
        [found] = _describe(brokers, address, [name], coordinator)
        if isinstance(found, Transaction):
            return found
        wait_or_raise(found, f"transactional id {name}", deadline)


def abort(connection: Connection, brokers: Brokers, name: str) -> None:
    """Take over from the producer, as a new one with the same id would: its open transaction is aborted."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.init_producer_id import InitProducerIdRequest

    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=_FENCING_TIMEOUT_MS)
    deadline = time.monotonic() + connection.timeout_s
    while True:
        address = coordinator_of(connection, brokers, name, CoordinatorKind.TRANSACTIONS, deadline)
        answer = brokers.ask(address, ApiKey.INIT_PRODUCER_ID, request)
        if answer.error_code == ErrorCode.NONE:
            return
        wait_or_raise(answer.error_code, f"the transaction of {name} was not aborted", deadline)


def start_offsets(brokers: Brokers, connection: Connection, transaction: Transaction) -> dict[str, int]:
    """Where the transaction begins in its partitions, as far as anything is written there."""
    found: dict[str, int] = {}
    for topic, index in transaction.partitions:
        starts = open_producers(brokers, connection, topic, index)
        if transaction.producer_id in starts:
            found[f"{topic}-{index}"] = starts[transaction.producer_id]
    return found


def open_producers(brokers: Brokers, connection: Connection, topic: str, index: int) -> dict[int, int]:
    """Where the open transactions of one partition begin, by producer id; none while it has no leader."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest

    addresses = brokers.addresses()
    described = connection.metadata().topics.get(topic)
    partition = None if described is None else described.partitions.get(index)
    if partition is None or partition.leader not in addresses:
        return {}
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    answer = brokers.ask(addresses[partition.leader], ApiKey.DESCRIBE_PRODUCERS, request)
    return {
        producer.producer_id: producer.current_txn_start_offset
        for producer in answer.topics[0].partitions[0].active_producers
        if producer.current_txn_start_offset >= 0
    }


def _describe(
    brokers: Brokers, address: Address, names: list[str], coordinator: int | None
) -> list[Transaction | int]:
    """An error code in place of each that is not known, or not here."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest

    request = DescribeTransactionsRequest(transactional_ids=names)
    answer = brokers.ask(address, ApiKey.DESCRIBE_TRANSACTIONS, request)
    return [
        each.error_code
        or Transaction(
            each.transactional_id,
            each.transaction_state,
            each.producer_id,
            each.producer_epoch,
            None if each.transaction_timeout_ms == _NO_TIMEOUT_MS else each.transaction_timeout_ms,
            None if each.transaction_start_time_ms < 0 else each.transaction_start_time_ms,
            tuple((topic.topic, index) for topic in each.topics for index in topic.partitions),
            coordinator,
        )
        for each in answer.transaction_states
    ]
