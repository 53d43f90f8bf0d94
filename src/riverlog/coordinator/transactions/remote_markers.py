"""Markers in partitions that other brokers lead (WriteTxnMarkers), and the writer for all partitions.

What this node leads is written at once, as if there were no other broker. For the rest the broker that leads
the partition now is asked; whoever has a marker written asks here again when it could not be, and the leader
is looked up anew. A broker that does not know the topic may not have heard of it yet: only a topic that this
node does not know either is gone.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from riverlog.coordinator.transactions.batched_requests import AskPeer, BatchedRequests
from riverlog.coordinator.transactions.markers import Marker, MarkerWriter, MarkerWritten
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

MARKERS_AT_ONCE: Final = 2_000

_NOT_KNOWN_THERE: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class WantedMarker(NamedTuple):
    partition: TopicPartition
    marker: Marker


class ClusterMarkerWriter:
    def __init__(
        self, local: MarkerWriter, ask: AskPeer, image: Callable[[], ClusterImage], node_id: NodeId
    ) -> None:
        self._local = local
        self._remote: BatchedRequests[WantedMarker, ErrorCode | None] = BatchedRequests(ask, MarkerDialect())
        self._image = image
        self._node_id = node_id

    def write(self, partition: TopicPartition, marker: Marker, *, may_be_written: bool) -> MarkerWritten:
        """At another broker it is always looked whether the marker stands already."""
        written = self._local.write(partition, marker, may_be_written=may_be_written)
        if not (written.done() and written.result() is ErrorCode.NOT_LEADER_OR_FOLLOWER):
            return written
        found = self._image().partition(*partition)
        leader = None if found is None else found.leader
        if leader is None or leader == self._node_id:
            return written
        return self._remote.put(leader, WantedMarker(partition, marker))


class MarkerDialect:
    """In one request a producer has one marker, since the response names producers without their epochs."""

    key = ApiKey.WRITE_TXN_MARKERS
    unanswered: ErrorCode | None = ErrorCode.NETWORK_EXCEPTION

    def take(self, waiting: "deque[WantedMarker]") -> Sequence[WantedMarker]:
        taken: list[WantedMarker] = []
        left: list[WantedMarker] = []
        markers: dict[int, Marker] = {}
        while waiting and len(taken) < MARKERS_AT_ONCE:
            each = waiting.popleft()
            is_first = markers.setdefault(each.marker.producer.producer_id, each.marker) == each.marker
            (taken if is_first else left).append(each)
        waiting.extendleft(reversed(left))
        return taken

    def request(self, questions: Sequence[WantedMarker]) -> WriteTxnMarkersRequest:
        topics: dict[Marker, dict[str, list[int]]] = {}
        for partition, marker in questions:
            indexes = topics.setdefault(marker, {}).setdefault(partition.topic, [])
            indexes.append(partition.partition)
        return WriteTxnMarkersRequest(
            markers=[
                WritableTxnMarker(
                    producer_id=marker.producer.producer_id,
                    producer_epoch=marker.producer.producer_epoch,
                    transaction_result=marker.commit,
                    topics=[
                        WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
                        for topic, indexes in by_topic.items()
                    ],
                    coordinator_epoch=marker.coordinator_epoch,
                    transaction_version=marker.client_version,
                )
                for marker, by_topic in topics.items()
            ]
        )

    def answers(
        self, questions: Iterable[WantedMarker], response: WriteTxnMarkersResponse
    ) -> Mapping[WantedMarker, ErrorCode | None]:
        told = {
            (result.producer_id, topic.name, each.partition_index): ErrorCode.of(each.error_code)
            for result in response.markers
            for topic in result.topics
            for each in topic.partitions
        }
        answers: dict[WantedMarker, ErrorCode | None] = {}
        for each in questions:
            error = told.get((each.marker.producer.producer_id, *each.partition))
            if error is not None:
                answers[each] = _error_here(error)
        return answers


def _error_here(error: ErrorCode) -> ErrorCode | None:
    """A topic that is not known there is looked for again, here."""
    if error is ErrorCode.NONE:
        return None
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _NOT_KNOWN_THERE else error
