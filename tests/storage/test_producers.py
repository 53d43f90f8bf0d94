"""Idempotent and transactional producers (I5, I6): sequences, epochs, windows, the last stable offset."""

import pytest

from riverlog.model.config.slices import DAY_MS, LogConfig
from riverlog.model.errors import CorruptLogError, ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.storage.log.appends import Appended, AppendOrigin, Duplicate, Refused
from riverlog.storage.log.log import Log
from riverlog.storage.producers.snapshot import decode_snapshot, encode_snapshot
from riverlog.storage.producers.state import ProducerStates
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import dump_producers, replayed
from tests.storage.logs import START_MS, ManualClock, accept, append, batch, marker, open_log, slice_bytes
from tests.storage.scenarios import retry_faults

NONE = ErrorCode.NONE
GAP = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH
LAST = 2**31 - 1

# Producer id, epoch, first sequence, records; then error, offset and whether it is a duplicate, as Apache
# Kafka 4.3.1 answered to these very requests in this order.
ANSWERS_OF_KAFKA = [
    ((900, 0, 5, 1), (NONE, 0, False)),
    ((900, 0, 5, 1), (NONE, 0, True)),
    ((900, 0, 7, 1), (GAP, -1, False)),
    ((900, 0, 6, 3), (NONE, 1, False)),
    ((900, 0, 7, 1), (GAP, -1, False)),
    ((900, 0, 5, 1), (NONE, 0, True)),
    ((900, 1, 3, 1), (GAP, -1, False)),
    ((900, 1, 0, 1), (NONE, 4, False)),
    ((900, 0, 9, 1), (FENCED, -1, False)),
    *(((900, 1, sequence, 1), (NONE, 4 + sequence, False)) for sequence in range(1, 7)),
    ((900, 1, 0, 1), (GAP, -1, False)),
    ((900, 1, 2, 1), (NONE, 6, True)),
    ((901, 0, LAST, 1), (NONE, 11, False)),
    ((901, 0, 0, 1), (NONE, 12, False)),
    ((901, 0, 1, 1), (NONE, 13, False)),
    ((902, 0, LAST - 1, 4), (NONE, 14, False)),
    ((902, 0, 2, 1), (NONE, 18, False)),
    ((902, 0, LAST - 1, 4), (NONE, 14, True)),
]


def send(log: Log, producer_id: int, epoch: int, sequence: int, count: int) -> tuple[ErrorCode, int, bool]:
    accepted = batch(*[b"v"] * count, producer_id=producer_id, epoch=epoch, sequence=sequence)
    match log.append(accepted, leader_epoch=LeaderEpoch(0)):
        case Appended(first_offset=offset):
            return NONE, offset, False
        case Duplicate(first_offset=offset):
            return NONE, offset, True
        case Refused(error=error):
            return error, -1, False


def test_sequences_are_judged_as_kafka_judges_them() -> None:
    log = open_log(SimulatedDisk())
    assert [(sent, send(log, *sent)) for sent, _ in ANSWERS_OF_KAFKA] == ANSWERS_OF_KAFKA


@pytest.mark.parametrize("restart", [False, True])
def test_each_of_five_batches_in_flight_may_be_retried(restart: bool) -> None:
    assert retry_faults(restart=restart) == []


def test_a_duplicate_answers_with_the_time_of_the_batch_as_kafka_does() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a", timestamp_ms=START_MS + 5, producer_id=1, epoch=0, sequence=0))
    again = log.append(
        batch(b"a", timestamp_ms=START_MS + 5, producer_id=1, epoch=0, sequence=0),
        leader_epoch=LeaderEpoch(0),
    )
    assert again == Duplicate(0, 0, START_MS + 5)


def test_an_open_transaction_holds_the_last_stable_offset_until_its_end_is_replicated() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"plain"))
    append(log, batch(b"open", producer_id=1, epoch=0, sequence=0, transactional=True))
    append(log, batch(b"plain"))
    log.state.set_high_watermark(3)
    assert (log.last_stable_offset, log.high_watermark) == (1, 3)
    append(log, marker(1, commit=True), origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 1
    log.state.set_high_watermark(4)
    assert log.last_stable_offset == 4
    assert log.aborted_transactions(0, 4) == []


def test_an_aborted_transaction_is_found_by_the_range_it_touches() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"a", b"b", producer_id=1, epoch=0, sequence=0, transactional=True))
    append(log, batch(b"other", producer_id=2, epoch=0, sequence=0, transactional=True))
    append(log, marker(1, commit=False), origin=AppendOrigin.COORDINATOR)
    append(log, batch(b"later"))
    assert log.aborted_transactions(0, 5) == [(1, 0)]
    assert log.aborted_transactions(3, 5) == [(1, 0)]
    assert log.aborted_transactions(4, 5) == []
    log.close()
    log = open_log(disk, clean=True)
    log.state.set_high_watermark(5)
    assert log.aborted_transactions(0, 5) == [(1, 0)]
    assert log.last_stable_offset == 2


