"""OffsetForLeaderEpoch 2-4: where a leader epoch ends, by which a client finds out that it has diverged."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces, at_once_if_short
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.model.pieces import Pieces
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.dissolving import dissolve
from riverlog.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


class OffsetForLeaderEpochHandler:
    def __init__(self, replicas: ReplicaSet) -> None:
        self._replicas = replicas

    def handle(
        self, request: OffsetForLeaderEpochRequest, context: RequestContext
    ) -> OffsetForLeaderEpochResponse | InPieces[OffsetForLeaderEpochResponse]:
        count = sum([len(topic.partitions) for topic in request.topics])
        return at_once_if_short(self._in_pieces(request), count)

    def _in_pieces(self, request: OffsetForLeaderEpochRequest) -> Pieces[OffsetForLeaderEpochResponse]:
        response = OffsetForLeaderEpochResponse()
        for topic in request.topics:
            result = OffsetForLeaderTopicResult(topic=topic.topic)
            for wanted in topic.partitions:
                result.partitions.append(self._look_up(topic.topic, wanted))
                yield None
            response.topics.append(result)
            if len(topic.partitions) > SHORT_ENTRIES_MAX:
                yield from dissolve(topic)
        return response

    def _look_up(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        partition = self._replicas.look(topic, wanted.partition)
        if isinstance(partition, ErrorCode):
            return EpochEndOffset(partition=wanted.partition, error_code=partition)
        refusal = partition.refusal(
            None if wanted.current_leader_epoch == -1 else wanted.current_leader_epoch
        )
        if refusal is not None:
            return EpochEndOffset(partition=wanted.partition, error_code=refusal)
        end = partition.log.end_offset_for_epoch(LeaderEpoch(wanted.leader_epoch))
        if end is None or wanted.leader_epoch == -1:
            return EpochEndOffset(partition=wanted.partition, error_code=ErrorCode.NONE)
        epoch, end_offset = end
        return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
