"""AddOffsetsToTxn 0-4: the offsets of a group join a transaction, as the partition that will hold them."""

from riverlog.broker.context import RequestContext
from riverlog.broker.coordinator_places import CoordinatorPlaces
from riverlog.controller.internal_topics import OFFSETS_TOPIC
from riverlog.coordinator.effects import Producer
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_1
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_KNOWS_FENCED_SINCE = 2


class AddOffsetsToTxnHandler:
    def __init__(self, transactions: TransactionCoordinator, places: CoordinatorPlaces) -> None:
        self._transactions = transactions
        self._places = places

    async def handle(
        self, request: AddOffsetsToTxnRequest, context: RequestContext
    ) -> AddOffsetsToTxnResponse:
        if not request.transactional_id:
            return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        if not self._places.is_ready(OFFSETS_TOPIC):
            await self._places.make_ready(OFFSETS_TOPIC)
        partition = self._places.partition_of(OFFSETS_TOPIC, request.group_id)
        if partition is None:
            return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        error = await self._transactions.add_partitions(
            request.transactional_id,
            Producer(request.producer_id, request.producer_epoch),
            [partition],
            client_version=VERSION_1,
        )
        if error is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE if error is None else error)
