"""OffsetFetch 1-10: how far a group has read.

A null list of topics (since 2) asks for all of them. Several groups in one request since 8, in the name of a
member since 9, topics by id since 10. `require_stable` (since 7) refuses partitions for which a transaction
is about to commit another offset.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple
from uuid import UUID

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.offsets.requests import FoundOffset, FoundOffsets
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_GROUPS_SINCE, _IDS_SINCE = 8, 10
_GROUP_ERROR_SINCE = 2
_NO_OFFSET = -1

WantedOffsets = Sequence[tuple[str, Sequence[int]]]


class OffsetFetchHandler:
    def __init__(self, groups: GroupCoordinator, follower: MetadataFollower) -> None:
        self._groups = groups
        self._follower = follower

    def handle(
        self, request: OffsetFetchRequest, context: RequestContext
    ) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
        if context.version < _GROUPS_SINCE:
            return self._fetch_one(request, context.version)
        asked = [self._ask(group, request.require_stable, context.version) for group in request.groups]
        if all(each.found.done() for each in asked):
            return self._of_groups(asked, context.version)
        return self._of_groups_later(asked, context.version)

    def _fetch_one(
        self, request: OffsetFetchRequest, version: int
    ) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
        wanted: WantedOffsets | None = None
        if request.topics is not None:
            wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
        group_id, require_stable = request.group_id, request.require_stable
        found = self._groups.ask(
            group_id, lambda shard: shard.offsets.fetch(group_id, wanted, require_stable=require_stable)
        )
        return when_answered(found, lambda answer: _of_one(answer, wanted or (), version))

    def _ask(self, group: OffsetFetchRequestGroup, require_stable: bool, version: int) -> "_Asked":
        image = self._follower.image
        wanted: list[tuple[str, Sequence[int]]] | None = None
        unknown: list[tuple[UUID | None, Sequence[int]]] = []
        if group.topics is not None:
            wanted = []
            for topic in group.topics:
                name = topic.name if version < _IDS_SINCE else image.topic_names.get(topic.topic_id or _NIL)
                if name is None:
                    unknown.append((topic.topic_id, topic.partition_indexes))
                else:
                    wanted.append((name, topic.partition_indexes))
        found = self._groups.ask(
            group.group_id,
            lambda shard: shard.offsets.fetch(
                group.group_id,
                wanted,
                member_id=group.member_id,
                member_epoch=group.member_epoch,
                require_stable=require_stable,
            ),
        )
        return _Asked(group.group_id, found, unknown)

    def _of_groups(self, asked: "Sequence[_Asked]", version: int) -> OffsetFetchResponse:
        image = self._follower.image
        return OffsetFetchResponse(groups=[_of_group(each, image, version) for each in asked])

    async def _of_groups_later(self, asked: "Sequence[_Asked]", version: int) -> OffsetFetchResponse:
        await asyncio.wait([each.found for each in asked])
        return self._of_groups(asked, version)


_NIL = UUID(int=0)


class _Asked(NamedTuple):
    group_id: str
    found: "asyncio.Future[FoundOffsets | ErrorCode]"
    unknown: Sequence[tuple[UUID | None, Sequence[int]]]
    """Topics of which only an id is known, and nothing by that id."""


def _of_one(found: FoundOffsets | ErrorCode, wanted: WantedOffsets, version: int) -> OffsetFetchResponse:
    error = ErrorCode.NONE
    if isinstance(found, ErrorCode):
        if version >= _GROUP_ERROR_SINCE:
            return OffsetFetchResponse(error_code=found)
        error, found = found, [(topic, [FoundOffset(each) for each in indexes]) for topic, indexes in wanted]
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=each.partition,
                        committed_offset=_NO_OFFSET if each.offset is None else each.offset,
                        committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
                        metadata=each.metadata,
                        error_code=error or each.error,
                    )
                    for each in partitions
                ],
            )
            for topic, partitions in found
        ]
    )


def _of_group(asked: _Asked, image: ClusterImage, version: int) -> OffsetFetchResponseGroup:
    found = asked.found.result()
    if isinstance(found, ErrorCode):
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=found)
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    for topic, partitions in found:
        topic_id = None
        if version >= _IDS_SINCE:
            known = image.topics.get(topic)
            if known is None:
                continue  # A topic that is gone has no id by which it could be told.
            topic_id = known.topic_id
        response.topics.append(
            OffsetFetchResponseTopics(
                name=topic, topic_id=topic_id, partitions=[_of_partition(each) for each in partitions]
            )
        )
    for topic_id, indexes in asked.unknown:
        refused = [FoundOffset(index, error=ErrorCode.UNKNOWN_TOPIC_ID) for index in indexes]
        response.topics.append(
            OffsetFetchResponseTopics(topic_id=topic_id, partitions=[_of_partition(each) for each in refused])
        )
    return response


def _of_partition(found: FoundOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=found.partition,
        committed_offset=_NO_OFFSET if found.offset is None else found.offset,
        committed_leader_epoch=-1 if found.leader_epoch is None else found.leader_epoch,
        metadata=found.metadata,
        error_code=found.error,
    )
