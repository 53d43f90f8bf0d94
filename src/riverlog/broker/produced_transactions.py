"""The transactional side of a produce request: whose transaction it is, which partitions may be written."""

import struct
from collections.abc import Awaitable
from typing import Final

from riverlog.broker.transactional_writes import Refusals, Support, TransactionalWrites
from riverlog.coordinator.effects import Producer
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.records.batch import HEADER_BYTES
from riverlog.records.produced import is_transactional
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.messages.produce import ProduceRequest, TopicProduceData

_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AND_SEQUENCE: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
_ABORTABLE_SINCE: Final = 11
_ADDS_SINCE: Final = 12
_IDS_SINCE: Final = 13
_NONE_REFUSED: Final[Refusals] = {}


class ProducedTransactions:
    def __init__(self, writes: TransactionalWrites, replicas: ReplicaSet) -> None:
        self._writes = writes
        self._replicas = replicas

    def admit(self, request: ProduceRequest, version: int) -> Refusals | Awaitable[Refusals] | ErrorCode:
        """The partitions that may not be written, or an error for all."""
        assert request.transactional_id is not None
        producers: set[Producer] = set()
        partitions: list[TopicPartition] = []
        for topic in request.topic_data:
            for data in topic.partition_data:
                records = data.records
                if not isinstance(records, memoryview) or len(records) < HEADER_BYTES:
                    continue
                if is_transactional(records):
                    producers.add(Producer(*_PRODUCER.unpack_from(records, _PRODUCER_AT)))
                    if (at := self._place_of(topic, data.index, version)) is not None:
                        partitions.append(at)
        if not producers:
            return _NONE_REFUSED
        if len({each.producer_id for each in producers}) > 1:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        return self._writes.admit(request.transactional_id, max(producers), partitions, _support(version))

    def _place_of(self, topic: TopicProduceData, index: int, version: int) -> TopicPartition | None:
        """None for a partition that is not here, which is refused for that."""
        if version < _IDS_SINCE:
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
    producer_id, _, base_sequence = _PRODUCER_AND_SEQUENCE.unpack_from(records, _PRODUCER_AT)
    return base_sequence != 0 and partition.log.producers.get(producer_id) is None


def _support(version: int) -> Support:
    if version >= _ADDS_SINCE:
        return Support.ADDS
    return Support.ABORTABLE if version >= _ABORTABLE_SINCE else Support.OLD_ERRORS
