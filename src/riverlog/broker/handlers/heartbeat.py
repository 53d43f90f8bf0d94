"""Heartbeat 0-4: a member of a classic group lives, and hears whether there is a rebalance."""

from collections.abc import Awaitable

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.classic.requests import Beat
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class HeartbeatHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def handle(
        self, request: HeartbeatRequest, context: RequestContext
    ) -> HeartbeatResponse | Awaitable[HeartbeatResponse]:
        if not request.group_id:
            return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        beat = Beat(request.group_id, request.member_id, request.generation_id, request.group_instance_id)
        answer: ShardAnswer[ErrorCode] = self._groups.run(
            request.group_id, lambda shard, token, now_ms: shard.classic.decide_heartbeat(token, beat, now_ms)
        )
        return when_answered(answer, _response)


def _response(error: ErrorCode) -> HeartbeatResponse:
    # While the group is being loaded the member is not known to be dead, so it counts as alive, as in Kafka.
    is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error)
