"""EndTxn 0-5: commit or abort. Answered when the decision is lasting; the markers follow by themselves.

From 5 on each end raises the producer's epoch, and the reply says who the producer is now (KIP-890). That is
refused at level 0 of `transaction.version`, before anything changes; Kafka leaves the transaction undecided.
"""

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_1, VERSION_2
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.features import TRANSACTION_VERSION
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_SECOND_VERSION_SINCE = 5
_KNOWS_FENCED_SINCE = 2


class EndTxnHandler:
    def __init__(self, transactions: TransactionCoordinator, follower: MetadataFollower) -> None:
        self._transactions = transactions
        self._follower = follower

    async def handle(self, request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
        if not request.transactional_id:
            return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
        raises_epoch = context.version >= _SECOND_VERSION_SINCE
        if raises_epoch and not self._follower.image.features.get(TRANSACTION_VERSION):
            return EndTxnResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        outcome = await self._transactions.end(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            commit=request.committed,
            client_version=VERSION_2 if raises_epoch else VERSION_1,
        )
        if isinstance(outcome, ErrorCode):
            if outcome is ErrorCode.PRODUCER_FENCED and context.version < _KNOWS_FENCED_SINCE:
                outcome = ErrorCode.INVALID_PRODUCER_EPOCH
            return EndTxnResponse(error_code=outcome)
        return EndTxnResponse(producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch)
