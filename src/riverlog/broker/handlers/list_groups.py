"""ListGroups 0-5: the groups that this node coordinates, of every kind; by state since 4, by type since 5."""

import asyncio

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


class ListGroupsHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    async def handle(self, request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
        states = {state.casefold() for state in request.states_filter}
        types = {name.casefold() for name in request.types_filter}

        def of_shard(shard: GroupShard) -> list[ListedGroup]:
            return _listed(shard, states, types)

        response = ListGroupsResponse()
        for answer in await asyncio.gather(*self._groups.ask_each(of_shard)):
            if isinstance(answer, ErrorCode):
                # A list with groups missing would be taken for the whole.
                return ListGroupsResponse(error_code=answer)
            response.groups += answer
        return response


def _listed(shard: GroupShard, states: set[str], types: set[str]) -> list[ListedGroup]:
    found = []
    for group_id in shard.group_ids():
        group = shard.group(group_id)
        if group is None:
            continue
        shown = group.listed
        if (not states or shown.state.casefold() in states) and (
            not types or shown.type_name.casefold() in types
        ):
            found.append(
                ListedGroup(
                    group_id=group_id,
                    protocol_type=shown.protocol_type,
                    group_state=shown.state,
                    group_type=shown.type_name,
                )
            )
    return found
