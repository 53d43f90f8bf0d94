"""DeleteGroups 0-2: remove empty groups of any kind, with their committed offsets."""

import asyncio
from functools import partial

from riverlog.broker.context import RequestContext
from riverlog.coordinator.effects import Effects, Reply, Token
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.hosted_shard import Answer
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


class DeleteGroupsHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    async def handle(self, request: DeleteGroupsRequest, context: RequestContext) -> DeleteGroupsResponse:
        names = list(dict.fromkeys(request.groups_names))
        answers: list[Answer[ErrorCode]] = [
            self._groups.run(group_id, partial(_decide_deletion, group_id)) for group_id in names
        ]
        verdicts = await asyncio.gather(*answers)
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=verdict)
                for group_id, verdict in zip(names, verdicts, strict=True)
            ]
        )


def _decide_deletion(group_id: str, shard: GroupShard, token: Token[ErrorCode], now_ms: int) -> Effects:
    group = shard.group(group_id)
    if group is None:
        return Effects(replies=(Reply(token, ErrorCode.GROUP_ID_NOT_FOUND),))
    if not group.is_empty:
        return Effects(replies=(Reply(token, ErrorCode.NON_EMPTY_GROUP),))
    records = (*shard.offsets.tombstones(group_id), *group.tombstones())
    return Effects(records, (Reply(token, ErrorCode.NONE),), is_atomic=False)
