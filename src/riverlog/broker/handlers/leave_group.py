"""LeaveGroup 0-5: members leave a classic group. Several at once, also by instance id, since 3."""

from collections.abc import Awaitable
from typing import Final

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.classic.requests import Leaver, Verdicts
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

_SEVERAL_SINCE: Final = 3


class LeaveGroupHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def handle(
        self, request: LeaveGroupRequest, context: RequestContext
    ) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        leavers = (
            tuple(Leaver(each.member_id, each.group_instance_id) for each in request.members)
            if context.version >= _SEVERAL_SINCE
            else (Leaver(request.member_id),)
        )

        def response(verdicts: Verdicts | ErrorCode) -> LeaveGroupResponse:
            if isinstance(verdicts, ErrorCode):
                return LeaveGroupResponse(error_code=verdicts)
            if context.version < _SEVERAL_SINCE:
                return LeaveGroupResponse(error_code=verdicts[0])
            return LeaveGroupResponse(
                members=[
                    MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=verdict)
                    for (member_id, instance_id), verdict in zip(leavers, verdicts, strict=True)
                ]
            )

        group_id = request.group_id
        answer: ShardAnswer[Verdicts] = self._groups.run(
            group_id,
            lambda shard, token, now_ms: shard.classic.decide_leave(token, group_id, leavers, now_ms),
        )
        return when_answered(answer, response)
