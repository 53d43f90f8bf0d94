"""Transactions as their coordinators offer them: begin, add partitions, end from any process.

Who ends a transaction need not be who wrote it: transactional id, producer id and epoch are all it takes. Not
here: records, and what the cluster says about transactions (`open_transactions`, `transaction_dialect`).
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from riverlog.client.cluster import BrokerRefused, Cluster, Question
from riverlog.client.core.metadata import CoordinatorKind
from riverlog.client.transaction_dialect import BUMPS_EPOCH_SINCE, Dialect, longest_timeout_ms
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from riverlog.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_ADD_FOR_CLIENTS: Final = 3
"""Of AddPartitionsToTxn: the later ones are for brokers."""
_FENCING_TIMEOUT_MS: Final = 60_000

_ENDED_OTHERWISE: Final = frozenset(
    {
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
"""What EndTxn is refused with when another process or a timeout has ended the transaction."""


class TransactionEndedOtherwise(RiverlogError):  # noqa: N818 - named for what it is
    """The transaction is not there to be ended: timed out, aborted by another process, or taken over."""

    def __init__(self, transactional_id: str, code: ErrorCode) -> None:
        super().__init__(f"transaction of {transactional_id}: {code.name}")
        self.transactional_id = transactional_id
        self.code = code


def idempotent_producer(cluster: Cluster) -> ProducerIdAndEpoch:
    """One without transactions."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_FENCING_TIMEOUT_MS)
    answer: InitProducerIdResponse = cluster.retrying(
        lambda: cluster.ask_any(ApiKey.INIT_PRODUCER_ID, request),
        lambda reply: reply.error_code,
        doing="a producer id",
    )
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def take_over(
    cluster: Cluster, transactional_id: str, *, timeout_ms: int | None, doing: str | None = None
) -> ProducerIdAndEpoch:
    """Speak for the id from now on; its open transaction is aborted, who wrote it is fenced.

    Without a timeout what is begun stays open until it is ended (KIP-939).
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=_FENCING_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        enable2_pc=timeout_ms is None,
    )
    answer: InitProducerIdResponse = cluster.retrying(
        lambda: cluster.ask_coordinator(
            CoordinatorKind.TRANSACTION, transactional_id, ApiKey.INIT_PRODUCER_ID, request
        ),
        lambda reply: reply.error_code,
        doing=doing or f"producer id for {transactional_id}",
    )
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


class LongTransaction(NamedTuple):
    producer: ProducerIdAndEpoch
    times_out: bool


def begin_with_longest_timeout(
    cluster: Cluster, transactional_id: str, dialect: Dialect, timeout_ms: int | None
) -> LongTransaction:
    """Take over for a transaction that stays open as long as the cluster lets it: for ever if it can.

    `timeout_ms` is what is asked for where there must be one; None: the longest that the broker allows.
    """
    if dialect.has_two_phase:
        try:
            return LongTransaction(take_over(cluster, transactional_id, timeout_ms=None), times_out=False)
        except BrokerRefused as refusal:
            # Switched off, or not allowed for this id. If the id is not allowed at all, the next try says so.
            if refusal.code is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise
    longest_ms = longest_timeout_ms(cluster) if timeout_ms is None else timeout_ms
    return LongTransaction(take_over(cluster, transactional_id, timeout_ms=longest_ms), times_out=True)


def add_partitions(
    cluster: Cluster,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: Iterable[TopicPartition],
) -> None:
    """For the older dialect, before the first batch to each."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()
        ],
    )
    cluster.retrying(
        lambda: cluster.ask_coordinator(
            CoordinatorKind.TRANSACTION,
            transactional_id,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            request,
            version_max=_ADD_FOR_CLIENTS,
        ),
        _first_code,
        doing=f"partitions for the transaction of {transactional_id}",
    )


def _first_code(reply: AddPartitionsToTxnResponse) -> int:
    codes = [
        each.partition_error_code
        for topic in reply.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    return next((code for code in codes if code), ErrorCode.NONE)


def end(
    cluster: Cluster, transactional_id: str, producer: ProducerIdAndEpoch, dialect: Dialect, *, commit: bool
) -> ProducerIdAndEpoch:
    """Commit or abort; once more does no harm. `TransactionEndedOtherwise` when it was not to be had.

    Gives the producer of the next transaction, which has another epoch where each end raises it.
    """
    request = _end_request(transactional_id, producer, commit=commit)
    try:
        reply: EndTxnResponse = cluster.retrying(
            lambda: cluster.ask_coordinator(
                CoordinatorKind.TRANSACTION,
                transactional_id,
                ApiKey.END_TXN,
                request,
                version_max=None if dialect.bumps_epoch else BUMPS_EPOCH_SINCE - 1,
            ),
            _code_of_end,
            doing=f"{'commit' if commit else 'abort'} of {transactional_id}",
        )
    except BrokerRefused as refusal:
        if refusal.code in _ENDED_OTHERWISE:
            raise TransactionEndedOtherwise(transactional_id, refusal.code) from refusal
        raise
    if not dialect.bumps_epoch or reply.producer_id < 0:
        return producer
    return ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)


def _code_of_end(reply: EndTxnResponse) -> int:
    return reply.error_code


def commit_all(
    cluster: Cluster,
    transactions: Sequence[tuple[str, ProducerIdAndEpoch]],
    dialect: Dialect,
    also: Sequence[Question] = (),
) -> tuple[set[str], list[Any | None]]:
    """As `end` for each, with all requests on the way at the same time, and other questions with them.

    The ids of those that were not to be had, and the other answers, as `Cluster.ask_at_once` gives them.
    """
    version_max = None if dialect.bumps_epoch else BUMPS_EPOCH_SINCE - 1
    questions = [
        Question.to_coordinator(
            CoordinatorKind.TRANSACTION,
            transactional_id,
            ApiKey.END_TXN,
            _end_request(transactional_id, producer, commit=True),
            version_max=version_max,
        )
        for transactional_id, producer in transactions
    ]
    replies = cluster.ask_at_once([*questions, *also])
    lost: set[str] = set()
    for (transactional_id, producer), reply in zip(transactions, replies, strict=False):
        if reply is not None and _code_of_end(reply) == ErrorCode.NONE:
            continue
        try:
            end(cluster, transactional_id, producer, dialect, commit=True)
        except TransactionEndedOtherwise:
            lost.add(transactional_id)
    return lost, replies[len(questions) :]


def _end_request(transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=commit,
    )


def fence_and_abort(cluster: Cluster, transactional_id: str) -> None:
    """End the open transaction of an id without being its producer; who wrote it is fenced."""
    take_over(
        cluster,
        transactional_id,
        timeout_ms=_FENCING_TIMEOUT_MS,
        doing=f"abort of the transaction of {transactional_id}",
    )
