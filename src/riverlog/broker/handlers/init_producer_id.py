"""InitProducerId 0-6: a producer id and epoch, for an idempotent or a transactional producer.

A producer without a transactional id always gets a new id and epoch 0, whatever it had before. Version 6
(KIP-939, which Apache Kafka 4.3 does not serve) begins transactions without a timeout for an outside
two-phase commit, and takes over one that another process has prepared.
"""

from collections.abc import Awaitable

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.metadata.producer_ids import NoProducerIdError, ProducerIds
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_KNOWS_FENCED_SINCE = 4


class InitProducerIdHandler:
    def __init__(self, producer_ids: ProducerIds, transactions: TransactionCoordinator) -> None:
        self._producer_ids = producer_ids
        self._transactions = transactions

    def handle(
        self, request: InitProducerIdRequest, context: RequestContext
    ) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
        if (request.producer_id < 0) != (request.producer_epoch < 0):
            return _refused(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is None:
            return self._allocate()
        if not request.transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        return self._initialise(request.transactional_id, request, context.version)

    async def _allocate(self) -> InitProducerIdResponse:
        try:
            producer_id = await self._producer_ids.next_producer_id()
        except NoProducerIdError:
            # As Kafka answers while it has no ids to give; clients ask again.
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    async def _initialise(
        self, transactional_id: str, request: InitProducerIdRequest, version: int
    ) -> InitProducerIdResponse:
        expected = None
        if request.producer_id >= 0:
            expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        outcome = await self._transactions.init_producer_id(
            transactional_id,
            request.transaction_timeout_ms,
            expected,
            for_two_phase=request.enable2_pc,
            keep_prepared=request.keep_prepared_txn,
        )
        if isinstance(outcome, ErrorCode):
            if outcome is ErrorCode.PRODUCER_FENCED and version < _KNOWS_FENCED_SINCE:
                outcome = ErrorCode.INVALID_PRODUCER_EPOCH
            return _refused(outcome)
        ongoing = outcome.ongoing or ProducerIdAndEpoch(-1, -1)
        return InitProducerIdResponse(
            producer_id=outcome.producer.producer_id,
            producer_epoch=outcome.producer.producer_epoch,
            ongoing_txn_producer_id=ongoing.producer_id,
            ongoing_txn_producer_epoch=ongoing.producer_epoch,
        )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
