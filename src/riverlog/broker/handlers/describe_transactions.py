"""DescribeTransactions 0: what the coordinator knows of transactional ids."""

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.errors import ErrorCode
from riverlog.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


class DescribeTransactionsHandler:
    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions

    async def handle(
        self, request: DescribeTransactionsRequest, context: RequestContext
    ) -> DescribeTransactionsResponse:
        found = [(each, self._transactions.find(each)) for each in request.transactional_ids]
        return DescribeTransactionsResponse(
            transaction_states=[_described(name, await answer) for name, answer in found]
        )


def _described(name: str, found: Transaction | ErrorCode | None) -> TransactionState:
    if found is None:
        return TransactionState(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    if isinstance(found, ErrorCode):
        return TransactionState(transactional_id=name, error_code=found)
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(found.partitions):
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        transactional_id=name,
        transaction_state=found.state.shown,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=-1 if found.started_ms is None else found.started_ms,
        producer_id=found.producer.producer_id,
        producer_epoch=found.producer.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
