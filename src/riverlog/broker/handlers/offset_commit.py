"""OffsetCommit 2-10: remember how far a group has read.

Topics are named by id since 10. A partition that does not exist is refused by itself, before the coordinator
is asked; what the coordinator refuses is refused for all the others.
"""

from collections.abc import Awaitable

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.kinds import Claim
from riverlog.coordinator.groups.offsets.requests import NewOffset, Verdicts
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_IDS_SINCE = 10


class OffsetCommitHandler:
    def __init__(self, groups: GroupCoordinator, follower: MetadataFollower) -> None:
        self._groups = groups
        self._follower = follower

    def handle(
        self, request: OffsetCommitRequest, context: RequestContext
    ) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
        image = self._follower.image
        response = OffsetCommitResponse()
        wanted: list[NewOffset] = []
        pending: list[OffsetCommitResponsePartition] = []
        for topic in request.topics:
            name, error = _resolve(topic, image, context.version)
            answer = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            if topic.partitions:
                response.topics.append(answer)
            for partition in topic.partitions:
                reply = OffsetCommitResponsePartition(partition_index=partition.partition_index)
                answer.partitions.append(reply)
                if error is not ErrorCode.NONE:
                    reply.error_code = error
                elif image.partition(name, partition.partition_index) is None:
                    reply.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    pending.append(reply)
                    wanted.append(_new_offset(image.topics[name], partition, request.retention_time_ms))
        if not wanted:
            return response
        claim = Claim(
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            version=context.version,
        )

        def fill_in(verdicts: Verdicts | ErrorCode) -> OffsetCommitResponse:
            for at, reply in enumerate(pending):
                reply.error_code = verdicts if isinstance(verdicts, ErrorCode) else verdicts[at]
            return response

        group_id = request.group_id
        verdicts: ShardAnswer[Verdicts] = self._groups.run(
            group_id,
            lambda shard, token, now_ms: shard.offsets.decide_commit(token, group_id, claim, wanted, now_ms),
        )
        return when_answered(verdicts, fill_in)


def _resolve(topic: OffsetCommitRequestTopic, image: ClusterImage, version: int) -> tuple[str, ErrorCode]:
    if version < _IDS_SINCE:
        is_known = topic.name in image.topics
        return topic.name, ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    name = None if topic.topic_id is None else image.topic_names.get(topic.topic_id)
    return ("", ErrorCode.UNKNOWN_TOPIC_ID) if name is None else (name, ErrorCode.NONE)


def _new_offset(topic: TopicImage, partition: OffsetCommitRequestPartition, retention_ms: int) -> NewOffset:
    epoch = partition.committed_leader_epoch
    return NewOffset(
        TopicPartition(topic.name, partition.partition_index),
        partition.committed_offset,
        None if epoch < 0 else LeaderEpoch(epoch),
        partition.committed_metadata or "",
        topic.topic_id,
        None if retention_ms < 0 else retention_ms,
    )
