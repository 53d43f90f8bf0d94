"""The table of transaction states: every state x event is listed, and the shard does what the table says."""

import pytest

from riverlog.coordinator.runtime.rules import AnswerWith, Goto, Ignore, Impossible
from riverlog.coordinator.transactions.decisions import decide_verify
from riverlog.coordinator.transactions.shard import Initialised
from riverlog.coordinator.transactions.states import (
    TABLE,
    TransactionEvent,
    TransactionRule,
    TransactionState,
    rule,
)
from riverlog.coordinator.transactions.transaction import VERSION_1, VERSION_2, Transaction
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from tests.coordinator.transaction_bench import NAME, RULES, TIMEOUT_MS, Bench

ME = ProducerIdAndEpoch(7, 3)
HERE = TopicPartition("orders", 0)
THERE = TopicPartition("orders", 1)
PASSED_THROUGH = (TransactionState.PREPARE_EPOCH_FENCE, TransactionState.DEAD)
RESIDENT = [state for state in TransactionState if state not in PASSED_THROUGH]
HAPPENS = [event for event in TransactionEvent if event is not TransactionEvent.FENCE]


def test_every_state_and_every_event_is_listed() -> None:
    assert set(TABLE) == set(TransactionState)
    for state in TransactionState:
        assert set(TABLE[state]) == set(TransactionEvent), state


def test_states_have_kafkas_numbers_and_names() -> None:
    assert [(state.value, state.shown) for state in TransactionState] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]


def test_only_transitions_that_kafka_allows_are_in_the_table() -> None:
    allowed_from = {
        TransactionState.EMPTY: {"EMPTY", "COMPLETE_COMMIT", "COMPLETE_ABORT"},
        TransactionState.ONGOING: {"ONGOING", "EMPTY", "COMPLETE_COMMIT", "COMPLETE_ABORT"},
        TransactionState.PREPARE_COMMIT: {"ONGOING"},
        TransactionState.PREPARE_ABORT: {
            "ONGOING",
            "PREPARE_EPOCH_FENCE",
            "EMPTY",
            "COMPLETE_COMMIT",
            "COMPLETE_ABORT",
        },
        TransactionState.COMPLETE_COMMIT: {"PREPARE_COMMIT"},
        TransactionState.COMPLETE_ABORT: {"PREPARE_ABORT"},
        TransactionState.DEAD: {"EMPTY", "COMPLETE_COMMIT", "COMPLETE_ABORT"},
        TransactionState.PREPARE_EPOCH_FENCE: {"ONGOING"},
    }
    for state, events in TABLE.items():
        for event, found in events.items():
            if isinstance(found, Goto):
                assert state.name in allowed_from[found.state], (state, event)


def test_states_that_are_passed_through_answer_nothing() -> None:
    for state in PASSED_THROUGH:
        for event in HAPPENS:
            assert isinstance(rule(state, event), Impossible)
    assert rule(TransactionState.PREPARE_EPOCH_FENCE, TransactionEvent.FENCE) == Goto(
        TransactionState.PREPARE_ABORT
    )
    assert all(isinstance(rule(state, TransactionEvent.FENCE), Impossible) for state in RESIDENT)


@pytest.mark.parametrize("event", HAPPENS, ids=lambda event: event.name)
@pytest.mark.parametrize("state", RESIDENT, ids=lambda state: state.name)
def test_the_shard_does_what_the_table_says(state: TransactionState, event: TransactionEvent) -> None:
    bench = Bench()
    before = _transaction(state, event)
    bench.put(before)
    answer = _happen(bench, event)
    _check(rule(state, event), before, bench, answer, event)
    after = bench.transaction
    bench.reload()
    assert bench.transaction == after, "a restart knows exactly what was"


def _transaction(state: TransactionState, event: TransactionEvent) -> Transaction:
    has_partitions = state is TransactionState.ONGOING or state.is_prepared
    return Transaction(
        NAME,
        state,
        ME,
        TIMEOUT_MS,
        updated_ms=1_000_000,
        started_ms=None if state is TransactionState.EMPTY else 1_000_000,
        partitions=frozenset({HERE}) if has_partitions else frozenset(),
        client_version=VERSION_1
        if event in (TransactionEvent.COMMIT_1, TransactionEvent.ABORT_1)
        else VERSION_2,
    )


def _happen(bench: Bench, event: TransactionEvent) -> object:
    before = ProducerIdAndEpoch(ME.producer_id, ME.producer_epoch - 1)
    match event:
        case TransactionEvent.INIT:
            return bench.init()
        case TransactionEvent.KEEP:
            return bench.init(keep=True)
        case TransactionEvent.ADD:
            return bench.add(ME, THERE)
        case TransactionEvent.VERIFY:
            found = decide_verify(bench.transaction, ME, [HERE])
            return found if isinstance(found, ErrorCode) else found[HERE]
        case TransactionEvent.COMMIT_1 | TransactionEvent.ABORT_1:
            return bench.end(ME, commit=event is TransactionEvent.COMMIT_1, version=VERSION_1)
        case TransactionEvent.COMMIT_2 | TransactionEvent.ABORT_2:
            return bench.end(ME, commit=event is TransactionEvent.COMMIT_2, version=VERSION_2)
        case TransactionEvent.COMMIT_AGAIN | TransactionEvent.ABORT_AGAIN:
            return bench.end(before, commit=event is TransactionEvent.COMMIT_AGAIN, version=VERSION_2)
        case TransactionEvent.TIME_OUT:
            return bench.pass_time(TIMEOUT_MS + 1)
        case TransactionEvent.MARKERS_WRITTEN:
            assert bench.transaction is not None
            return bench.complete(bench.transaction)
        case TransactionEvent.EXPIRE:
            return bench.pass_time(RULES.expiration_ms + 1)
        case TransactionEvent.FENCE:
            raise AssertionError("nobody sends it")


def _check(
    found: TransactionRule, before: Transaction, bench: Bench, answer: object, event: TransactionEvent
) -> None:
    after = bench.transaction
    match found:
        case Goto(state=TransactionState.DEAD):
            assert after is None
        case Goto(state=TransactionState.PREPARE_EPOCH_FENCE):
            assert after is not None
            assert after.state is TransactionState.PREPARE_ABORT
            assert after.producer == ProducerIdAndEpoch(ME.producer_id, ME.producer_epoch + 1)
            assert bench.prepared == [after]
            if event is TransactionEvent.INIT:
                assert answer is ErrorCode.CONCURRENT_TRANSACTIONS
        case Goto(state=state):
            assert after is not None
            assert after.state is state
            assert bench.prepared == ([after] if state.is_prepared else [])
            assert not isinstance(answer, ErrorCode)
        case AnswerWith(error=error):
            assert after == before
            if error is ErrorCode.NONE and event is not TransactionEvent.VERIFY:
                assert not isinstance(answer, ErrorCode)
            else:
                assert answer is error
        case Ignore() if event is TransactionEvent.EXPIRE:
            # An open transaction runs out of time long before its id is forgotten.
            assert after is not None
        case Ignore():
            assert after == before
        case Impossible():
            raise AssertionError("it has just happened")


def test_a_first_producer_gets_epoch_0() -> None:
    bench = Bench()
    assert bench.init() == Initialised(ProducerIdAndEpoch(101, 0))
    assert bench.init() == Initialised(ProducerIdAndEpoch(101, 1))
