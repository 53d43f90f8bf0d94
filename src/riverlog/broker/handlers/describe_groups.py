"""DescribeGroups 0-6: state and members of classic groups.

A group that is not there, or follows another protocol, is Dead; since 6 it is an error as well.
"""

import asyncio
from functools import partial
from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import SHORT_ENTRIES_MAX, InPieces
from riverlog.broker.shared.authorized_operations import NOT_ASKED, ON_GROUP
from riverlog.coordinator.groups.classic.group import ClassicGroup
from riverlog.coordinator.groups.classic.states import State
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.kinds import SIMPLE_GROUP
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.model.errors import ErrorCode
from riverlog.model.pieces import Pieces
from riverlog.wire.codec import encoded_element
from riverlog.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_NOT_FOUND_SINCE: Final = 6
_GROUPS_IN_PIECE: Final = 16


class DescribeGroupsHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def handle(
        self, request: DescribeGroupsRequest, context: RequestContext
    ) -> InPieces[DescribeGroupsResponse]:
        is_large = len(request.groups) > SHORT_ENTRIES_MAX
        return InPieces(self._in_pieces(request, context.version), is_large)

    def _in_pieces(self, request: DescribeGroupsRequest, version: int) -> Pieces[DescribeGroupsResponse]:
        operations = ON_GROUP if request.include_authorized_operations else NOT_ASKED
        response = DescribeGroupsResponse()
        for start in range(0, len(request.groups), _GROUPS_IN_PIECE):
            group_ids = request.groups[start : start + _GROUPS_IN_PIECE]
            asked = [self._groups.ask(each, partial(_described, group_id=each)) for each in group_ids]
            if waits_for := [each for each in asked if not each.done()]:
                yield asyncio.wait(waits_for)
            for group_id, answer in zip(group_ids, asked, strict=True):
                described = _presented(group_id, answer.result(), version)
                if described.error_code == ErrorCode.NONE:
                    described.authorized_operations = operations
                response.groups.append((yield from encoded_element(described, version)))
        return response


def _presented(group_id: str, answer: DescribedGroup | ErrorCode | None, version: int) -> DescribedGroup:
    if isinstance(answer, ErrorCode):
        return DescribedGroup(group_id=group_id, error_code=answer)
    if answer is not None:
        return answer
    described = DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    if version >= _NOT_FOUND_SINCE:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"There is no classic group {group_id}."
    return described


def _described(shard: GroupShard, group_id: str) -> DescribedGroup | None:
    group = shard.group(group_id)
    if group is SIMPLE_GROUP:
        return DescribedGroup(group_id=group_id, group_state=State.EMPTY.value)
    if not isinstance(group, ClassicGroup):
        return None
    # Only between rebalances is there a protocol that all follow. The assignment is the latest there was.
    protocol = group.protocol if group.state is State.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
