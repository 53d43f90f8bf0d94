"""ConsumerGroupDescribe 0-1: groups of the consumer protocol with their members and assignments (KIP-848).

Since 1 it tells which protocol each member speaks. A group of another kind is not found here.
"""

import asyncio

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces
from riverlog.broker.shared.authorized_operations import ON_GROUP
from riverlog.coordinator.groups.assignors import Assignment
from riverlog.coordinator.groups.consumer.description import DescribedMember, Description
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.features import GROUP_VERSION
from riverlog.model.pieces import Pieces
from riverlog.wire.codec import encoded_element
from riverlog.wire.messages import consumer_group_describe as messages
from riverlog.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

_SPEAKS_CLASSIC, _SPEAKS_CONSUMER = 0, 1
_GROUPS_IN_PIECE = 16


class ConsumerGroupDescribeHandler:
    def __init__(self, groups: GroupCoordinator, follower: MetadataFollower) -> None:
        self._groups = groups
        self._follower = follower

    def handle(
        self, request: ConsumerGroupDescribeRequest, context: RequestContext
    ) -> ConsumerGroupDescribeResponse | InPieces[ConsumerGroupDescribeResponse]:
        if not self._follower.image.features.get(GROUP_VERSION):
            return ConsumerGroupDescribeResponse(
                groups=[
                    DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
                    for group_id in request.group_ids
                ]
            )
        is_large = len(request.group_ids) > SHORT_ENTRIES_MAX
        return InPieces(self._in_pieces(request, context.version), is_large)

    def _in_pieces(
        self, request: ConsumerGroupDescribeRequest, version: int
    ) -> Pieces[ConsumerGroupDescribeResponse]:
        response = ConsumerGroupDescribeResponse()
        # Ids that cannot be are told first, as Kafka does.
        group_ids = sorted(request.group_ids, key=bool)
        for start in range(0, len(group_ids), _GROUPS_IN_PIECE):
            asked = [(each, self._ask(each)) for each in group_ids[start : start + _GROUPS_IN_PIECE]]
            if waits_for := [answer for _, answer in asked if not answer.done()]:
                yield asyncio.wait(waits_for)
            for group_id, answer in asked:
                described = _group(group_id, answer.result(), self._follower.image)
                if request.include_authorized_operations and described.error_code == ErrorCode.NONE:
                    described.authorized_operations = ON_GROUP
                response.groups.append((yield from encoded_element(described, version)))
        return response

    def _ask(self, group_id: str) -> "ShardAnswer[Description]":
        if not group_id:
            refused: ShardAnswer[Description] = asyncio.get_running_loop().create_future()
            refused.set_result(ErrorCode.INVALID_GROUP_ID)
            return refused
        return self._groups.ask(group_id, lambda shard: shard.consumer.describe(group_id))


def _group(group_id: str, found: Description | ErrorCode, image: ClusterImage) -> DescribedGroup:
    if isinstance(found, ErrorCode):
        is_missing = found is ErrorCode.GROUP_ID_NOT_FOUND
        message = f"There is no consumer group {group_id}." if is_missing else None
        return DescribedGroup(group_id=group_id, error_code=found, error_message=message)
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.epoch,
        assignment_epoch=found.target_epoch,
        assignor_name=found.assignor,
        members=[_member(each, image) for each in found.members],
    )


def _member(described: DescribedMember, image: ClusterImage) -> messages.Member:
    member = described.member
    return messages.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(described.owned, image),
        target_assignment=_assignment(described.target, image),
        member_type=_SPEAKS_CONSUMER if member.classic is None else _SPEAKS_CLASSIC,
    )


def _assignment(assignment: Assignment, image: ClusterImage) -> messages.Assignment:
    """Topics that are gone meanwhile cannot be named and are left out."""
    return messages.Assignment(
        topic_partitions=[
            messages.TopicPartitions(
                topic_id=topic, topic_name=image.topic_names[topic], partitions=list(indexes)
            )
            for topic, indexes in sorted(assignment.items())
            if topic in image.topic_names
        ]
    )
