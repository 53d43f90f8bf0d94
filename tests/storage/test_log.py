"""Append, read, roll and look up, on the simulated disk."""

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import read_header, walk
from riverlog.records.compression import Codec
from riverlog.storage.log.appends import AppendOrigin, OffsetOutOfRange, Refused
from riverlog.storage.log.segment_list import LogRead
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import violations
from tests.storage.logs import (
    START_MS,
    ManualClock,
    accept,
    append,
    batch,
    open_log,
    read_all,
    slice_bytes,
    values,
)

SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def test_append_assigns_offsets_and_leader_epoch_in_place() -> None:
    log = open_log(SimulatedDisk())
    first, second = batch(b"a", b"b"), batch(b"c")
    assert append(log, first, leader_epoch=7).last_offset == 1
    assert append(log, second, leader_epoch=7).first_offset == 2
    assert read_header(second.data).base_offset == 2
    assert read_header(second.data).leader_epoch == 7
    assert values(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.log_end_offset == 3
    assert log.state.epochs.latest == 7


def test_an_append_is_one_write() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    before = disk.counts["write"]
    append(log, batch(b"b" * 1000))
    assert disk.counts["write"] == before + 1


def test_a_read_in_the_middle_of_a_batch_returns_the_whole_batch() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a", b"b", b"c"))
    data = slice_bytes(log.read(2, max_bytes=1000, end_offset=3))
    assert read_header(data).base_offset == 0


def test_the_first_batch_is_returned_even_if_larger_than_the_limit() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"x" * 500))
    append(log, batch(b"y"))
    assert len(list(walk(slice_bytes(log.read(0, max_bytes=10, end_offset=2))))) == 1
    nothing = log.read(0, max_bytes=10, end_offset=2, at_least_one_batch=False)
    assert slice_bytes(nothing) == b""


@pytest.mark.parametrize("recent", [True, False])
def test_a_read_ends_at_a_batch_within_the_limit_and_below_the_end_offset(recent: bool) -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(30):
        append(log, batch(b"%d" % number, b"-"))
    if not recent:
        log.close()
        log = open_log(disk, config=SMALL, clean=True)
    size = len(slice_bytes(log.read(0, max_bytes=1, end_offset=60)))
    assert len(slice_bytes(log.read(0, max_bytes=3 * size + 5, end_offset=60))) == 3 * size
    assert len(slice_bytes(log.read(0, max_bytes=10_000, end_offset=4))) == 2 * size
    # An end offset within a batch excludes that batch.
    assert len(slice_bytes(log.read(0, max_bytes=10_000, end_offset=5))) == 2 * size
    assert log.read(4, max_bytes=10_000, end_offset=4) == LogRead(None, 4)
    # The bound for aborted transactions is as tight as what is sent.
    cut = log.read(0, max_bytes=3 * size + 5, end_offset=60)
    assert isinstance(cut, LogRead)
    assert cut.upper_offset == 6


def test_a_read_outside_the_log_says_so() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a"))
    assert log.read(2, max_bytes=100, end_offset=1) == OffsetOutOfRange(0, 1)
    assert log.read(-1, max_bytes=100, end_offset=1) == OffsetOutOfRange(0, 1)
    assert log.read(1, max_bytes=100, end_offset=1) == LogRead(None, 1)


def test_a_full_segment_rolls_and_reads_go_across() -> None:
    log = open_log(SimulatedDisk(), config=SMALL)
    for number in range(50):
        append(log, batch(b"%03d" % number * 20))
    assert len(log.segments) > 3
    assert [offset for offset, _ in values(log)] == list(range(50))
    assert all(segment.size_bytes <= 1000 for segment in log.segments)


def test_a_segment_rolls_by_the_time_of_its_records() -> None:
    clock = ManualClock()
    log = open_log(SimulatedDisk(), clock, config=LogConfig(segment_ms=1000))
    append(log, batch(b"a", timestamp_ms=START_MS))
    append(log, batch(b"b", timestamp_ms=START_MS + 1000))
    assert len(log.segments) == 1
    append(log, batch(b"c", timestamp_ms=START_MS + 1001))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_rolls_earlier() -> None:
    log = open_log(SimulatedDisk(), config=LogConfig(segment_ms=1000, segment_jitter_ms=1000))
    append(log, batch(b"a", timestamp_ms=START_MS))
    append(log, batch(b"b", timestamp_ms=START_MS + 999))
    assert len(log.segments) == 2


