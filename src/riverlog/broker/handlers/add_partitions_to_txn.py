"""AddPartitionsToTxn 0-5: partitions join a transaction; up to 3 from clients, from 4 on from brokers.

If one partition of a transaction does not exist, none is added. `verify_only` asks whether they were added,
on behalf of a leader that sees a first batch (KIP-890).
"""

from collections.abc import Awaitable, Iterable, Mapping

from riverlog.broker.exchange.context import RequestContext
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.transaction import VERSION_1, VERSION_2
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

_BATCHED_SINCE = 4
_SECOND_VERSION_SINCE = 5
_KNOWS_FENCED_SINCE = 2

Errors = Mapping[TopicPartition, ErrorCode]


class AddPartitionsToTxnHandler:
    def __init__(self, transactions: TransactionCoordinator, follower: MetadataFollower) -> None:
        self._transactions = transactions
        self._follower = follower

    def handle(
        self, request: AddPartitionsToTxnRequest, context: RequestContext
    ) -> Awaitable[AddPartitionsToTxnResponse]:
        if context.version < _BATCHED_SINCE:
            return self._add_one(request, context.version)
        return self._add_batch(request.transactions, context.version)

    async def _add_one(self, request: AddPartitionsToTxnRequest, version: int) -> AddPartitionsToTxnResponse:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        errors = await self._add(transaction, version)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(transaction.topics, errors))

    async def _add_batch(
        self, transactions: Iterable[AddPartitionsToTxnTransaction], version: int
    ) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=_results(each.topics, await self._add(each, version)),
                )
                for each in transactions
            ]
        )

    async def _add(self, transaction: AddPartitionsToTxnTransaction, version: int) -> Errors:
        wanted = [
            TopicPartition(topic.name, each) for topic in transaction.topics for each in topic.partitions
        ]
        if not transaction.transactional_id:
            return dict.fromkeys(wanted, ErrorCode.INVALID_REQUEST)
        image = self._follower.image
        missing = {each for each in wanted if image.partition(*each) is None}
        if missing:
            return {
                each: (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if each in missing
                    else ErrorCode.OPERATION_NOT_ATTEMPTED
                )
                for each in wanted
            }
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            found = await self._transactions.verify_partitions(transaction.transactional_id, producer, wanted)
            return dict.fromkeys(wanted, found) if isinstance(found, ErrorCode) else found
        error = await self._transactions.add_partitions(
            transaction.transactional_id,
            producer,
            wanted,
            client_version=VERSION_2 if version >= _SECOND_VERSION_SINCE else VERSION_1,
        )
        if error is ErrorCode.PRODUCER_FENCED and version < _KNOWS_FENCED_SINCE:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return dict.fromkeys(wanted, ErrorCode.NONE if error is None else error)


def _results(
    topics: Iterable[AddPartitionsToTxnTopic], errors: Errors
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=each, partition_error_code=errors[TopicPartition(topic.name, each)]
                )
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
