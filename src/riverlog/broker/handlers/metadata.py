"""Metadata 0-13: brokers, topics and who leads their partitions.

A null list of topics asks for all of them, as the empty one does in version 0; from 1 on the empty one asks
for none. Since 12 topics can be asked for by id, and then names in the same request are passed over. A topic
that is made because it was asked for is answered UNKNOWN_TOPIC_OR_PARTITION this once. Where many partitions
are asked for, topics that have not changed are told as they were encoded before.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar
from uuid import UUID

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces
from riverlog.broker.shared import authorized_operations
from riverlog.broker.shared.cluster_view import ClusterView
from riverlog.broker.shared.encoded_topics import EncodedTopics, Form
from riverlog.broker.shared.topic_making import TopicMaking
from riverlog.controller.decisions import names
from riverlog.controller.internal_topics import AutomaticTopics
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage, PartitionImage, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import INTERNAL_TOPICS
from riverlog.model.pieces import Pieces, at_once
from riverlog.wire.codec import encoded_element
from riverlog.wire.dissolving import dissolve
from riverlog.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

W = TypeVar("W")

_IDS_SINCE = 12
_PARTITIONS_IN_PIECE = 32


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
        self._encoded = EncodedTopics()

    def handle(
        self, request: MetadataRequest, context: RequestContext
    ) -> MetadataResponse | InPieces[MetadataResponse] | Awaitable[MetadataResponse]:
        if request.topics is not None and len(request.topics) > SHORT_ENTRIES_MAX:
            return InPieces(self._in_pieces(request, context))
        if refusal := _refusal(request, context.version):
            return _refused(request, refusal)
        response = self._describe(request, context)
        if response is None:
            return InPieces(self._in_pieces(request, context))
        if not (self._auto_create and request.allow_auto_topic_creation):
            return response
        missing = _to_create(response.topics)
        return self._create(missing, response) if missing else response

    async def _create(self, missing: list[str], response: MetadataResponse) -> MetadataResponse:
        # The result is seen by the next request; Kafka does not wait for it either.
        await self._making.make([self._automatic_topics.new_topic(name) for name in missing])
        return response

    def _in_pieces(self, request: MetadataRequest, context: RequestContext) -> Pieces[MetadataResponse]:
        """Of one image, whatever happens meanwhile."""
        version = context.version
        view = ClusterView(self._follower.image, context.listener_name)
        if refusal := _refusal(request, version):
            return (yield from _refused_in_pieces(request, refusal))
        yield None
        known, missing = yield from _wanted(request, view.image, version)
        response = _about_cluster(request, view)
        shows_operations = request.include_topic_authorized_operations
        form = Form(version, frozenset(view.reachable), frozenset(view.image.brokers), shows_operations)
        for topic in known:
            is_kept = not view.has_failed(topic)
            encoded = self._encoded.get(topic, form) if is_kept else None
            if encoded is None:
                described = yield from _known_in_pieces(topic, view, version)
                if shows_operations:
                    described.topic_authorized_operations = authorized_operations.ON_TOPIC
                encoded = yield from encoded_element(described, version)
                if is_kept:
                    self._encoded.keep(topic, form, encoded)
                yield from dissolve(described)
            response.topics.append(encoded)
            yield None
        for absent in missing:
            if shows_operations and absent.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                absent.topic_authorized_operations = authorized_operations.ON_TOPIC
        response.topics += missing
        if self._auto_create and request.allow_auto_topic_creation:
            names_missing = _to_create(missing)
            if names_missing:
                yield self._create(names_missing, response)
        return response

    def _describe(self, request: MetadataRequest, context: RequestContext) -> MetadataResponse | None:
        """None where there is more to tell than can be told at once."""
        view = ClusterView(self._follower.image, context.listener_name)
        topics = _topics(request, view, context.version)
        if topics is None:
            return None
        response = _about_cluster(request, view)
        response.topics = topics
        if request.include_topic_authorized_operations:
            for topic in response.topics:
                if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:
                    topic.topic_authorized_operations = authorized_operations.ON_TOPIC
        return response


def _about_cluster(request: MetadataRequest, view: ClusterView) -> MetadataResponse:
    """All but the topics."""
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.node_id, host=address.host, port=address.port, rack=broker.rack
            )
            for broker, address in view.brokers()
        ],
        cluster_id=view.image.cluster_id,
        controller_id=view.controller_id(),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = authorized_operations.ON_CLUSTER
    return response


def _to_create(topics: list[MetadataResponseTopic]) -> list[str]:
    return [
        topic.name
        for topic in topics
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name is not None
    ]


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
    return at_once(_refused_in_pieces(request, error))


def _refused_in_pieces(request: MetadataRequest, error: ErrorCode) -> Pieces[MetadataResponse]:
    response = MetadataResponse(error_code=error)
    for topic in request.topics or ():
        response.topics.append(
            MetadataResponseTopic(error_code=error, name=topic.name or "", topic_id=topic.topic_id)
        )
        yield None
    return response


def _topics(request: MetadataRequest, view: ClusterView, version: int) -> list[MetadataResponseTopic] | None:
    """None where they have too many partitions for one piece."""
    topics = view.image.topics
    if request.topics is None or (version == 0 and not request.topics):
        if len(topics) > SHORT_ENTRIES_MAX:
            return None
        return _listed(topics, topics.get, _no_such_name, view, version)
    ids = dict.fromkeys(topic.topic_id for topic in request.topics if topic.topic_id is not None)
    if ids:
        return _listed(ids, view.image.topic_by_id, _no_such_id, view, version)
    wanted = dict.fromkeys(topic.name or "" for topic in request.topics)
    return _listed(wanted, topics.get, _no_such_name, view, version)


def _listed(
    wanted: Iterable[W],
    find: Callable[[W], TopicImage | None],
    no_such: Callable[[W], MetadataResponseTopic],
    view: ClusterView,
    version: int,
) -> list[MetadataResponseTopic] | None:
    """Topics that there are come first."""
    known: list[MetadataResponseTopic] = []
    missing: list[MetadataResponseTopic] = []
    room = SHORT_ENTRIES_MAX
    for each in wanted:
        topic = find(each)
        if topic is not None:
            room -= len(topic.partitions)
            if room < 0:
                return None
            known.append(_known(topic, view, version))
        else:
            missing.append(no_such(each))
    return known + missing


def _wanted(
    request: MetadataRequest, image: ClusterImage, version: int
) -> Pieces[tuple[list[TopicImage], list[MetadataResponseTopic]]]:
    """What there is of the topics that are asked for, and what is told of the others."""
    if request.topics is None or (version == 0 and not request.topics):
        return list(image.topics.values()), []
    known: dict[UUID | str, TopicImage] = {}
    missing: dict[UUID | str, MetadataResponseTopic] = {}
    is_by_id = any(topic.topic_id is not None for topic in request.topics)
    for asked in request.topics:
        yield None
        if asked.topic_id is not None:
            if (topic := image.topic_by_id(asked.topic_id)) is not None:
                known[asked.topic_id] = topic
            else:
                missing[asked.topic_id] = _no_such_id(asked.topic_id)
        elif not is_by_id:
            name = asked.name or ""
            if (topic := image.topics.get(name)) is not None:
                known[name] = topic
            else:
                missing[name] = _no_such_name(name)
    return list(known.values()), list(missing.values())


def _no_such_name(name: str) -> MetadataResponseTopic:
    is_legal = names.problem_with(name) is None
    return MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
    )


def _no_such_id(topic_id: UUID) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)


def _known(topic: TopicImage, view: ClusterView, version: int) -> MetadataResponseTopic:
    return _described(topic, _partitions(topic, topic.partitions, 0, view, version))


def _known_in_pieces(topic: TopicImage, view: ClusterView, version: int) -> Pieces[MetadataResponseTopic]:
    partitions: list[MetadataResponsePartition] = []
    for start in range(0, len(topic.partitions), _PARTITIONS_IN_PIECE):
        some = topic.partitions[start : start + _PARTITIONS_IN_PIECE]
        partitions += _partitions(topic, some, start, view, version)
        yield None
    return _described(topic, partitions)


def _partitions(
    topic: TopicImage, images: Iterable[PartitionImage], first_index: int, view: ClusterView, version: int
) -> list[MetadataResponsePartition]:
    partitions: list[MetadataResponsePartition] = []
    for index, partition in enumerate(images, first_index):
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
    return partitions


def _described(topic: TopicImage, partitions: list[MetadataResponsePartition]) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
    )
