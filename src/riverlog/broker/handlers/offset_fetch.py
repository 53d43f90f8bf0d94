"""OffsetFetch 1-10: how far a group has read.

A null list of topics (since 2) asks for all of them. Several groups in one request since 8, in the name of a
member since 9, topics by id since 10. `require_stable` (since 7) refuses partitions for which a transaction
is about to commit another offset.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.offsets.copies import OffsetsCopy
from riverlog.coordinator.groups.offsets.requests import FoundOffset, FoundOffsets
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.pieces import Pieces
from riverlog.wire.codec import encoded_element
from riverlog.wire.dissolving import dissolve
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
_GROUPS_IN_PIECE = 32

WantedOffsets = Sequence[tuple[str, Sequence[int]]]


class OffsetFetchHandler:
    def __init__(self, groups: GroupCoordinator, follower: MetadataFollower) -> None:
        self._groups = groups
        self._follower = follower

    def handle(
        self, request: OffsetFetchRequest, context: RequestContext
    ) -> OffsetFetchResponse | InPieces[OffsetFetchResponse]:
        version = context.version
        if version < _GROUPS_SINCE:
            return self._fetch_one(request, version)
        count = len(request.groups)
        if count > SHORT_ENTRIES_MAX:
            return InPieces(self._many_in_pieces(request, version))
        at_once_max = SHORT_ENTRIES_MAX // max(count, 1)
        asked = [self._ask(each, request.require_stable, version, at_once_max) for each in request.groups]
        if not all(_is_short(each.found) for each in asked):
            return InPieces(self._groups_in_pieces(asked, version), is_large=_is_any_large(asked))
        image = self._follower.image
        return OffsetFetchResponse(groups=[_of_group(each, image, version) for each in asked])

    def _fetch_one(
        self, request: OffsetFetchRequest, version: int
    ) -> OffsetFetchResponse | InPieces[OffsetFetchResponse]:
        wanted: WantedOffsets | None = None
        if request.topics is not None:
            wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
        group_id, require_stable = request.group_id, request.require_stable
        found = self._groups.ask(
            group_id,
            lambda shard: shard.offsets.fetch_or_copy(
                group_id, wanted, at_once_max=SHORT_ENTRIES_MAX, require_stable=require_stable
            ),
        )
        if not _is_short(found):
            return InPieces(_one_in_pieces(found, wanted or (), version), is_large=found.done())
        return _of_one(_short(found), wanted or (), version)

    def _ask(
        self, group: OffsetFetchRequestGroup, require_stable: bool, version: int, at_once_max: int
    ) -> "_Asked":
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
            lambda shard: shard.offsets.fetch_or_copy(
                group.group_id,
                wanted,
                at_once_max=at_once_max,
                member_id=group.member_id,
                member_epoch=group.member_epoch,
                require_stable=require_stable,
            ),
        )
        return _Asked(group.group_id, found, unknown)

    def _many_in_pieces(self, request: OffsetFetchRequest, version: int) -> Pieces[OffsetFetchResponse]:
        response = OffsetFetchResponse()
        groups, request.groups = request.groups, []
        for start in range(0, len(groups), _GROUPS_IN_PIECE):
            asked: list[_Asked] = []
            for group in groups[start : start + _GROUPS_IN_PIECE]:
                asked.append(self._ask(group, request.require_stable, version, at_once_max=10))
                yield None
            more = yield from self._groups_in_pieces(asked, version)
            response.groups += more.groups
        return response

    def _groups_in_pieces(self, asked: "Sequence[_Asked]", version: int) -> Pieces[OffsetFetchResponse]:
        waits_for = [each.found for each in asked if not each.found.done()]
        if waits_for:
            yield asyncio.wait(waits_for)
        response, image = OffsetFetchResponse(), self._follower.image
        for each in asked:
            if isinstance(found := each.found.result(), OffsetsCopy):
                told = yield from _copy_in_pieces(found, each, image, version)
            else:
                told = _of_group(each, image, version)
            response.groups.append((yield from encoded_element(told, version)))
            yield None
        return response


Found = FoundOffsets | OffsetsCopy | ErrorCode


def _is_short(found: "asyncio.Future[Found]") -> bool:
    """Whether it is there, and can be told at once."""
    return found.done() and not isinstance(found.result(), OffsetsCopy)


def _is_any_large(asked: "Sequence[_Asked]") -> bool:
    """Otherwise there is only something to wait for."""
    return any(each.found.done() and not _is_short(each.found) for each in asked)


def _short(found: "asyncio.Future[Found]") -> FoundOffsets | ErrorCode:
    result = found.result()
    assert not isinstance(result, OffsetsCopy)
    return result


_NIL = UUID(int=0)


class _Asked(NamedTuple):
    group_id: str
    found: "asyncio.Future[Found]"
    unknown: Sequence[tuple[UUID | None, Sequence[int]]]
    """Topics of which only an id is known, and nothing by that id."""


def _one_in_pieces(
    found: "asyncio.Future[Found]", wanted: WantedOffsets, version: int
) -> Pieces[OffsetFetchResponse]:
    if not found.done():
        yield found
    copy = found.result()
    if not isinstance(copy, OffsetsCopy):
        if not isinstance(copy, ErrorCode) or version >= _GROUP_ERROR_SINCE:
            return _of_one(copy, wanted, version)
        refused = [(topic, map(FoundOffset, indexes)) for topic, indexes in wanted]
        return (yield from _topics_in_pieces(refused, version, copy))
    return (yield from _topics_in_pieces(copy.found(), version))


def _topics_in_pieces(
    found: Iterable[tuple[str, Iterable[FoundOffset]]], version: int, error: ErrorCode = ErrorCode.NONE
) -> Pieces[OffsetFetchResponse]:
    response = OffsetFetchResponse()
    for topic, partitions in found:
        told = OffsetFetchResponseTopic(name=topic)
        for each in partitions:
            told.partitions.append(_of_one_partition(each, error))
            yield None
        response.topics.append((yield from encoded_element(told, version)))
        yield from dissolve(told)
    return response


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
                partitions=[_of_one_partition(each, error) for each in partitions],
            )
            for topic, partitions in found
        ]
    )


def _of_one_partition(found: FoundOffset, error: ErrorCode) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=found.partition,
        committed_offset=_NO_OFFSET if found.offset is None else found.offset,
        committed_leader_epoch=-1 if found.leader_epoch is None else found.leader_epoch,
        metadata=found.metadata,
        error_code=error or found.error,
    )


def _of_group(asked: _Asked, image: ClusterImage, version: int) -> OffsetFetchResponseGroup:
    found = _short(asked.found)
    if isinstance(found, ErrorCode):
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=found)
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    for topic, partitions in found:
        told = _topic(topic, image, version)
        if told is not None:
            told.partitions = [_of_partition(each) for each in partitions]
            response.topics.append(told)
    for topic_id, indexes in asked.unknown:
        refused = [FoundOffset(index, error=ErrorCode.UNKNOWN_TOPIC_ID) for index in indexes]
        response.topics.append(
            OffsetFetchResponseTopics(topic_id=topic_id, partitions=[_of_partition(each) for each in refused])
        )
    return response


def _copy_in_pieces(
    copy: OffsetsCopy, asked: _Asked, image: ClusterImage, version: int
) -> Pieces[OffsetFetchResponseGroup]:
    response = OffsetFetchResponseGroup(group_id=asked.group_id)
    for topic, partitions in copy.found():
        told = _topic(topic, image, version)
        if told is None:
            continue
        for each in partitions:
            told.partitions.append(_of_partition(each))
            yield None
        response.topics.append((yield from encoded_element(told, version)))
        yield from dissolve(told)
    for topic_id, indexes in asked.unknown:
        told = OffsetFetchResponseTopics(topic_id=topic_id)
        for index in indexes:
            told.partitions.append(_of_partition(FoundOffset(index, error=ErrorCode.UNKNOWN_TOPIC_ID)))
            yield None
        response.topics.append((yield from encoded_element(told, version)))
        yield from dissolve(told)
    return response


def _topic(name: str, image: ClusterImage, version: int) -> OffsetFetchResponseTopics | None:
    if version < _IDS_SINCE:
        return OffsetFetchResponseTopics(name=name)
    known = image.topics.get(name)
    # A topic that is gone has no id by which it could be told.
    return None if known is None else OffsetFetchResponseTopics(name=name, topic_id=known.topic_id)


def _of_partition(found: FoundOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=found.partition,
        committed_offset=_NO_OFFSET if found.offset is None else found.offset,
        committed_leader_epoch=-1 if found.leader_epoch is None else found.leader_epoch,
        metadata=found.metadata,
        error_code=found.error,
    )
