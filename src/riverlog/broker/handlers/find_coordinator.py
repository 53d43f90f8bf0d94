"""FindCoordinator 0-6: where the coordinator of a group or transaction is. Until there is one: not available.

Kafka answers the same while its coordinators are starting, so clients wait and ask again. It is served from
the first day because librdkafka compresses with lz4 only where version 0 of it is advertised.
"""

from riverlog.broker.context import RequestContext
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_BATCHED_SINCE, _SHARE_SINCE = 4, 6


class FindCoordinatorHandler:
    def handle(self, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
        if context.version < _BATCHED_SINCE:
            error, message = _answer(request.key, request.key_type, context.version)
            message = message or "no coordinator is available"
            return FindCoordinatorResponse(error_code=error, error_message=message, node_id=-1, port=-1)
        coordinators = []
        for key in request.coordinator_keys:
            error, message = _answer(key, request.key_type, context.version)
            coordinators.append(
                Coordinator(key=key, error_code=error, error_message=message, node_id=-1, port=-1)
            )
        return FindCoordinatorResponse(coordinators=coordinators)


def _answer(key: str, key_type: int, version: int) -> tuple[ErrorCode, str]:
    """Like Kafka, only an unknown kind of key is explained in a batched answer."""
    if key_type in (_GROUP, _TRANSACTION):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, ""
    if key_type != _SHARE:
        return ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}"
    # A share coordinator's key is group:topic id:partition.
    if version < _SHARE_SINCE or key.count(":") != 2:
        return ErrorCode.INVALID_REQUEST, ""
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, ""
