"""AddOffsetsToTxn 0-4: the offsets of a group join a transaction, as the partition that will hold them."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.shared.coordinator_locator import CoordinatorLocator
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_1
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_KNOWS_FENCED_SINCE = 2


class AddOffsetsToTxnHandler:
    def __init__(self, transactions: TransactionCoordinator, locator: CoordinatorLocator) -> None:
        self._transactions = transactions
        self._locator = locator

    async def handle(
        self, request: AddOffsetsToTxnRequest, context: RequestContext
    ) -> AddOffsetsToTxnResponse:
        if not request.transactional_id:
            return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        if not self._locator.is_ready(OFFSETS_TOPIC):
            await self._locator.make_ready(OFFSETS_TOPIC)
        partition = self._locator.partition_of(OFFSETS_TOPIC, request.group_id)
        if partition is None:
            return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        error = await self._transactions.add_partitions(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            [partition],
            client_version=VERSION_1,
        )
        if error is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE if error is None else error)