def test_a_segment_rolls_when_its_index_is_full() -> None:
    log = open_log(SimulatedDisk(), config=LogConfig(index_interval_bytes=1, segment_index_bytes=80))
    for _ in range(40):
        append(log, batch(b"a"))
    assert all(segment.index.count <= 10 for segment in log.segments)
    assert len(log.segments) >= 4


def test_a_segment_rolls_when_a_relative_offset_would_overflow() -> None:
    log = open_log(SimulatedDisk())
    append(log, batch(b"a"))
    far = batch(b"b")
    position, header = far.batches[0]
    header = header._replace(base_offset=2**31 + 5)
    log.append(
        type(far)(far.data, ((position, header),), 1, START_MS),
        leader_epoch=LeaderEpoch(0),
        origin=AppendOrigin.REPLICATION,
    )
    assert [segment.base_offset for segment in log.segments] == [0, 2**31 + 5]


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = open_log(SimulatedDisk(), config=SMALL)
    outcome = log.append(batch(b"x" * 2000), leader_epoch=LeaderEpoch(0))
    assert isinstance(outcome, Refused)
    assert outcome.error is ErrorCode.RECORD_LIST_TOO_LARGE


def test_replicated_batches_keep_their_offsets_and_epochs() -> None:
    leader, follower = open_log(SimulatedDisk()), open_log(SimulatedDisk())
    append(leader, batch(b"a"), leader_epoch=1)
    append(leader, batch(b"b", b"c"), leader_epoch=4)
    data = slice_bytes(leader.read(0, max_bytes=10_000, end_offset=3))
    append(follower, accept(data), leader_epoch=-1, origin=AppendOrigin.REPLICATION)
    assert values(follower) == values(leader)
    assert follower.state.epochs.entries == leader.state.epochs.entries == ((1, 0), (4, 1))
    again = follower.append(accept(data), leader_epoch=LeaderEpoch(-1), origin=AppendOrigin.REPLICATION)
    assert isinstance(again, Refused)


@pytest.mark.parametrize("codec", list(Codec))
def test_lookup_by_timestamp_finds_the_exact_record(codec: Codec) -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(40):
        append(log, batch(b"a", b"b", b"c", timestamp_ms=START_MS + number * 10, codec=codec))
    for number in (0, 7, 39):
        for within in range(3):
            found = log.offset_for_timestamp(START_MS + number * 10 + within)
            assert found is not None
            assert (found.offset, found.timestamp_ms) == (
                number * 3 + within,
                START_MS + number * 10 + within,
            )
    between = log.offset_for_timestamp(START_MS + 5)
    assert between is not None
    assert between.offset == 3
    assert log.offset_for_timestamp(START_MS + 10_000) is None


def test_max_timestamp_is_the_first_record_that_has_it() -> None:
    log = open_log(SimulatedDisk(), config=SMALL)
    assert log.max_timestamp() is None
    append(log, batch(b"a", b"b", timestamp_ms=START_MS + 100))
    append(log, batch(b"c", timestamp_ms=START_MS + 101))
    append(log, batch(b"d", timestamp_ms=START_MS))
    found = log.max_timestamp()
    assert found is not None
    assert (found.offset, found.timestamp_ms) == (1, START_MS + 101)


def test_end_offset_for_epoch_follows_the_epochs_that_wrote() -> None:
    log = open_log(SimulatedDisk())
    assert log.end_offset_for_epoch(LeaderEpoch(0)) is None
    append(log, batch(b"a"), leader_epoch=2)
    append(log, batch(b"b"), leader_epoch=5)
    assert log.end_offset_for_epoch(LeaderEpoch(2)) == (2, 1)
    assert log.end_offset_for_epoch(LeaderEpoch(3)) == (2, 1)
    assert log.end_offset_for_epoch(LeaderEpoch(5)) == (5, 2)
    assert log.end_offset_for_epoch(LeaderEpoch(6)) is None
    assert log.end_offset_for_epoch(LeaderEpoch(1)) == (1, 0)
    assert log.leader_epoch_for(0) == 2


