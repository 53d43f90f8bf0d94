"""DescribeTopicPartitions 0: topics and their partitions, page by page, in the order of their names.

No topics in the request means all of them. A cursor says where a page begins; it must name a topic that was
asked for, unless all were. The last page has no next cursor.
"""

from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared import authorized_operations
from riverlog.broker.shared.cluster_view import ClusterView
from riverlog.controller import names
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

_NEWEST_METADATA: Final = 13


class DescribeTopicPartitionsHandler:
    def __init__(self, follower: MetadataFollower, *, partitions_max: int = 2000) -> None:
        """`partitions_max` is `max.request.partition.size.limit`."""
        self._follower = follower
        self._partitions_max = partitions_max

    def handle(
        self, request: DescribeTopicPartitionsRequest, context: RequestContext
    ) -> DescribeTopicPartitionsResponse:
        view = ClusterView(self._follower.image, context.listener_name)
        wanted = _wanted(request, view)
        if wanted is None:
            return DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(
                        name=topic.name, error_code=ErrorCode.INVALID_REQUEST
                    )
                    for topic in request.topics
                ]
            )
        room = max(1, min(request.response_partition_limit, self._partitions_max))
        return _page(request, wanted, view, room)


def _wanted(request: DescribeTopicPartitionsRequest, view: ClusterView) -> list[str] | None:
    """Names from the cursor on, in order; `None` when the cursor leads nowhere."""
    cursor = request.cursor
    start = "" if cursor is None else cursor.topic_name
    if cursor is not None and cursor.partition_index < 0:
        return None
    if not request.topics:
        return sorted(name for name in view.image.topics if name >= start)
    wanted = sorted({topic.name for topic in request.topics if topic.name >= start})
    if cursor is not None and (not wanted or wanted[0] != start):
        return None
    return wanted


def _page(
    request: DescribeTopicPartitionsRequest, wanted: list[str], view: ClusterView, room: int
) -> DescribeTopicPartitionsResponse:
    response = DescribeTopicPartitionsResponse()
    cursor = request.cursor
    for name in wanted:
        if room == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name)
            break
        topic = view.image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        end = min(len(topic.partitions), first + room)
        response.topics.append(_described(topic, range(first, end), view))
        room -= max(0, end - first)
        if end < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=end)
            break
    return response


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_legal = names.problem_with(name) is None
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )


def _described(topic: TopicImage, indexes: range, view: ClusterView) -> DescribeTopicPartitionsResponseTopic:
    answer = DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )
    for index in indexes:
        partition = topic.partitions[index]
        error, leader_id, replicas, isr, offline = view.partition(topic, index, _NEWEST_METADATA)
        answer.partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=error,
                partition_index=index,
                leader_id=leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=offline,
            )
        )
    return answer
