"""DeleteTopics 1-6: topics go, by name or, since 6, by id.

Kafka shuffles the answers; here they come in no order that means anything either. With
`delete.topic.enable=false` every topic is refused: before 3 with INVALID_REQUEST, for want of a better code.
"""

from collections.abc import Awaitable

from riverlog.broker.exchange.context import RequestContext
from riverlog.controller.client import ControllerClient
from riverlog.controller.decisions.deletion import Deletion, TopicToDelete
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_IDS_SINCE = 6
_DISABLED_SINCE = 3


class DeleteTopicsHandler:
    def __init__(self, controller: ControllerClient, *, is_enabled: bool) -> None:
        self._controller = controller
        self._is_enabled = is_enabled

    def handle(
        self, request: DeleteTopicsRequest, context: RequestContext
    ) -> DeleteTopicsResponse | Awaitable[DeleteTopicsResponse]:
        to_delete = _to_delete(request, context.version)
        if not self._is_enabled:
            is_old = context.version < _DISABLED_SINCE
            return _all(to_delete, ErrorCode.INVALID_REQUEST if is_old else ErrorCode.TOPIC_DELETION_DISABLED)
        if request.timeout_ms <= 0:
            return _all(to_delete, ErrorCode.REQUEST_TIMED_OUT)
        return self._delete(to_delete)

    async def _delete(self, to_delete: list[TopicToDelete]) -> DeleteTopicsResponse:
        deletions = await self._controller.delete_topics(to_delete)
        return DeleteTopicsResponse(responses=[_result(deletion) for deletion in deletions])


def _to_delete(request: DeleteTopicsRequest, version: int) -> list[TopicToDelete]:
    if version < _IDS_SINCE:
        return [TopicToDelete(name) for name in request.topic_names]
    return [TopicToDelete(topic.name, topic.topic_id) for topic in request.topics]


def _all(to_delete: list[TopicToDelete], error: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error)
            for topic in to_delete
        ]
    )


def _result(deletion: Deletion) -> DeletableTopicResult:
    result = DeletableTopicResult(name=deletion.name, topic_id=deletion.topic_id)
    if deletion.refusal is not None:
        result.error_code = deletion.refusal.error
        result.error_message = deletion.refusal.message
    return result