def test_truncation_removes_the_end_and_what_was_derived_from_it() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(40):
        append(log, batch(b"%d" % number, producer_id=1, epoch=0, sequence=number), leader_epoch=number // 10)
    log.state.set_high_watermark(40)
    log.cutting.truncate_to(15)
    assert log.log_end_offset == log.high_watermark == 15
    assert [offset for offset, _ in values(log)] == list(range(15))
    log.sync.flush()
    assert violations(log, disk) == []
    append(log, batch(b"again", producer_id=1, epoch=0, sequence=15), leader_epoch=9)
    assert values(log)[-1] == (15, b"again")


def test_a_log_can_begin_again_at_any_offset() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for _ in range(20):
        append(log, batch(b"a"))
    log.cutting.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset) == (1000, 1000)
    append(log, batch(b"b"))
    assert values(log) == [(1000, b"b")]
    log.close()
    assert values(open_log(disk, config=SMALL, clean=True, log_start_offset=1000)) == [(1000, b"b")]


def test_slices_stay_readable_after_their_file_was_evicted_and_deleted() -> None:
    log = open_log(SimulatedDisk(), config=SMALL)
    append(log, batch(b"a"))
    read = log.read(0, max_bytes=100, end_offset=1)
    log.cutting.truncate_fully_and_start_at(5)
    assert next(iter(walk(slice_bytes(read))))[1].base_offset == 0


def test_reading_needs_no_disk_access_at_the_tail() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for _ in range(10):
        append(log, batch(b"a"))
    before = disk.counts.get("read", 0)
    log.read(9, max_bytes=100, end_offset=10)
    assert disk.counts.get("read", 0) == before
    assert len(read_all(log)) == 10


def test_an_epoch_that_began_at_the_end_goes_with_a_truncation_to_it() -> None:
    """A leader that wrote nothing in its epoch must not disagree with the next one for ever (KAFKA-10706)."""
    log = open_log(SimulatedDisk())
    append(log, batch(b"a"), leader_epoch=1)
    log.state.assign_leader_epoch(LeaderEpoch(3))
    assert list(log.state.epochs.entries) == [(1, 0), (3, 1)]
    log.cutting.truncate_to(1)
    assert list(log.state.epochs.entries) == [(1, 0)]
    log.state.assign_leader_epoch(LeaderEpoch(3))
    log.cutting.truncate_to(5)
    assert (list(log.state.epochs.entries), log.log_end_offset) == ([(1, 0)], 1)
    append(log, batch(b"b"), leader_epoch=2)
    assert list(log.state.epochs.entries) == [(1, 0), (2, 1)]


def test_what_a_leader_took_is_stored_whatever_the_size_of_a_segment() -> None:
    """The leader may have had larger segments (KAFKA-9617)."""
    leader, disk = open_log(SimulatedDisk()), SimulatedDisk()
    follower = open_log(disk, config=SMALL)
    for value in (b"a", b"x" * 3000, b"b" * 400, b"c" * 400, b"d" * 400, b"y" * 2000, b"e"):
        append(leader, batch(value), leader_epoch=2)
    data = slice_bytes(leader.read(0, max_bytes=100_000, end_offset=7))
    assert len(data) > SMALL.segment_bytes
    append(follower, accept(data), origin=AppendOrigin.REPLICATION)
    assert values(follower) == values(leader)
    assert follower.log_end_offset == 7
    for segment in follower.segments:
        batches = segment.next_offset - segment.base_offset
        assert segment.size_bytes <= SMALL.segment_bytes or batches == 1
    follower.close()
    assert values(open_log(disk, config=SMALL)) == values(leader)


def test_of_replicated_batches_that_do_not_follow_one_another_none_is_written() -> None:
    leader, follower = open_log(SimulatedDisk()), open_log(SimulatedDisk(), config=SMALL)
    for value in (b"x" * 2000, b"y" * 2000):
        append(leader, batch(value), leader_epoch=2)
    first, second = (
        slice_bytes(leader.read(offset, max_bytes=1, end_offset=offset + 1)) for offset in range(2)
    )
    outcome = follower.append(
        accept(first + second + first), leader_epoch=LeaderEpoch(-1), origin=AppendOrigin.REPLICATION
    )
    assert isinstance(outcome, Refused)
    assert follower.log_end_offset == 0
