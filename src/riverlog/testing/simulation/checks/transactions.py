"""Transactions, as the log of the coordinator and the partitions tell of them (I14, I15).

In a partition a marker ends what was prepared with that partition in it, and does so once; a completed
transaction is open nowhere; a transactional batch stands in a partition that is part of an open transaction.
What the partitions commit within one step has no order among them, so it is looked at when the step is over:
decisions first, then what is in the partitions, then completions.

A power cut may take a part of all this away. What is known of a producer then counts again from its next
transaction on.
"""

from collections.abc import Iterator
from typing import Final

from riverlog.coordinator.formats.formats import decode_key
from riverlog.coordinator.formats.transactions import TransactionLogKey
from riverlog.coordinator.transactions.log_records import transaction_of
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.records.record import records_of
from riverlog.testing.simulation.checks.ledger import CommittedBatch, Ledger, PartitionLedger
from riverlog.testing.simulation.violations import Violation

_COMPLETE: Final = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


class TransactionCheck:
    def __init__(self, ledger: Ledger) -> None:
        self._decided: list[Transaction] = []
        self._written: list[tuple[TopicPartition, CommittedBatch]] = []
        self._present: dict[int, Transaction] = {}
        """The last that was decided for a producer id, other than its completion."""
        self._ended: dict[int, set[TopicPartition]] = {}
        """Where its present transaction has its marker."""
        self._open: dict[int, set[TopicPartition]] = {}
        """Where a producer has written and no marker followed."""
        self._unsure: set[int] = set()
        ledger.on_commit.append(self._on_commit)
        ledger.on_cut.append(self._on_cut)

    @property
    def present(self) -> Iterator[Transaction]:
        """Those that have been begun and are not known to be completed, the last one of each producer."""
        return (each for each in self._present.values() if each.state not in _COMPLETE)

    def look(self) -> None:
        """A step is over."""
        if not self._decided and not self._written:
            return
        decided, self._decided = self._decided, []
        written, self._written = self._written, []
        for transaction in decided:
            self._decide(transaction)
        for partition, batch in written:
            if batch.header.is_control:
                self._end(partition, batch)
            else:
                self._write(partition, batch)
        for transaction in decided:
            if transaction.state in _COMPLETE:
                self._complete(transaction)

    def _on_commit(self, ledger: PartitionLedger, batch: CommittedBatch) -> None:
        if ledger.topic == TRANSACTIONS_TOPIC:
            self._decided += _transactions(batch)
        elif batch.header.is_transactional:
            self._written.append((TopicPartition(ledger.topic, ledger.index), batch))

    def _on_cut(self, ledger: PartitionLedger) -> None:
        self._unsure |= self._present.keys() | self._open.keys()
        self._present.clear()
        self._ended.clear()
        self._open.clear()

    def _decide(self, transaction: Transaction) -> None:
        producer_id = transaction.producer.producer_id
        if transaction.state is TransactionState.ONGOING:
            self._unsure.discard(producer_id)
        if transaction.state in _COMPLETE:
            return
        before = self._present.get(producer_id)
        if before is None or before.state is not TransactionState.ONGOING:
            self._ended[producer_id] = set()
        self._present[producer_id] = transaction

    def _write(self, partition: TopicPartition, batch: CommittedBatch) -> None:
        producer_id = batch.header.producer_id
        if producer_id in self._unsure:
            return
        present = self._present.get(producer_id)
        what = f"{partition}: producer {producer_id} writes at {batch.base_offset}"
        if present is None or partition not in present.partitions:
            raise Violation("I15", f"{what} outside of its transaction: {present}")
        if partition in self._ended[producer_id]:
            raise Violation("I15", f"{what} after the end of its transaction: {present}")
        self._open.setdefault(producer_id, set()).add(partition)

    def _end(self, partition: TopicPartition, batch: CommittedBatch) -> None:
        producer_id = batch.header.producer_id
        self._open.get(producer_id, set()).discard(partition)
        if producer_id in self._unsure:
            return
        present = self._present.get(producer_id)
        what = f"{partition}: a marker of producer {producer_id} at {batch.base_offset}"
        if present is None or not present.state.is_prepared or partition not in present.partitions:
            raise Violation("I14", f"{what}, whose end was not decided: {present}")
        ended = self._ended[producer_id]
        if partition in ended:
            raise Violation("I14", f"{what} is the second of its transaction: {present}")
        ended.add(partition)

    def _complete(self, transaction: Transaction) -> None:
        for producer_id in (transaction.producer.producer_id, transaction.previous_producer_id):
            left = self._open.get(producer_id) if producer_id is not None else None
            if left:
                what = f"the transaction of producer {producer_id} is completed and open in {sorted(left)}"
                raise Violation("I14", what)


def _transactions(batch: CommittedBatch) -> Iterator[Transaction]:
    for record in records_of(batch.data):
        if record.key is not None and record.value is not None:
            key = decode_key(TransactionLogKey, bytes(record.key))
            yield transaction_of(key.transactional_id, bytes(record.value))
