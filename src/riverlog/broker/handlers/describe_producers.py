"""DescribeProducers 0: the producers that replicas of this node know, leaders or not, and their open
transactions."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import InPieces, at_once_if_short
from riverlog.broker.shared.storage_failures import READ_FAILURES, error_for_client
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.pieces import Pieces
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.producers.state import ProducerEntry
from riverlog.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


class DescribeProducersHandler:
    def __init__(self, replicas: ReplicaSet, follower: MetadataFollower) -> None:
        self._replicas = replicas
        self._follower = follower

    def handle(
        self, request: DescribeProducersRequest, context: RequestContext
    ) -> DescribeProducersResponse | InPieces[DescribeProducersResponse]:
        count = sum([len(topic.partition_indexes) for topic in request.topics])
        return at_once_if_short(self._in_pieces(request), count)

    def _in_pieces(self, request: DescribeProducersRequest) -> Pieces[DescribeProducersResponse]:
        response = DescribeProducersResponse()
        for topic in request.topics:
            result = TopicResponse(name=topic.name)
            for index in topic.partition_indexes:
                result.partitions.append(self._describe(topic.name, index))
                yield None
            response.topics.append(result)
        return response

    def _describe(self, topic: str, index: int) -> PartitionResponse:
        partition = self._replicas.look(topic, index)
        error = partition if isinstance(partition, ErrorCode) else partition.copy_refusal()
        if error is not None or isinstance(partition, ErrorCode):
            message = None if topic in self._follower.image.topics else f"there is no topic {topic}"
            return PartitionResponse(
                partition_index=index, error_code=error or ErrorCode.NONE, error_message=message
            )
        try:
            producers = [_described(*each) for each in partition.log.producers]
        except READ_FAILURES as failure:
            return PartitionResponse(partition_index=index, error_code=error_for_client(failure))
        return PartitionResponse(partition_index=index, active_producers=producers)


def _described(producer_id: int, entry: ProducerEntry) -> ProducerState:
    first_offset = entry.transaction_first_offset
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp_ms,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=-1 if first_offset is None else first_offset,
    )
