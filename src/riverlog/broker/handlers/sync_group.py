"""SyncGroup 0-5: a member asks for its assignment, and the leader hands in the assignments of all.

Waits for the leader. Since 5 a member names the protocol that it thinks the group has chosen.
"""

from collections.abc import Awaitable
from typing import Final

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.classic.requests import Synced, Syncing
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_PROTOCOL_SINCE: Final = 5


class SyncGroupHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def handle(
        self, request: SyncGroupRequest, context: RequestContext
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        names = (request.protocol_type, request.protocol_name)
        if context.version >= _PROTOCOL_SINCE and None in names:
            return _response(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not request.group_id:
            return _response(ErrorCode.INVALID_GROUP_ID)
        syncing = Syncing(
            request.group_id,
            request.member_id,
            request.generation_id,
            request.group_instance_id,
            request.protocol_type,
            request.protocol_name,
            {each.member_id: bytes(each.assignment) for each in request.assignments},
        )
        answer: ShardAnswer[Synced] = self._groups.run(
            request.group_id, lambda shard, token, now_ms: shard.classic.decide_sync(token, syncing, now_ms)
        )
        return when_answered(answer, _response)


def _response(answer: Synced | ErrorCode) -> SyncGroupResponse:
    synced = answer if isinstance(answer, Synced) else Synced(answer)
    return SyncGroupResponse(
        error_code=synced.error,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
