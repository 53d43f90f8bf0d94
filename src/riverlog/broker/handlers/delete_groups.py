"""DeleteGroups 0-2: remove empty groups of any kind, with their committed offsets."""

import asyncio

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.coordinator import GroupCoordinator
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
        verdicts = await asyncio.gather(*(self._groups.delete(group_id) for group_id in names))
        return DeleteGroupsResponse(
            results=[
                DeletableGroupResult(group_id=group_id, error_code=verdict)
                for group_id, verdict in zip(names, verdicts, strict=True)
            ]
        )
