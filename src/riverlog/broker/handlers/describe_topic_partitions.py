"""DescribeTopicPartitions 0: topics and their partitions, page by page, in the order of their names.

No topics in the request means all of them. A cursor says where a page begins; it must name a topic that was
asked for, unless all were. The last page has no next cursor.
"""

from collections.abc import Iterator
from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import InPieces, at_once_if_short
from riverlog.broker.shared import authorized_operations
from riverlog.broker.shared.cluster_view import ClusterView
from riverlog.controller.decisions import names
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.model.pieces import Pieces, sorted_in_pieces
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
    ) -> DescribeTopicPartitionsResponse | InPieces[DescribeTopicPartitionsResponse]:
        view = ClusterView(self._follower.image, context.listener_name)
        room = max(1, min(request.response_partition_limit, self._partitions_max))
        pages = _page_in_pieces(request, view, room)
        topics = len(request.topics or view.image.topics)
        return at_once_if_short(pages, max(room, topics))


def _page_in_pieces(
    request: DescribeTopicPartitionsRequest, view: ClusterView, room: int
) -> Pieces[DescribeTopicPartitionsResponse]:
    """Of one image, whatever happens meanwhile."""
    response = DescribeTopicPartitionsResponse()
    wanted = yield from _wanted(request, view)
    if wanted is None:
        for topic in request.topics:
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(name=topic.name, error_code=ErrorCode.INVALID_REQUEST)
            )
            yield None
        return response
    cursor = request.cursor
    for name in wanted:
        if room == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name)
            break
        yield None
        found = view.image.topics.get(name)
        if found is None:
            response.topics.append(_missing(name))
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        end = min(len(found.partitions), first + room)
        response.topics.append((yield from _described(found, range(first, end), view)))
        room -= max(0, end - first)
        if end < len(found.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=end)
            break
    return response


def _wanted(request: DescribeTopicPartitionsRequest, view: ClusterView) -> Pieces[Iterator[str] | None]:
    """Names from the cursor on, in order; `None` when the cursor leads nowhere."""
    cursor = request.cursor
    start = "" if cursor is None else cursor.topic_name
    if cursor is not None and cursor.partition_index < 0:
        return None
    if not request.topics:
        return (yield from sorted_in_pieces(name for name in view.image.topics if name >= start))
    names_asked = set[str]()
    for topic in request.topics:
        if topic.name >= start:
            names_asked.add(topic.name)
        yield None
    if cursor is not None and start not in names_asked:
        return None
    return (yield from sorted_in_pieces(names_asked))


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_legal = names.problem_with(name) is None
    return DescribeTopicPartitionsResponseTopic(
        name=name,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )


def _described(
    topic: TopicImage, indexes: range, view: ClusterView
) -> Pieces[DescribeTopicPartitionsResponseTopic]:
    answer = DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )
    for index in indexes:
        yield None
        partition = topic.partitions[index]
        # A partition without a leader is no error here, in Apache Kafka either: all there is to know is told.
        _, leader_id, replicas, isr, offline = view.partition(topic, index, _NEWEST_METADATA)
        answer.partitions.append(
            DescribeTopicPartitionsResponsePartition(
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
