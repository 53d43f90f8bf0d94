"""JoinGroup 0-9: become a member of a group under the classic protocol, or stay one through a rebalance.

Waits until the group has a new generation. A new member is given an id first since 4, a static one is known
by its instance id since 5, and a static leader that comes back may be told to skip its assignment since 9.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from riverlog.broker.exchange.answers import when_answered
from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.classic.requests import Joined, Joining, MemberProtocol
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

_NULL_PROTOCOL_SINCE: Final = 7


class JoinGroupHandler:
    def __init__(self, groups: GroupCoordinator, random_id: Callable[[], str]) -> None:
        self._groups = groups
        self._random_id = random_id

    def handle(
        self, request: JoinGroupRequest, context: RequestContext
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        def response(answer: Joined | ErrorCode) -> JoinGroupResponse:
            joined = answer if isinstance(answer, Joined) else Joined(request.member_id, answer)
            return _response(joined, context.version)

        config = self._groups.config
        if not request.group_id:
            return response(ErrorCode.INVALID_GROUP_ID)
        if not config.session_timeout_min_ms <= request.session_timeout_ms <= config.session_timeout_max_ms:
            return response(ErrorCode.INVALID_SESSION_TIMEOUT)
        joining = self._joining(request, context)
        answer: ShardAnswer[Joined] = self._groups.run(
            request.group_id, lambda shard, token, now_ms: shard.classic.decide_join(token, joining, now_ms)
        )
        return when_answered(answer, response)

    def _joining(self, request: JoinGroupRequest, context: RequestContext) -> Joining:
        rebalance_ms = request.rebalance_timeout_ms
        client_id = context.client_id or ""
        name = client_id if request.group_instance_id is None else request.group_instance_id
        return Joining(
            request.group_id,
            request.member_id,
            f"{name}-{self._random_id()}",
            request.protocol_type,
            tuple(MemberProtocol(each.name, bytes(each.metadata)) for each in request.protocols),
            request.group_instance_id,
            client_id,
            f"/{context.peer.host}",
            request.session_timeout_ms,
            # Version 0 has one time-out for both.
            request.session_timeout_ms if rebalance_ms < 0 else rebalance_ms,
            context.version,
        )


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    protocol = joined.protocol
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=protocol if version >= _NULL_PROTOCOL_SINCE else protocol or "",
        leader=joined.leader,
        skip_assignment=joined.is_assigned,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in joined.members
        ],
    )
