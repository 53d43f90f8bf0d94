"""OffsetDelete 0: forget how far a group has read, for partitions that none of its members reads."""

from collections.abc import Awaitable

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.offsets.requests import Verdicts
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


class OffsetDeleteHandler:
    def __init__(self, groups: GroupCoordinator, follower: MetadataFollower) -> None:
        self._groups = groups
        self._follower = follower

    def handle(
        self, request: OffsetDeleteRequest, context: RequestContext
    ) -> OffsetDeleteResponse | Awaitable[OffsetDeleteResponse]:
        image = self._follower.image
        response = OffsetDeleteResponse()
        wanted: list[TopicPartition] = []
        pending: list[OffsetDeleteResponsePartition] = []
        for topic in request.topics:
            answer = OffsetDeleteResponseTopic(name=topic.name)
            if topic.partitions:
                response.topics.append(answer)
            for partition in topic.partitions:
                index = partition.partition_index
                reply = OffsetDeleteResponsePartition(partition_index=index)
                answer.partitions.append(reply)
                if image.partition(topic.name, index) is None:
                    reply.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    pending.append(reply)
                    wanted.append(TopicPartition(topic.name, index))
        if not request.group_id:
            return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)

        def fill_in(verdicts: Verdicts | ErrorCode) -> OffsetDeleteResponse:
            if isinstance(verdicts, ErrorCode):
                return OffsetDeleteResponse(error_code=verdicts)
            for reply, verdict in zip(pending, verdicts, strict=True):
                reply.error_code = verdict
            return response

        group_id = request.group_id
        verdicts: ShardAnswer[Verdicts] = self._groups.run(
            group_id, lambda shard, token, _: shard.offsets.decide_delete(token, group_id, wanted)
        )
        return when_answered(verdicts, fill_in)
