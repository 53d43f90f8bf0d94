"""A transaction as a record of `__transaction_state`, and back. Kafka's format.

An absent value is -1 there and None here. `next_producer_epoch` is left out where it is 0, which is how
Kafka writes the id that follows when epochs are used up; it is there when a prepared transaction was taken
over.
"""

from typing import Final

from riverlog.coordinator.formats.formats import TransactionRecord, decode_value, record
from riverlog.coordinator.formats.transactions import (
    TransactionLogKey,
    TransactionLogPartitions,
    TransactionLogValue,
)
from riverlog.coordinator.runtime.effects import CoordinatorRecord
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition

VALUE_VERSION: Final = 1
"""Of transaction.version 1 and later: the one with tagged fields."""
_ABSENT: Final = -1


def record_of(transaction: Transaction) -> CoordinatorRecord:
    return record(
        TransactionRecord.TRANSACTION_LOG,
        TransactionLogKey(transactional_id=transaction.transactional_id),
        _value_of(transaction),
        VALUE_VERSION,
    )


def tombstone_of(transactional_id: str) -> CoordinatorRecord:
    key = TransactionLogKey(transactional_id=transactional_id)
    return record(TransactionRecord.TRANSACTION_LOG, key, None)


def transaction_of(transactional_id: str, data: bytes) -> Transaction:
    """Raises `MalformedMessage`, or `UnknownVersion`."""
    value = decode_value(TransactionLogValue, data)
    return Transaction(
        transactional_id,
        TransactionState(value.transaction_status),
        ProducerIdAndEpoch(value.producer_id, value.producer_epoch),
        value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
        started_ms=_given(value.transaction_start_timestamp_ms),
        partitions=frozenset(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        previous_producer_id=_given(value.previous_producer_id),
        next_producer=(
            None
            if value.next_producer_id == _ABSENT
            else ProducerIdAndEpoch(value.next_producer_id, max(value.next_producer_epoch, 0))
        ),
        client_version=value.client_transaction_version,
    )


def _value_of(transaction: Transaction) -> TransactionLogValue:
    following = transaction.next_producer
    return TransactionLogValue(
        producer_id=transaction.producer.producer_id,
        producer_epoch=transaction.producer.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=_partitions_of(transaction),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=_written(transaction.started_ms),
        previous_producer_id=_written(transaction.previous_producer_id),
        next_producer_id=_ABSENT if following is None else following.producer_id,
        client_transaction_version=transaction.client_version,
        next_producer_epoch=(
            _ABSENT if following is None or following.producer_epoch == 0 else following.producer_epoch
        ),
    )


def _partitions_of(transaction: Transaction) -> list[TransactionLogPartitions] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(index)
    return [TransactionLogPartitions(topic=topic, partition_ids=ids) for topic, ids in topics.items()]


def _given(number: int) -> int | None:
    return None if number == _ABSENT else number


def _written(number: int | None) -> int:
    return _ABSENT if number is None else number
