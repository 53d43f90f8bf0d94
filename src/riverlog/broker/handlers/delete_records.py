"""DeleteRecords 0-2: the records before an offset go; -1 stands for the high watermark.

Answered with the partition's new start. Refused on internal topics, and on topics that are compacted only.
"""

from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.model.errors import ErrorCode, StorageError
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK: Final = -1


class DeleteRecordsHandler:
    def __init__(self, replicas: ReplicaSet) -> None:
        self._replicas = replicas

    def handle(self, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
        wanted: dict[str, dict[int, int]] = {}
        for topic in request.topics:
            offsets = wanted.setdefault(topic.name, {})
            offsets.update((each.partition_index, each.offset) for each in topic.partitions)
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=name,
                    partitions=[self._delete(name, index, offset) for index, offset in offsets.items()],
                )
                for name, offsets in wanted.items()
                if offsets
            ]
        )

    def _delete(self, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
        partition = self._replicas.look(topic, index)
        if isinstance(partition, ErrorCode):
            return _refused(index, partition)
        if topic in INTERNAL_TOPICS:
            return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
        if refusal := partition.refusal():
            return _refused(index, refusal)
        if not partition.log.config.deletes_old_segments:
            return _refused(index, ErrorCode.POLICY_VIOLATION)
        if isinstance(partition, IdlePartition):
            log_start, high_watermark = partition.log.log_start_offset, partition.log.high_watermark
            if offset == _HIGH_WATERMARK:
                offset = high_watermark
            if not 0 <= offset <= high_watermark:
                return _refused(index, ErrorCode.OFFSET_OUT_OF_RANGE)
            if offset <= log_start:
                return DeleteRecordsPartitionResult(partition_index=index, low_watermark=log_start)
            opened = self._replicas.find(topic, index)
            if isinstance(opened, ErrorCode):
                return _refused(index, opened)
            partition = opened
        try:
            return _deleted(partition, index, offset)
        except StorageError:
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)


def _deleted(partition: Partition, index: int, offset: int) -> DeleteRecordsPartitionResult:
    high_watermark = partition.log.high_watermark
    start = partition.log.cutting.delete_records(high_watermark if offset == _HIGH_WATERMARK else offset)
    if not isinstance(start, int):
        return _refused(index, ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.disturb_readers()
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=start)


def _refused(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=error)
