"""Whether partitions may take a producer's transactional batches (KIP-890).

A transaction that is open in a partition goes on. A first batch is let in only when the coordinator knows
the partition as part of the transaction: newer clients leave it to the broker to add it, for older ones the
broker only asks. So no batch lands outside its transaction, where nothing would ever end it. The answer of
a coordinator on this node is there at once, and no batch can come between it and the append.
"""

import asyncio
import struct
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_2
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.records.batch import HEADER_BYTES, PRODUCER_ID_AT
from riverlog.records.records_field import is_transactional
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.producers.state import NO_EPOCH, ProducerEntry
from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.messages.produce import ProduceRequest, TopicProduceData

Refusals = Mapping[TopicPartition, ErrorCode]
"""By partition; a partition that is not in it may be written."""

_NONE_REFUSED: Final[Refusals] = {}
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AND_SEQUENCE: Final = struct.Struct(">qhi")
_ABORTABLE_SINCE: Final = 11
_ADDS_SINCE: Final = 12
_COORDINATOR_AWAY: Final = frozenset(
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


class TransactionAdmission:
    def __init__(self, transactions: TransactionCoordinator, replicas: ReplicaSet, *, verifies: bool) -> None:
        self._transactions = transactions
        self._replicas = replicas
        self.verifies = verifies

    def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
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
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Sequence[TopicPartition]
    ) -> ShardAnswer[None]:
        return self._transactions.add_partitions(
            transactional_id, producer, partitions, client_version=VERSION_2
        )

    async def _add_patiently(
        self,
        added: ShardAnswer[None],
        transactional_id: str,
        producer: ProducerIdAndEpoch,
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
        verified: ShardAnswer[Refusals],
        transactional_id: str,
        producer: ProducerIdAndEpoch,
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
    return {
        at: _error_for_client(error, support) for at, error in answer.items() if error is not ErrorCode.NONE
    }


def _error_for_client(error: ErrorCode, support: Support) -> ErrorCode:
    """Clients repeat a produce for NOT_ENOUGH_REPLICAS, and know it in every version."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is Support.OLD_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    is_busy = error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not Support.ADDS
    if is_busy or error in _COORDINATOR_AWAY:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error


class ProduceAdmission:
    def __init__(self, writes: TransactionAdmission, replicas: ReplicaSet) -> None:
        self._writes = writes
        self._replicas = replicas

    def admit(self, request: ProduceRequest, version: int) -> Refusals | Awaitable[Refusals] | ErrorCode:
        """The partitions that may not be written, or an error for all."""
        assert request.transactional_id is not None
        producers: set[ProducerIdAndEpoch] = set()
        partitions: list[TopicPartition] = []
        for topic in request.topic_data:
            for data in topic.partition_data:
                records = data.records
                if not isinstance(records, memoryview) or len(records) < HEADER_BYTES:
                    continue
                if is_transactional(records):
                    producers.add(ProducerIdAndEpoch(*_PRODUCER.unpack_from(records, PRODUCER_ID_AT)))
                    if (at := self._partition_of(topic, data.index, version)) is not None:
                        partitions.append(at)
        if not producers:
            return _NONE_REFUSED
        if len({each.producer_id for each in producers}) > 1:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return self._writes.admit(request.transactional_id, max(producers), partitions, _support(version))

    def _partition_of(self, topic: TopicProduceData, index: int, version: int) -> TopicPartition | None:
        """None for a partition that is not here, which is refused for that."""
        if version < TOPIC_ID_VERSION_MIN:
            found = self._replicas.find(topic.name, index)
        else:
            found = self._replicas.find_by_id(topic.topic_id, index)
        return found.topic_partition if isinstance(found, Partition) else None


def begins_late(partition: Partition, records: memoryview, version: int) -> bool:
    """Whether a producer that the partition does not know begins in the middle of its sequence.

    Where the broker adds the partition, the first batch may have been refused and a later one come through; a
    producer with an epoch for each transaction always begins at 0, so the gap is seen.
    """
    if version < _ADDS_SINCE or len(records) < HEADER_BYTES or not is_transactional(records):
        return False
    producer_id, _, base_sequence = _PRODUCER_AND_SEQUENCE.unpack_from(records, PRODUCER_ID_AT)
    return base_sequence != 0 and partition.log.producers.get(producer_id) is None


def _support(version: int) -> Support:
    if version >= _ADDS_SINCE:
        return Support.ADDS
    return Support.ABORTABLE if version >= _ABORTABLE_SINCE else Support.OLD_ERRORS
