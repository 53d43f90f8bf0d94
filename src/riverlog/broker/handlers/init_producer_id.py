"""InitProducerId 0-5: a fresh producer id for an idempotent producer.

A producer without a transactional id always gets a new id and epoch 0, whatever id it had before. Left out
until there is a coordinator: transactional ids, which are told to try again.
"""

from collections.abc import Awaitable

from riverlog.broker.context import RequestContext
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


class InitProducerIdHandler:
    def __init__(self, producer_ids: ProducerIds) -> None:
        self._producer_ids = producer_ids

    def handle(
        self, request: InitProducerIdRequest, context: RequestContext
    ) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
        refusal = _refusal(request)
        if refusal is not None:
            return InitProducerIdResponse(error_code=refusal, producer_id=-1, producer_epoch=-1)
        return self._allocate()

    async def _allocate(self) -> InitProducerIdResponse:
        return InitProducerIdResponse(
            producer_id=await self._producer_ids.next_producer_id(), producer_epoch=0
        )


def _refusal(request: InitProducerIdRequest) -> ErrorCode | None:
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return None
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if request.transaction_timeout_ms <= 0:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
