"""DeleteRecords 0-2: the records before an offset go; -1 stands for the high watermark.

Answered with the lowest start of the partition's replicas, once all that are alive have let the records go,
or with REQUEST_TIMED_OUT: they go from the others as soon as these ask for more. Refused on internal topics,
and on topics that are compacted only.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.delayed import NOT_YET, DelayedReply
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.metadata.delta import ImageDelta
from riverlog.model.errors import ErrorCode, StorageError
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.watchers import Watched
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_HIGH_WATERMARK: Final = -1
_NO_WATERMARK: Final = -1


class DeleteRecordsHandler:
    def __init__(self, replicas: ReplicaSet, turn: LoopTurn) -> None:
        self._replicas = replicas
        self._turn = turn
        self._waiting: dict[DelayedDeletion, None] = {}

    def apply(self, delta: ImageDelta) -> None:
        """To be called after `ReplicaSet.apply`: a replica that is gone is not waited for."""
        if delta.old.brokers != delta.new.brokers:
            for each in self._waiting:
                each.poll_soon()

    def handle(
        self, request: DeleteRecordsRequest, context: RequestContext
    ) -> "DeleteRecordsResponse | DelayedDeletion":
        spread: list[Spreading] = []
        response = self._response(request, spread)
        if not spread:
            return response
        waiting = DelayedDeletion(
            response, spread, request.timeout_ms / 1000, self._turn, lambda: self._waiting.pop(waiting)
        )
        self._waiting[waiting] = None
        return waiting

    def _response(self, request: DeleteRecordsRequest, spread: "list[Spreading]") -> DeleteRecordsResponse:
        wanted: dict[str, dict[int, int]] = {}
        for topic in request.topics:
            offsets = wanted.setdefault(topic.name, {})
            offsets.update((each.partition_index, each.offset) for each in topic.partitions)
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=name,
                    partitions=[
                        self._delete(name, index, offset, spread) for index, offset in offsets.items()
                    ],
                )
                for name, offsets in wanted.items()
                if offsets
            ]
        )

    def _delete(
        self, topic: str, index: int, offset: int, spread: "list[Spreading]"
    ) -> DeleteRecordsPartitionResult:
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
            return _deleted(partition, index, offset, spread)
        except StorageError:
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)


class Spreading(NamedTuple):
    """Records that are gone here, and not from all replicas yet."""

    result: DeleteRecordsPartitionResult
    partition: Partition
    before_offset: int


class DelayedDeletion(DelayedReply):
    """Waits for the followers, which tell their log start when they ask for more. Watches each partition."""

    __slots__ = ("_is_over", "_on_end", "_response", "_spread", "_timer")

    def __init__(
        self,
        response: DeleteRecordsResponse,
        spread: Sequence[Spreading],
        timeout_s: float,
        turn: LoopTurn,
        on_end: Callable[[], object],
    ) -> None:
        super().__init__(turn)
        self._response = response
        self._spread = spread
        self._on_end = on_end
        self._is_over = False
        self._timer = asyncio.get_running_loop().call_later(max(timeout_s, 0), self._on_timeout)
        for each in spread:
            each.partition.add_watcher(self)

    def on_partition_changed(self, partition: Partition) -> None:
        self.poll_soon()

    def asked(self, partition: Partition) -> None:
        """It copies nothing."""

    def may_rest(self, partition: Partition) -> bool:
        return False  # What the followers have deleted is told here.

    def move_to(self, watched: Watched) -> None:
        raise AssertionError("what is watched by this does not rest")

    def hurry(self) -> None:
        """It asks for nothing."""

    def _on_timeout(self) -> None:
        self._is_over = True
        self.poll_soon()

    def make(self) -> object:
        if not self._is_over and any(_is_under_way(each) for each in self._spread):
            return NOT_YET
        for each in self._spread:
            result, partition, _ = each
            if refusal := partition.refusal():
                result.low_watermark, result.error_code = _NO_WATERMARK, refusal
                continue
            result.low_watermark = partition.low_watermark
            if _is_under_way(each):
                result.error_code = ErrorCode.REQUEST_TIMED_OUT
        return self._response

    def drop(self) -> None:
        self._timer.cancel()
        for each in self._spread:
            each.partition.remove_watcher(self)
        self._on_end()


def _is_under_way(spreading: Spreading) -> bool:
    partition = spreading.partition
    return partition.refusal() is None and partition.low_watermark < spreading.before_offset


def _deleted(
    partition: Partition, index: int, offset: int, spread: list[Spreading]
) -> DeleteRecordsPartitionResult:
    before_offset = partition.log.high_watermark if offset == _HIGH_WATERMARK else offset
    start = partition.log.cutting.delete_records(before_offset)
    if not isinstance(start, int):
        return _refused(index, ErrorCode.OFFSET_OUT_OF_RANGE)
    partition.disturb_readers()
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.low_watermark)
    if result.low_watermark < before_offset:
        spread.append(Spreading(result, partition, before_offset))
    return result


def _refused(index: int, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_WATERMARK, error_code=error)
