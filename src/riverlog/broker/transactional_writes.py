"""Whether partitions may take a producer's transactional batches (KIP-890).

A transaction that is open in a partition goes on. A first batch is let in only when the coordinator knows
the partition as part of the transaction: newer clients leave it to the broker to add it, for older ones the
broker only asks. So no batch lands outside its transaction, where nothing would ever end it. The answer of
a coordinator on this node is there at once, and no batch can come between it and the append.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from riverlog.coordinator.effects import Producer
from riverlog.coordinator.hosted_shard import Answer
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_2
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.producer_state import NO_EPOCH, ProducerEntry

Refusals = Mapping[TopicPartition, ErrorCode]
"""By partition; a partition that is not in it may be written."""

_NONE_REFUSED: Final[Refusals] = {}
_TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class Support(Enum):
    """What the client's request version stands for."""

    OLD_ERRORS = "the partition was added before; TRANSACTION_ABORTABLE is not known"
    ABORTABLE = "the partition was added before"
    ADDS = "the broker adds the partition"


class TransactionalWrites:
    def __init__(self, transactions: TransactionCoordinator, replicas: ReplicaSet, *, verifies: bool) -> None:
        self._transactions = transactions
        self._replicas = replicas
        self.verifies = verifies

    def admit(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        support: Support,
    ) -> Refusals | Awaitable[Refusals]:
        unknown: list[TopicPartition] = []
        stale: list[TopicPartition] = []
        for each in partitions:
            epoch = self._epoch_in(each, producer.producer_id)
            if epoch > producer.producer_epoch:
                stale.append(each)
            elif epoch != producer.producer_epoch or not self._is_open(each, producer.producer_id):
                unknown.append(each)
        if stale:
            return dict.fromkeys([*stale, *unknown], ErrorCode.INVALID_PRODUCER_EPOCH)
        if not unknown or (support is not Support.ADDS and not self.verifies):
            return _NONE_REFUSED
        if support is Support.ADDS:
            added = self._add(transactional_id, producer, unknown)
            if added.done() and added.result() is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return _refusals(added.result(), unknown, support)
            return self._add_patiently(added, transactional_id, producer, unknown)
        verified = self._transactions.verify_partitions(transactional_id, producer, unknown)
        if verified.done():
            return _refusals(verified.result(), unknown, support)
        return self._verify_later(verified, transactional_id, producer, unknown, support)

    def _epoch_in(self, partition: TopicPartition, producer_id: int) -> int:
        entry = self._entry(partition, producer_id)
        return NO_EPOCH if entry is None else entry.epoch

    def _is_open(self, partition: TopicPartition, producer_id: int) -> bool:
        entry = self._entry(partition, producer_id)
        return entry is not None and entry.transaction_first_offset is not None

    def _entry(self, partition: TopicPartition, producer_id: int) -> ProducerEntry | None:
        found = self._replicas.find(*partition)
        return found.log.producers.get(producer_id) if isinstance(found, Partition) else None

    def _add(
        self, transactional_id: str, producer: Producer, partitions: Sequence[TopicPartition]
    ) -> Answer[None]:
        return self._transactions.add_partitions(
            transactional_id, producer, partitions, client_version=VERSION_2
        )

    async def _add_patiently(
        self,
        added: Answer[None],
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
    ) -> Refusals:
        """While the transaction before this one is being ended, wait for it a little."""
        config = self._transactions.config
        left_ms = config.add_retry_max_ms
        while (error := await added) is ErrorCode.CONCURRENT_TRANSACTIONS and left_ms > 0:
            await asyncio.sleep(config.add_retry_pause_ms / 1000)
            left_ms -= config.add_retry_pause_ms
            added = self._add(transactional_id, producer, partitions)
        return _refusals(error, partitions, Support.ADDS)

    async def _verify_later(
        self,
        verified: Answer[Refusals],
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        support: Support,
    ) -> Refusals:
        """The transaction may have ended while the answer waited; then the client asks again."""
        answer = await verified
        if self._transactions.are_part_of(transactional_id, producer, partitions):
            return _refusals(answer, partitions, support)
        return _refusals(ErrorCode.CONCURRENT_TRANSACTIONS, partitions, support)


def _refusals(
    answer: Refusals | ErrorCode | None, partitions: Sequence[TopicPartition], support: Support
) -> Refusals:
    if answer is None:
        return _NONE_REFUSED
    if isinstance(answer, ErrorCode):
        answer = dict.fromkeys(partitions, answer)
    return {at: _told(error, support) for at, error in answer.items() if error is not ErrorCode.NONE}


def _told(error: ErrorCode, support: Support) -> ErrorCode:
    """Clients repeat a produce for NOT_ENOUGH_REPLICAS, and know it in every version."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is Support.OLD_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    if error in _TRY_AGAIN or (error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not Support.ADDS):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error
