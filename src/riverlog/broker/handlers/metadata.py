"""Metadata 0-13: brokers, topics and who leads their partitions.

A null list of topics asks for all of them, as the empty one does in version 0; from 1 on the empty one asks
for none. Since 12 topics can be asked for by id, and then names in the same request are passed over. A topic
that is made because it was asked for is answered UNKNOWN_TOPIC_OR_PARTITION this once.
"""

from collections.abc import Awaitable, Iterable
from uuid import UUID

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared import authorized_operations
from riverlog.broker.shared.cluster_view import ClusterView
from riverlog.broker.shared.topic_making import TopicMaking
from riverlog.controller import names
from riverlog.controller.internal_topics import AutomaticTopics
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_IDS_SINCE = 12


class MetadataHandler:
    def __init__(
        self,
        follower: MetadataFollower,
        making: TopicMaking,
        automatic_topics: AutomaticTopics,
        *,
        auto_create: bool,
    ) -> None:
        self._follower = follower
        self._making = making
        self._automatic_topics = automatic_topics
        self._auto_create = auto_create

    def handle(
        self, request: MetadataRequest, context: RequestContext
    ) -> MetadataResponse | Awaitable[MetadataResponse]:
        if refusal := _refusal(request, context.version):
            return _refused(request, refusal)
        response = self._describe(request, context)
        if not (self._auto_create and request.allow_auto_topic_creation):
            return response
        missing = [
            topic.name
            for topic in response.topics
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None
        ]
        return self._create(missing, response) if missing else response

    async def _create(self, missing: list[str], response: MetadataResponse) -> MetadataResponse:
        # The result is seen by the next request; Kafka does not wait for it either.
        await self._making.make([self._automatic_topics.new_topic(name) for name in missing])
        return response

    def _describe(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse:
        view = ClusterView(self._follower.image, context.listener_name)
        response = MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=broker.node_id, host=address.host, port=address.port, rack=broker.rack
                )
                for broker, address in view.brokers()
            ],
            cluster_id=view.image.cluster_id,
            controller_id=view.controller_id(),
            topics=_topics(request, view, context.version),
        )
        if request.include_cluster_authorized_operations:
            response.cluster_authorized_operations = authorized_operations.ON_CLUSTER
        if request.include_topic_authorized_operations:
            for topic in response.topics:
                if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                    topic.topic_authorized_operations = authorized_operations.ON_TOPIC
        return response


def _refusal(request: MetadataRequest, version: int) -> ErrorCode | None:
    """Topics named in ways the version does not allow. Kafka trips over a missing name; so do we."""
    topics = request.topics or []
    if version < _IDS_SINCE:
        odd = any(topic.name is None or topic.topic_id is not None for topic in topics)
        return ErrorCode.INVALID_REQUEST if odd else None
    is_by_id = any(topic.topic_id is not None for topic in topics)
    if not is_by_id and any(topic.name is None for topic in topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _refused(request: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or []
        ],
        error_code=error,
    )


def _topics(request: MetadataRequest, view: ClusterView, version: int) -> list[MetadataResponseTopic]:
    if request.topics is None or (version == 0 and not request.topics):
        return [_known(topic, view, version) for topic in view.image.topics.values()]
    ids = dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id is not None)
    if ids:
        return _by_id(ids, view, version)
    return _by_name(dict.fromkeys(topic.name or "" for topic in request.topics), view, version)


def _by_name(wanted: Iterable[str], view: ClusterView, version: int) -> list[MetadataResponseTopic]:
    """Topics that there are come first."""
    known: list[MetadataResponseTopic] = []
    missing: list[MetadataResponseTopic] = []
    for name in wanted:
        topic = view.image.topics.get(name)
        if topic is not None:
            known.append(_known(topic, view, version))
            continue
        is_legal = names.problem_with(name) is None
        missing.append(
            MetadataResponseTopic(
                error_code=(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
                ),
                name=name,
                is_internal=name in INTERNAL_TOPICS,
            )
        )
    return known + missing


def _by_id(wanted: Iterable[UUID], view: ClusterView, version: int) -> list[MetadataResponseTopic]:
    known: list[MetadataResponseTopic] = []
    missing: list[MetadataResponseTopic] = []
    for topic_id in wanted:
        topic = view.image.topic_by_id(topic_id)
        if topic is not None:
            known.append(_known(topic, view, version))
        else:
            missing.append(
                MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            )
    return known + missing


def _known(topic: TopicImage, view: ClusterView, version: int) -> MetadataResponseTopic:
    partitions: list[MetadataResponsePartition] = []
    for index, partition in enumerate(topic.partitions):
        error, leader_id, replicas, isr, offline = view.partition(topic, index, version)
        partitions.append(
            MetadataResponsePartition(
                error_code=error,
                partition_index=index,
                leader_id=leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                offline_replicas=offline,
            )
        )
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )
