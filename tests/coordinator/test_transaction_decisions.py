"""Who may speak for a transactional id, epochs that run out, repetitions, and two-phase commit (KIP-939)."""

import pytest

from riverlog.coordinator.transactions.log_records import record_of, transaction_of
from riverlog.coordinator.transactions.shard import Initialised
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import (
    EPOCH_MAX,
    NO_TIMEOUT_MS,
    VERSION_2,
    Transaction,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from tests.coordinator.transaction_bench import NAME, RULES, TIMEOUT_MS, Bench

HERE = TopicPartition("orders", 0)
THERE = TopicPartition("refunds", 2)


def at_epoch(
    epoch: int, state: TransactionState = TransactionState.EMPTY
) -> tuple[Bench, ProducerIdAndEpoch]:
    bench = Bench(completes=True)
    me = ProducerIdAndEpoch(50, epoch)
    is_open = state is TransactionState.ONGOING
    bench.put(
        Transaction(
            NAME,
            state,
            me,
            TIMEOUT_MS,
            bench.now_ms,
            started_ms=bench.now_ms if is_open else None,
            partitions=frozenset({HERE}) if is_open else frozenset(),
        )
    )
    return bench, me


def test_a_repeated_init_of_the_same_producer_gets_the_same_epoch() -> None:
    bench, me = at_epoch(0)
    assert bench.init(me) == Initialised(ProducerIdAndEpoch(50, 1))
    assert bench.init(me) == Initialised(ProducerIdAndEpoch(50, 1))
    assert bench.init(ProducerIdAndEpoch(50, 1)) == Initialised(ProducerIdAndEpoch(50, 2))


def test_an_init_of_a_producer_that_was_replaced_is_fenced() -> None:
    bench, me = at_epoch(0)
    assert bench.init() == Initialised(ProducerIdAndEpoch(50, 1))
    assert bench.init(me) is ErrorCode.PRODUCER_FENCED
    assert bench.init(ProducerIdAndEpoch(51, 0)) is ErrorCode.PRODUCER_FENCED


def test_when_the_epochs_are_used_up_the_next_init_gets_a_fresh_id() -> None:
    bench, me = at_epoch(EPOCH_MAX - 1)
    assert bench.init(me) == Initialised(ProducerIdAndEpoch(101, 0))
    assert bench.init(me) == Initialised(ProducerIdAndEpoch(101, 0)), (
        "a repetition is known though the id is new"
    )
    assert bench.init(ProducerIdAndEpoch(50, EPOCH_MAX - 2)) is ErrorCode.PRODUCER_FENCED


def test_an_end_in_the_last_epoch_goes_on_under_a_fresh_id_and_can_be_repeated() -> None:
    bench, me = at_epoch(EPOCH_MAX - 1, TransactionState.ONGOING)
    assert bench.end(me, commit=True, version=VERSION_2) == ProducerIdAndEpoch(101, 0)
    assert bench.markers == [(HERE, ProducerIdAndEpoch(50, EPOCH_MAX), True)]
    assert bench.end(me, commit=True, version=VERSION_2) == ProducerIdAndEpoch(101, 0)
    assert len(bench.markers) == 1
    assert bench.add(ProducerIdAndEpoch(101, 0), HERE, version=VERSION_2) is None
    assert bench.end(me, commit=False, version=VERSION_2) is ErrorCode.PRODUCER_FENCED


def test_a_late_commit_does_not_end_the_next_transaction() -> None:
    bench, me = at_epoch(3, TransactionState.ONGOING)
    after = bench.end(me, commit=True, version=VERSION_2)
    assert after == ProducerIdAndEpoch(50, 4)
    assert bench.add(after, HERE, THERE, version=VERSION_2) is None
    assert bench.end(me, commit=True, version=VERSION_2) is ErrorCode.PRODUCER_FENCED
    assert bench.transaction is not None
    assert bench.transaction.state is TransactionState.ONGOING


def test_fencing_in_the_last_epoch_ends_with_a_fresh_id() -> None:
    bench, _ = at_epoch(EPOCH_MAX - 1, TransactionState.ONGOING)
    assert bench.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.markers == [(HERE, ProducerIdAndEpoch(50, EPOCH_MAX), False)]
    assert bench.init() == Initialised(ProducerIdAndEpoch(101, 0))


def test_a_transaction_is_aborted_when_its_time_has_run_out_and_not_before() -> None:
    bench, me = at_epoch(0, TransactionState.ONGOING)
    bench.pass_time(TIMEOUT_MS)
    assert bench.markers == []
    bench.pass_time(1)
    assert bench.markers == [(HERE, ProducerIdAndEpoch(50, 1), False)]
    assert bench.end(me, commit=True) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("back_ms", [TIMEOUT_MS // 2, 3_600_000])
def test_the_time_of_a_transaction_runs_out_although_the_clock_was_set_back(back_ms: int) -> None:
    bench, _ = at_epoch(0, TransactionState.ONGOING)
    bench.pass_time(-back_ms)
    bench.pass_time(TIMEOUT_MS)
    assert bench.markers == []
    bench.pass_time(1)
    assert bench.markers == [(HERE, ProducerIdAndEpoch(50, 1), False)]


def test_a_clock_that_is_set_back_twice_gives_a_transaction_its_time_once_more() -> None:
    bench, _ = at_epoch(0, TransactionState.ONGOING)
    bench.pass_time(-10 * TIMEOUT_MS)
    bench.pass_time(TIMEOUT_MS - 1)
    bench.pass_time(-10 * TIMEOUT_MS)
    bench.pass_time(TIMEOUT_MS)
    assert bench.markers == []
    bench.pass_time(1)
    assert len(bench.markers) == 1


def test_an_id_that_is_not_used_is_forgotten() -> None:
    bench, me = at_epoch(0)
    bench.pass_time(RULES.expiration_ms - 1)
    assert bench.shard.get(NAME) is not None
    bench.pass_time(1)
    assert bench.shard.get(NAME) is None
    assert bench.add(me, HERE) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    bench.reload()
    assert bench.shard.get(NAME) is None


def test_a_two_phase_transaction_never_runs_out_of_time() -> None:
    bench = Bench(completes=True)
    me = bench.init(timeout_ms=NO_TIMEOUT_MS).producer
    bench.add(me, HERE, version=VERSION_2)
    bench.pass_time(10**10)
    assert bench.markers == []
    assert bench.end(me, commit=True, version=VERSION_2) == ProducerIdAndEpoch(me.producer_id, 1)
    assert bench.markers == [(HERE, ProducerIdAndEpoch(me.producer_id, 1), True)]


def test_a_two_phase_transaction_that_is_open_for_long_is_warned_about_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(completes=True)
    me = bench.init(timeout_ms=NO_TIMEOUT_MS).producer
    bench.add(me, HERE, version=VERSION_2)
    bench.pass_time(RULES.two_phase_warn_ms)
    assert caplog.messages == []
    bench.pass_time(1)
    bench.pass_time(10_000)
    (warning,) = caplog.messages
    assert NAME in warning
    assert "riverlog txn abort" in warning


def test_another_process_completes_what_was_prepared_and_fences_the_first() -> None:
    bench = Bench(completes=True)
    first = bench.init(timeout_ms=NO_TIMEOUT_MS).producer
    bench.add(first, HERE, THERE, version=VERSION_2)
    bench.reload()
    second = bench.init(keep=True, timeout_ms=NO_TIMEOUT_MS)
    assert second == Initialised(ProducerIdAndEpoch(first.producer_id, 1), ongoing=first)
    assert bench.end(first, commit=False, version=VERSION_2) is ErrorCode.PRODUCER_FENCED
    assert bench.add(second.producer, HERE, version=VERSION_2) is ErrorCode.INVALID_TXN_STATE
    third = bench.init(keep=True, timeout_ms=NO_TIMEOUT_MS)
    assert third == Initialised(ProducerIdAndEpoch(first.producer_id, 2), ongoing=first)
    assert bench.end(second.producer, commit=True, version=VERSION_2) is ErrorCode.PRODUCER_FENCED
    after = bench.end(third.producer, commit=True, version=VERSION_2)
    assert after == ProducerIdAndEpoch(first.producer_id, 3), (
        "raised again, so that a delayed commit harms nothing"
    )
    assert bench.markers == [(each, ProducerIdAndEpoch(first.producer_id, 1), True) for each in (HERE, THERE)]
    assert bench.end(third.producer, commit=True, version=VERSION_2) == after, "a repetition"
    assert bench.add(after, HERE, version=VERSION_2) is None


def test_keeping_when_nothing_is_open_is_a_plain_init() -> None:
    bench = Bench(completes=True)
    assert bench.init(keep=True) == Initialised(ProducerIdAndEpoch(101, 0))
    assert bench.init(keep=True) == Initialised(ProducerIdAndEpoch(101, 1))


def test_a_kept_transaction_can_be_aborted_by_a_plain_init() -> None:
    bench = Bench(completes=True)
    first = bench.init(timeout_ms=NO_TIMEOUT_MS).producer
    bench.add(first, HERE, version=VERSION_2)
    kept = bench.init(keep=True).producer
    assert bench.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.markers == [(HERE, ProducerIdAndEpoch(first.producer_id, 1), False)]
    assert bench.end(kept, commit=True, version=VERSION_2) is not None
    assert len(bench.markers) == 1
    assert bench.init() == Initialised(ProducerIdAndEpoch(first.producer_id, 3))


def test_taking_over_in_the_last_epoch_uses_a_fresh_id() -> None:
    bench, me = at_epoch(EPOCH_MAX - 1, TransactionState.ONGOING)
    assert bench.init(keep=True) == Initialised(ProducerIdAndEpoch(101, 0), ongoing=me)
    bench.reload()
    assert bench.end(ProducerIdAndEpoch(101, 0), commit=True, version=VERSION_2) == ProducerIdAndEpoch(101, 1)
    assert bench.markers == [(HERE, ProducerIdAndEpoch(50, EPOCH_MAX), True)]


def test_a_kept_two_phase_transaction_stays_without_a_timeout() -> None:
    bench = Bench(completes=True)
    first = bench.init(timeout_ms=NO_TIMEOUT_MS).producer
    bench.add(first, HERE, version=VERSION_2)
    bench.init(keep=True, timeout_ms=TIMEOUT_MS)
    bench.pass_time(10**10)
    assert bench.markers == []


def test_a_prepared_end_is_completed_after_a_crash() -> None:
    bench, me = at_epoch(0, TransactionState.ONGOING)
    bench.completes = False
    assert bench.end(me, commit=True) == me
    assert [each.state for each in bench.prepared] == [TransactionState.PREPARE_COMMIT]
    bench.reload()
    assert [each.state for each in bench.prepared] == [TransactionState.PREPARE_COMMIT]
    bench.completes = True
    bench.pass_time(0)
    assert bench.markers == [(HERE, me, True)]
    assert bench.transaction is not None
    assert bench.transaction.state is TransactionState.COMPLETE_COMMIT


def test_a_transaction_survives_its_record() -> None:
    for following in (None, ProducerIdAndEpoch(50, 8), ProducerIdAndEpoch(51, 0)):
        transaction = Transaction(
            NAME,
            TransactionState.ONGOING,
            ProducerIdAndEpoch(50, 7),
            TIMEOUT_MS,
            1_000_002,
            started_ms=1_000_001,
            partitions=frozenset({HERE, THERE, TopicPartition("orders", 9)}),
            previous_producer_id=49,
            next_producer=following,
            client_version=VERSION_2,
        )
        value = record_of(transaction).value
        assert value is not None
        assert transaction_of(NAME, value) == transaction
