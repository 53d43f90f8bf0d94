"""What a request does to a transaction: adding partitions, verifying them, ending. Pure.

First whether the request speaks for the transactional id (producer id and epoch), then what the table of
states allows. `decide_init`, which changes who may speak, has a module of its own (`takeover`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, assert_never

from riverlog.coordinator.runtime.rules import AnswerWith, Goto, Ignore, Impossible
from riverlog.coordinator.transactions.states import TransactionEvent, TransactionState, rule
from riverlog.coordinator.transactions.transaction import EPOCH_MAX, VERSION_2, Transaction, is_exhausted
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition


class Needs(Enum):
    """What a decision cannot be taken without; decide again when it is there."""

    FRESH_ID = "a producer id that was never given out"


class Moved(NamedTuple):
    """The transaction is to become this."""

    transaction: Transaction


@dataclass(frozen=True, slots=True)
class Stands:
    """All is as the request wants it; nothing is written."""


class EndRequest(NamedTuple):
    producer: ProducerIdAndEpoch
    commit: bool
    client_version: int
    fresh_id: int | None = None


def decide_add(
    transaction: Transaction | None,
    producer: ProducerIdAndEpoch,
    added: frozenset[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Moved | Stands | ErrorCode:
    if transaction is None or producer.producer_id != transaction.client.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer != transaction.client:
        return ErrorCode.PRODUCER_FENCED
    match rule(transaction.state, TransactionEvent.ADD):
        case AnswerWith(error=error):
            return error
        case Goto():
            is_open = transaction.state is TransactionState.ONGOING
            if is_open and transaction.next_producer is not None:
                # Taken over as prepared by another: it can be ended, not added to (KIP-939).
                return ErrorCode.INVALID_TXN_STATE
            if is_open and added <= transaction.partitions:
                return Stands()
            return Moved(transaction.with_partitions(added, client_version, now_ms))
        case (Ignore() | Impossible()) as other:
            raise _bug(transaction, TransactionEvent.ADD, other)
        case never:
            assert_never(never)


def decide_verify(
    transaction: Transaction | None, producer: ProducerIdAndEpoch, asked: Iterable[TopicPartition]
) -> Mapping[TopicPartition, ErrorCode] | ErrorCode:
    """Whether each partition was added, for a leader that sees the first batch of a producer."""
    if transaction is None or producer.producer_id != transaction.client.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer != transaction.client:
        return ErrorCode.PRODUCER_FENCED
    found = rule(transaction.state, TransactionEvent.VERIFY)
    assert isinstance(found, AnswerWith), _bug(transaction, TransactionEvent.VERIFY, found)
    if found.error is ErrorCode.CONCURRENT_TRANSACTIONS:
        return found.error
    return {
        each: ErrorCode.NONE if each in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in asked
    }


def decide_end(
    transaction: Transaction | None, request: EndRequest, now_ms: int
) -> Moved | Stands | ErrorCode | Needs:
    event = _end_event(transaction, request)
    if isinstance(event, ErrorCode):
        return event
    assert transaction is not None
    found = rule(transaction.state, event)
    match found:
        case AnswerWith(error=ErrorCode.NONE):
            return Stands()
        case AnswerWith(error=error):
            return error
        case Goto(state=state):
            raises = request.client_version >= VERSION_2
            if raises and is_exhausted(transaction.client) and request.fresh_id is None:
                return Needs.FRESH_ID
            return Moved(
                transaction.prepared(
                    state,
                    client_version=request.client_version,
                    fresh_id=request.fresh_id if raises and is_exhausted(transaction.client) else None,
                    now_ms=now_ms,
                )
            )
        case Ignore() | Impossible():
            raise _bug(transaction, event, found)
        case never:
            assert_never(never)


def _end_event(transaction: Transaction | None, request: EndRequest) -> TransactionEvent | ErrorCode:
    """Which end it is: of version 1, or of version 2 in the present epoch or the one before it."""
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.client_version < VERSION_2:
        if request.producer.producer_id != transaction.client.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if request.producer != transaction.client:
            return ErrorCode.PRODUCER_FENCED
        return TransactionEvent.COMMIT_1 if request.commit else TransactionEvent.ABORT_1
    if _is_repetition(transaction, request.producer):
        return TransactionEvent.COMMIT_AGAIN if request.commit else TransactionEvent.ABORT_AGAIN
    if request.producer.producer_id != transaction.client.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if request.producer != transaction.client:
        return ErrorCode.PRODUCER_FENCED
    return TransactionEvent.COMMIT_2 if request.commit else TransactionEvent.ABORT_2


def _is_repetition(transaction: Transaction, producer: ProducerIdAndEpoch) -> bool:
    """Whether the request was sent in the epoch that an end of version 2 has left behind."""
    if transaction.client_version < VERSION_2:
        return False
    raised = ProducerIdAndEpoch(producer.producer_id, producer.producer_epoch + 1)
    if raised == transaction.client or (transaction.state.is_prepared and raised == transaction.producer):
        return True
    return (
        transaction.previous_producer_id == producer.producer_id
        and producer.producer_epoch == EPOCH_MAX - 1
        and transaction.client.producer_epoch == 0
    )


def _bug(transaction: Transaction, event: TransactionEvent, found: object) -> AssertionError:
    return AssertionError(
        f"{transaction.transactional_id}: {event} in {transaction.state.shown} gives {found}"
    )
