"""ListGroups 0-5: the groups that this node coordinates, of every kind; by state since 4, by type since 5."""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Final

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.exchange.long_work import InPieces
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.model.errors import ErrorCode
from riverlog.model.pieces import Pieces, sorted_in_pieces
from riverlog.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

_GROUPS_IN_PIECE: Final = 64


class ListGroupsHandler:
    def __init__(self, groups: GroupCoordinator) -> None:
        self._groups = groups

    def handle(self, request: ListGroupsRequest, context: RequestContext) -> InPieces[ListGroupsResponse]:
        return InPieces(self._in_pieces(request))

    def _in_pieces(self, request: ListGroupsRequest) -> Pieces[ListGroupsResponse]:
        """Shard by shard; a group that is new or gone meanwhile is in the answer or not."""
        states = {state.casefold() for state in request.states_filter}
        types = {name.casefold() for name in request.types_filter}
        response = ListGroupsResponse()
        asked = self._groups.ask_each(GroupShard.group_ids)
        if waits_for := [each for each in asked if not each.done()]:
            yield asyncio.wait(waits_for)
        for answer in asked:
            found = answer.result()
            if isinstance(found, ErrorCode):
                # A list with groups missing would be taken for the whole.
                return ListGroupsResponse(error_code=found)
            in_order = yield from sorted_in_pieces(found)
            while group_ids := list(islice(in_order, _GROUPS_IN_PIECE)):
                # All of them are in the shard of the first.
                query = partial(_listed, group_ids=group_ids, states=states, types=types)
                listed = self._groups.ask(group_ids[0], query)
                if not listed.done():
                    yield listed
                if isinstance(some := listed.result(), ErrorCode):
                    return ListGroupsResponse(error_code=some)
                response.groups += some
                yield None
        return response


def _listed(
    shard: GroupShard, group_ids: Sequence[str], states: set[str], types: set[str]
) -> list[ListedGroup]:
    found = []
    for group_id in group_ids:
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
