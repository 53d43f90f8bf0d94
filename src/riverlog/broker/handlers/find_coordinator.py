"""FindCoordinator 0-6: where the coordinator of a group (type 0) or a transaction (type 1) is.

Since 4 for several keys at once. Share coordinators (type 2, since 6) do not exist here: not available.
"""

import re
from collections.abc import Awaitable
from typing import NamedTuple

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared.coordinator_locator import CoordinatorAddress, CoordinatorLocator
from riverlog.model.errors import ErrorCode
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_TOPICS = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC}
_SHARE = 2
_BATCHED_SINCE, _SHARE_SINCE = 4, 6
_SHARE_KEY = re.compile(".+:[A-Za-z0-9_-]{22}:-?[0-9]+", re.DOTALL)


class _Unknown(NamedTuple):
    error: ErrorCode
    message: str


class FindCoordinatorHandler:
    def __init__(self, locator: CoordinatorLocator) -> None:
        self._locator = locator

    def handle(
        self, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
        topic = _TOPICS.get(request.key_type)
        if topic is None or self._locator.is_ready(topic):
            return self._answer(request, context)
        return self._answer_later(topic, request, context)

    async def _answer_later(
        self, topic: str, request: FindCoordinatorRequest, context: RequestContext
    ) -> FindCoordinatorResponse:
        await self._locator.make_ready(topic)
        return self._answer(request, context)

    def _answer(self, request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
        if context.version < _BATCHED_SINCE:
            return _one(self._find(request.key, request.key_type, context))
        return FindCoordinatorResponse(
            coordinators=[
                _among_others(key, self._find(key, request.key_type, context))
                for key in request.coordinator_keys
            ]
        )

    def _find(self, key: str, key_type: int, context: RequestContext) -> CoordinatorAddress | _Unknown:
        topic = _TOPICS.get(key_type)
        if topic is not None:
            found = self._locator.find(topic, key, context.listener_name)
            return _Unknown(found, "") if isinstance(found, ErrorCode) else found
        if key_type != _SHARE:
            return _Unknown(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
        if context.version < _SHARE_SINCE or not _is_share_key(key):
            return _Unknown(ErrorCode.INVALID_REQUEST, "")
        return _Unknown(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")


def _is_share_key(key: str) -> bool:
    """Group, topic id in Kafka's text form and partition, with colons between them."""
    return _SHARE_KEY.fullmatch(key) is not None


def _one(found: CoordinatorAddress | _Unknown) -> FindCoordinatorResponse:
    if isinstance(found, _Unknown):
        message = found.message or "no coordinator is available"
        return FindCoordinatorResponse(error_code=found.error, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        error_message="NONE", node_id=found.node_id, host=found.address.host, port=found.address.port
    )


def _among_others(key: str, found: CoordinatorAddress | _Unknown) -> Coordinator:
    """Like Kafka, only an unknown kind of key is explained in a batched answer."""
    if isinstance(found, _Unknown):
        return Coordinator(key=key, error_code=found.error, error_message=found.message, node_id=-1, port=-1)
    return Coordinator(key=key, node_id=found.node_id, host=found.address.host, port=found.address.port)
