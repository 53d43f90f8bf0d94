"""InitProducerId: who may speak for a transactional id from now on. Pure.

A producer that names the id and epoch it had goes on only if no other has taken over since; a repetition of
its own request is known by the epoch before the present one. An open transaction is aborted first, and the
producer asks again; unless it wants a prepared one kept (KIP-939): that stays open under its old identity,
and the new producer may end it.
"""

from typing import NamedTuple, assert_never

from riverlog.coordinator.runtime.rules import AnswerWith, Goto, Ignore, Impossible
from riverlog.coordinator.transactions.decisions import Needs
from riverlog.coordinator.transactions.states import TransactionEvent, TransactionState, rule
from riverlog.coordinator.transactions.transaction import (
    EPOCH_MAX,
    NO_TIMEOUT_MS,
    Transaction,
    is_exhausted,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch


class InitRequest(NamedTuple):
    transactional_id: str
    timeout_ms: int
    expected: ProducerIdAndEpoch | None = None
    """Who the producer believes to be."""
    keep_prepared: bool = False
    fresh_id: int | None = None


class TakenOver(NamedTuple):
    """The producer may speak for the id; `last_epoch` is by what a repetition of the request is known."""

    transaction: Transaction
    last_epoch: int | None = None


class Fenced(NamedTuple):
    """The open transaction is aborted, in an epoch that no producer gets; the producer asks again."""

    transaction: Transaction


def decide_init(
    transaction: Transaction | None,
    request: InitRequest,
    *,
    last_epoch: int | None,
    now_ms: int,
    is_doubtful: bool = False,
) -> TakenOver | Fenced | ErrorCode | Needs:
    """`is_doubtful`: epochs above the known one may have been given out, so that only another producer id is
    sure to be new."""
    if transaction is None:
        return _first(request, now_ms)
    if request.expected is not None and not _may_be(transaction, request.expected):
        return ErrorCode.PRODUCER_FENCED
    event = TransactionEvent.KEEP if request.keep_prepared else TransactionEvent.INIT
    match rule(transaction.state, event):
        case AnswerWith(error=error):
            return error
        case Goto(state=TransactionState.EMPTY):
            return _begin_anew(
                transaction, request, last_epoch=last_epoch, now_ms=now_ms, is_doubtful=is_doubtful
            )
        case Goto(state=TransactionState.PREPARE_EPOCH_FENCE):
            return decide_fence(transaction, now_ms)
        case Goto():
            return _keep(transaction, request, now_ms)
        case (Ignore() | Impossible()) as found:
            raise AssertionError(f"{event} in {transaction.state.shown} gives {found}")
        case never:
            assert_never(never)


def decide_fence(transaction: Transaction, now_ms: int) -> Fenced:
    """Abort for the producer."""
    after = rule(TransactionState.PREPARE_EPOCH_FENCE, TransactionEvent.FENCE)
    assert after == Goto(TransactionState.PREPARE_ABORT)
    return Fenced(transaction.fenced(now_ms))


def _first(request: InitRequest, now_ms: int) -> TakenOver | Needs:
    if request.fresh_id is None:
        return Needs.FRESH_ID
    return TakenOver(
        Transaction(
            request.transactional_id,
            TransactionState.EMPTY,
            ProducerIdAndEpoch(request.fresh_id, 0),
            request.timeout_ms,
            now_ms,
        )
    )


def _may_be(transaction: Transaction, expected: ProducerIdAndEpoch) -> bool:
    if expected.producer_id in (transaction.producer.producer_id, transaction.client.producer_id):
        return True
    return expected.producer_id == transaction.previous_producer_id and is_exhausted(expected)


def _begin_anew(
    transaction: Transaction, request: InitRequest, *, last_epoch: int | None, now_ms: int, is_doubtful: bool
) -> TakenOver | ErrorCode | Needs:
    present, expected = transaction.producer, request.expected
    is_repetition = expected is not None and expected.producer_epoch != present.producer_epoch
    if is_repetition:
        assert expected is not None
        if expected.producer_epoch != last_epoch:
            return ErrorCode.PRODUCER_FENCED
        after = present
    else:
        raised = _raise(present, request.fresh_id, is_doubtful=is_doubtful)
        if isinstance(raised, Needs):
            return raised
        after = raised
        last_epoch = None if expected is None else present.producer_epoch
    return TakenOver(transaction.initialised(after, timeout_ms=request.timeout_ms, now_ms=now_ms), last_epoch)


def _keep(transaction: Transaction, request: InitRequest, now_ms: int) -> TakenOver | ErrorCode | Needs:
    expected = request.expected
    if expected is not None and expected.producer_epoch != transaction.client.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    after = _raise(transaction.client, request.fresh_id)
    if isinstance(after, Needs):
        return after
    # Who begins a transaction for two-phase commit relies on it, also after a takeover.
    timeout_ms = NO_TIMEOUT_MS if transaction.is_two_phase else request.timeout_ms
    return TakenOver(transaction.kept(after, timeout_ms=timeout_ms, now_ms=now_ms))


def _raise(
    present: ProducerIdAndEpoch, fresh_id: int | None, *, is_doubtful: bool = False
) -> ProducerIdAndEpoch | Needs:
    if not is_doubtful and not is_exhausted(present):
        assert present.producer_epoch < EPOCH_MAX - 1
        return ProducerIdAndEpoch(present.producer_id, present.producer_epoch + 1)
    return Needs.FRESH_ID if fresh_id is None else ProducerIdAndEpoch(fresh_id, 0)
