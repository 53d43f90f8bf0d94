"""ListOffsets 1-11: the first, last or newest offset of a partition, or the first at or after a time.

Special timestamps belong to versions: the newest record since 7, the earliest local offset since 8, the last
tiered one since 9, the earliest to be tiered since 11; an older request with one of them, or any other
negative number, is answered UNSUPPORTED_VERSION. A new leader that does not know yet how much of its log is
committed says so, rather than name an end before the one that was told (KIP-207). A replica is told where the
log itself ends, committed or not: it has to find its place in it before anything can be committed. Nothing is
tiered: local is everything, tiered nothing.
"""

from collections import Counter, deque
from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces
from riverlog.broker.shared.storage_failures import READ_FAILURES, error_for_client
from riverlog.model.errors import ErrorCode
from riverlog.model.pieces import Pieces
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import RoleHolder
from riverlog.storage.log.closed_log import ClosedState
from riverlog.storage.log.state import LogState
from riverlog.wire.codec import encoded_element
from riverlog.wire.dissolving import dissolve
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

_LATEST: Final = -1
_EARLIEST: Final = -2
_MAX_TIMESTAMP: Final = -3
_EARLIEST_LOCAL: Final = -4
_LATEST_TIERED: Final = -5
_EARLIEST_PENDING_UPLOAD: Final = -6
_SINCE_VERSION: Final = {
    _LATEST: 0,
    _EARLIEST: 0,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_KNOWN_AT_ONCE: Final = (_EARLIEST, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD)
_NOT_YET: Final = ErrorCode.OFFSET_NOT_AVAILABLE
_NOT_YET_SINCE: Final = 5
_NEVER: Final = 1 << 15
_NO_EPOCH: Final = -1
_CONSUMER: Final = -1
_DEBUGGING: Final = -2
"""The replica id of who wants to know of this broker's copy, be it the leader's or not."""
_READ_COMMITTED: Final = 1
_ISOLATION_LEVELS: Final = (0, _READ_COMMITTED)


class ListOffsetsHandler:
    def __init__(self, replicas: ReplicaSet) -> None:
        self._replicas = replicas

    def handle(
        self, request: ListOffsetsRequest, context: RequestContext
    ) -> ListOffsetsResponse | InPieces[ListOffsetsResponse]:
        room = SHORT_ENTRIES_MAX
        for topic in request.topics:
            room -= len(topic.partitions)
        if room < 0:
            return InPieces(self._in_pieces(request, context.version))
        response = ListOffsetsResponse()
        for topic in request.topics:
            answer = ListOffsetsTopicResponse(name=topic.name)
            asked = {each.partition_index: each for each in topic.partitions}
            repeated = _repeated(topic) if len(asked) < len(topic.partitions) else ()
            for index, wanted in asked.items():
                if index in repeated:
                    reply = _error(index, ErrorCode.INVALID_REQUEST)
                else:
                    reply = self._look_up(topic.name, wanted, request, context.version)
                answer.partitions.append(reply)
            if answer.partitions:
                response.topics.append(answer)
        return response

    def _in_pieces(self, request: ListOffsetsRequest, version: int) -> Pieces[ListOffsetsResponse]:
        """The same, with each topic encoded when it is done, so that little is kept."""
        response = ListOffsetsResponse()
        left = deque(request.topics)
        request.topics = []
        while left:
            topic = left.popleft()
            answer = ListOffsetsTopicResponse(name=topic.name)
            asked: dict[int, ListOffsetsPartition] = {}
            repeated: set[int] = set()
            for each in topic.partitions:
                if each.partition_index in asked:
                    repeated.add(each.partition_index)
                asked[each.partition_index] = each
                yield None
            yield from dissolve(topic)
            for index in list(asked):
                wanted = asked.pop(index)
                if index in repeated:
                    answer.partitions.append(_error(index, ErrorCode.INVALID_REQUEST))
                else:
                    answer.partitions.append(self._look_up(topic.name, wanted, request, version))
                yield None
            if answer.partitions:
                response.topics.append((yield from encoded_element(answer, version)))
                yield from dissolve(answer)
        return response

    def _look_up(
        self, topic: str, wanted: ListOffsetsPartition, request: ListOffsetsRequest, version: int
    ) -> ListOffsetsPartitionResponse:
        index = wanted.partition_index
        if wanted.timestamp < 0 and version < _SINCE_VERSION.get(wanted.timestamp, _NEVER):
            return _error(index, ErrorCode.UNSUPPORTED_VERSION)
        partition = self._replicas.look(topic, index)
        if not isinstance(partition, RoleHolder):
            return _error(index, partition)
        epoch = None if wanted.current_leader_epoch == _NO_EPOCH else wanted.current_leader_epoch
        is_of_copy = request.replica_id == _DEBUGGING
        refusal = partition.copy_refusal(epoch) if is_of_copy else partition.refusal(epoch)
        if refusal is None and request.isolation_level not in _ISOLATION_LEVELS:
            refusal = ErrorCode.UNKNOWN_SERVER_ERROR
        if refusal is not None:
            return _error(index, refusal)
        if request.replica_id != _CONSUMER and wanted.timestamp == _LATEST:
            return _log_end(index, partition)
        try:
            reply = _answer(index, partition, wanted.timestamp, request.isolation_level == _READ_COMMITTED)
        except READ_FAILURES as failure:
            return _error(index, error_for_client(failure))
        state = partition.log.state
        if (
            # No epoch begins behind the end of the log, which is where the high watermark mostly is.
            state.high_watermark == state.log_end_offset
            or wanted.timestamp in _KNOWN_AT_ONCE
            or reply.timestamp >= 0
            or not _may_go_back(state)
        ):
            return reply
        return _error(index, _NOT_YET if version >= _NOT_YET_SINCE else ErrorCode.LEADER_NOT_AVAILABLE)


def _may_go_back(state: LogState | ClosedState) -> bool:
    """Whether a leader before this one may have told a later end (KIP-207): until the high watermark has
    reached what this one found in its log, it does not know how much of that was committed."""
    return state.high_watermark < state.epochs.latest_start


def _repeated(topic: ListOffsetsTopic) -> set[int]:
    times_asked = Counter(partition.partition_index for partition in topic.partitions)
    return {index for index, times in times_asked.items() if times > 1}


def _answer(
    index: int, partition: Partition | IdlePartition, timestamp_ms: int, is_read_committed: bool
) -> ListOffsetsPartitionResponse:
    log, state = partition.log, partition.log.state
    end = state.last_stable_offset if is_read_committed else state.high_watermark
    if timestamp_ms == _LATEST:
        return ListOffsetsPartitionResponse(
            partition_index=index, offset=end, leader_epoch=_or_none(state.epochs.latest)
        )
    if timestamp_ms in (_EARLIEST, _EARLIEST_LOCAL):
        start = state.log_start_offset
        return ListOffsetsPartitionResponse(
            partition_index=index, offset=start, leader_epoch=_or_none(log.leader_epoch_for(start))
        )
    if timestamp_ms in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return ListOffsetsPartitionResponse(partition_index=index)
    found = log.max_timestamp() if timestamp_ms == _MAX_TIMESTAMP else log.offset_for_timestamp(timestamp_ms)
    if found is None:
        return ListOffsetsPartitionResponse(partition_index=index)
    found_ms, offset, epoch = found
    if offset >= end and timestamp_ms != _MAX_TIMESTAMP:
        return ListOffsetsPartitionResponse(partition_index=index)
    return ListOffsetsPartitionResponse(
        partition_index=index, timestamp=found_ms, offset=offset, leader_epoch=_or_none(epoch)
    )


def _log_end(index: int, partition: Partition | IdlePartition) -> ListOffsetsPartitionResponse:
    state = partition.log.state
    return ListOffsetsPartitionResponse(
        partition_index=index, offset=state.log_end_offset, leader_epoch=_or_none(state.epochs.latest)
    )


def _or_none(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def _error(index: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=error)