def test_a_replica_that_gets_a_whole_transaction_at_once_knows_that_it_was_aborted() -> None:
    leader, follower = open_log(SimulatedDisk()), open_log(SimulatedDisk())
    append(leader, batch(b"a", producer_id=1, epoch=0, sequence=0, transactional=True))
    append(leader, marker(1, commit=False), origin=AppendOrigin.COORDINATOR)
    data = slice_bytes(leader.read(0, max_bytes=10_000, end_offset=2))
    append(follower, accept(data), origin=AppendOrigin.REPLICATION)
    assert follower.aborted_transactions(0, 2) == [(1, 0)]
    assert dump_producers(follower.producers) == dump_producers(leader.producers)


def test_a_batch_outside_the_open_transaction_is_refused() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a", producer_id=1, epoch=0, sequence=0, transactional=True))
    outcome = log.append(batch(b"b", producer_id=1, epoch=0, sequence=1), leader_epoch=LeaderEpoch(0))
    assert isinstance(outcome, Refused)
    assert outcome.error is ErrorCode.INVALID_TXN_STATE


def test_a_marker_of_an_older_coordinator_is_refused() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a", producer_id=1, epoch=0, sequence=0, transactional=True))
    append(log, marker(1, commit=True, coordinator_epoch=5), origin=AppendOrigin.COORDINATOR)
    outcome = log.append(
        marker(1, commit=True, coordinator_epoch=4),
        leader_epoch=LeaderEpoch(0),
        origin=AppendOrigin.COORDINATOR,
    )
    assert isinstance(outcome, Refused)
    assert outcome.error is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_an_epoch_bumped_by_a_marker_starts_again_at_sequence_zero() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a", producer_id=1, epoch=0, sequence=0, transactional=True))
    append(log, marker(1, epoch=1, commit=False), origin=AppendOrigin.COORDINATOR)
    assert send(log, 1, 0, 1, 1)[0] is FENCED
    assert send(log, 1, 1, 5, 1)[0] is GAP
    assert send(log, 1, 1, 0, 1)[0] is NONE


def test_a_silent_producer_is_forgotten_but_not_one_with_a_transaction_open() -> None:
    clock = ManualClock()
    log = open_log(SimulatedDisk(), clock, config=LogConfig(producer_id_expiration_ms=DAY_MS))
    append(log, batch(b"a", producer_id=1, epoch=0, sequence=0))
    append(log, batch(b"a", producer_id=2, epoch=0, sequence=0, transactional=True))
    assert log.state.expire_producers(START_MS + DAY_MS - 1) == 0
    assert log.state.expire_producers(START_MS + DAY_MS) == 1
    assert send(log, 1, 0, 9, 1)[0] is NONE
    assert send(log, 2, 0, 9, 1)[0] is GAP


def test_snapshots_of_live_segments_are_kept_and_of_others_only_the_newest() -> None:
    disk = SimulatedDisk()
    config = LogConfig(segment_bytes=300)
    for _ in range(4):
        log = open_log(disk, config=config, clean=disk.exists("/data/orders-0"))
        for _ in range(3):
            append(log, batch(b"x" * 50))
        log.close()
    log = open_log(disk, config=config, clean=True)
    taken = {int(name[:20]) for name in disk.list(log.directory) if name.endswith(".snapshot")}
    bases = {segment.base_offset for segment in log.segments}
    assert len(taken - bases) <= 1
    assert 12 in taken
    assert bases - {0} <= taken


def test_a_damaged_snapshot_falls_back_to_an_older_one_and_a_longer_replay() -> None:
    disk = SimulatedDisk()
    config = LogConfig(segment_bytes=300)
    log = open_log(disk, config=config)
    for number in range(12):
        append(log, batch(b"x" * 50, producer_id=1, epoch=0, sequence=number))
    log.close()
    newest = max(name for name in disk.list(log.directory) if name.endswith(".snapshot"))
    disk.flip_bit(f"{log.directory}/{newest}", 90)
    log = open_log(disk, config=config, clean=True)
    assert dump_producers(log.producers) == dump_producers(replayed(log)[0])


def test_a_snapshot_survives_encoding_and_no_damage_goes_unnoticed() -> None:
    states = ProducerStates()
    for number in range(7):
        for producer_id in (1, 2):
            accepted = batch(
                b"a", b"b", producer_id=producer_id, epoch=3, sequence=2 * number, transactional=True
            )
            states.apply(accepted.batches[0][1], 10 * number + producer_id, None)
    data = encode_snapshot(states)
    loaded = ProducerStates()
    loaded.load(decode_snapshot(data))
    assert dump_producers(loaded) == dump_producers(states)
    assert loaded.first_unstable_offset() == 1
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptLogError):
            decode_snapshot(bytes(damaged))
        with pytest.raises(CorruptLogError):
            decode_snapshot(data[:position])
