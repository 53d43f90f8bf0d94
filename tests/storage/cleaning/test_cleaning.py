"""One pass over a log: what stays, what goes, and what a reader sees of it."""

import tracemalloc
from contextlib import suppress
from dataclasses import replace

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch
from riverlog.records.compression import Codec
from riverlog.storage.cleaning.cleaning import Bounds, CalledOffError
from riverlog.storage.cleaning.offset_map import OffsetMap
from riverlog.storage.cleaning.plan import examine, groups_of
from riverlog.storage.inspect import Finding, verify
from riverlog.storage.log.appends import Duplicate
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment_list import LogRead
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.cleaning.compaction import (
    COMPACT,
    CONFIG,
    clean,
    close_segment,
    end_transaction,
    headers,
    keyed,
    offsets_and_values,
    put,
    table,
)
from tests.storage.logs import START_MS, ManualClock, append, open_log, read_all, slice_bytes


@pytest.fixture
def disk() -> SimulatedDisk:
    return SimulatedDisk()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(disk: SimulatedDisk, clock: ManualClock) -> Log:
    return open_log(disk, clock, config=CONFIG)


def findings(log: Log, disk: SimulatedDisk) -> list[str]:
    return [str(each) for each in verify(disk, log.directory) if isinstance(each, Finding)]


def test_the_newest_record_of_each_key_stays_at_its_offset(
    log: Log, disk: SimulatedDisk, clock: ManualClock
) -> None:
    for number in range(40):
        put(log, (b"key-%d" % (number % 5), b"value-%d" % number))
    close_segment(log)
    size, end = log.size_bytes, log.log_end_offset
    clean(log, clock)
    assert offsets_and_values(log) == [
        (number, b"key-%d" % (number % 5), b"value-%d" % number) for number in range(35, 40)
    ]
    assert log.size_bytes < size
    assert log.log_end_offset == end
    assert log.log_start_offset == 0
    assert log.state.cleaned_offset == end
    assert not findings(log, disk)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_that_loses_records_keeps_its_codec_offsets_timestamps_and_producer(
    log: Log, clock: ManualClock, codec: Codec
) -> None:
    pairs = [(b"a", b"1" * 50), (b"b", b"2" * 50), (b"c", b"3" * 50)]
    put(log, *pairs, codec=codec, producer_id=7, epoch=3, sequence=11)
    put(log, (b"a", b"4"), (b"c", b"5"))
    close_segment(log)
    clean(log, clock)
    first, second = headers(log)
    assert (first.base_offset, first.last_offset_delta, first.record_count) == (0, 2, 1)
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (7, 3, 11)
    assert first.codec is codec
    assert first.max_timestamp_ms == START_MS + 1
    [record] = [record for record in read_all(log) if record.key == b"b"]
    assert (record.offset, record.timestamp_ms, record.value) == (1, START_MS + 1, b"2" * 50)
    assert (second.base_offset, second.record_count) == (3, 2)


def test_a_batch_of_which_nothing_goes_is_copied_byte_by_byte(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"1"), (b"b", b"2"), codec=Codec.GZIP)
    before = slice_bytes(log.read(0, max_bytes=1000, end_offset=2))
    put(log, (b"c", b"3"))
    close_segment(log)
    clean(log, clock)
    assert slice_bytes(log.read(0, max_bytes=len(before), end_offset=2)) == before


def test_the_active_segment_is_never_cleaned(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"a", b"2"))
    put(log, (b"a", b"3"))
    clean(log, clock)
    assert [value for _, _, value in offsets_and_values(log)] == [b"1", b"2", b"3"]


def test_a_cut_below_what_was_taken_out_of_a_segments_end_leaves_nothing_of_it(
    log: Log, clock: ManualClock
) -> None:
    put(log, (b"a", b"1" * 100))
    put(log, (b"b", b"2" * 100))
    put(log, (b"b", b"3" * 100))
    close_segment(log)
    put(log, (b"b", b"4" * 500))
    close_segment(log)
    clean(log, clock)
    assert [segment.next_offset for segment in log.segments] == [3, 4, 4]
    log.cutting.truncate_to(2)
    assert offsets_and_values(log) == [(0, b"a", b"1" * 100)]
    assert log.log_end_offset == log.high_watermark == 1


def test_a_tombstone_stays_until_the_delete_horizon_that_the_first_pass_sets(
    log: Log, clock: ManualClock
) -> None:
    put(log, (b"a", b"1"), (b"b", b"2"))
    put(log, (b"a", None), (b"c", b"3"))
    close_segment(log)
    clean(log, clock)
    assert offsets_and_values(log) == [(1, b"b", b"2"), (2, b"a", None), (3, b"c", b"3")]
    assert headers(log)[-1].delete_horizon_ms == clock.now_ms + CONFIG.delete_retention_ms
    timestamps = [record.timestamp_ms for record in read_all(log)]
    assert timestamps == [START_MS + 1, START_MS, START_MS + 1]
    clock.now_ms += CONFIG.delete_retention_ms - 1
    put(log, (b"d", b"4"))
    close_segment(log)
    clean(log, clock)
    assert (2, b"a", None) in offsets_and_values(log)
    clock.now_ms += 1
    put(log, (b"d", b"5"))
    close_segment(log)
    clean(log, clock)
    assert [offset for offset, _, _ in offsets_and_values(log)] == [1, 3, 5]


def test_records_of_aborted_transactions_go_and_committed_ones_stay(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"kept"))
    put(log, (b"a", b"aborted"), producer_id=1, sequence=0, transactional=True)
    put(log, (b"b", b"committed"), producer_id=2, sequence=0, transactional=True)
    end_transaction(log, 1, commit=False)
    end_transaction(log, 2, commit=True)
    close_segment(log)
    clean(log, clock)
    data = [header for header in headers(log) if not header.is_control]
    assert [(header.base_offset, header.record_count) for header in data] == [(0, 1), (1, 0), (2, 1)]
    kept = {record.key: record.value for record in read_all(log) if record.key in (b"a", b"b")}
    assert kept == {b"a": b"kept", b"b": b"committed"}
    assert sum(header.is_control for header in headers(log)) == 2
    assert log.aborted_transactions(0, log.log_end_offset) == [(1, 1)]


def test_a_marker_goes_after_its_data_and_its_delete_horizon(log: Log, clock: ManualClock) -> None:
    for sequence in range(2):
        put(log, (b"a", b"%d" % sequence), producer_id=1, sequence=sequence, transactional=True)
        end_transaction(log, 1, commit=sequence == 1)

    def controls() -> list[int]:
        return [header.base_offset for header in headers(log) if header.is_control]

    def next_pass() -> None:
        put(log, (b"x", b"y"))
        close_segment(log)
        clean(log, clock)

    next_pass()
    assert controls() == [1, 3]
    next_pass()  # No data of the aborted transaction is left: its marker gets a horizon.
    assert controls() == [1, 3]
    assert log.aborted_transactions(0, log.log_end_offset) == []
    clock.now_ms += CONFIG.delete_retention_ms
    next_pass()
    assert controls() == [3]


def test_nothing_at_or_above_the_last_stable_offset_is_compacted(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"open", b"x"), producer_id=1, sequence=0, transactional=True)
    put(log, (b"a", b"2"))
    put(log, (b"a", b"3"))
    close_segment(log)
    assert log.last_stable_offset == 1
    before = offsets_and_values(log)
    clean(log, clock)
    assert offsets_and_values(log) == before
    end_transaction(log, 1, commit=True)
    close_segment(log)
    clean(log, clock)
    assert [(offset, value) for offset, key, value in offsets_and_values(log) if key == b"a"] == [(3, b"3")]


def test_nothing_above_the_high_watermark_is_compacted(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"1"))
    append(log, keyed((b"a", b"2")))
    close_segment(log)
    assert examine(log, clock.now_ms).dirty_bytes == 0


def test_a_producer_keeps_its_last_sequence_through_an_empty_batch(
    log: Log, disk: SimulatedDisk, clock: ManualClock
) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"), producer_id=5, sequence=0)
    put(log, (b"a", b"2"), (b"b", b"2"))
    close_segment(log)
    clean(log, clock)
    first = headers(log)[0]
    assert (first.producer_id, first.last_sequence, first.record_count) == (5, 1, 0)
    # Everything is replayed from the log, as after a crash with no snapshot and no checkpoint.
    for name in disk.list(log.directory):
        if name.endswith(".snapshot"):
            disk.unlink(f"{log.directory}/{name}")
    disk.kill()
    recovered = open_log(disk, clock, config=CONFIG)
    again = keyed((b"a", b"1"), (b"b", b"1"), producer_id=5, sequence=0)
    outcome = recovered.append(again, leader_epoch=LeaderEpoch(0))
    assert isinstance(outcome, Duplicate)
    assert outcome.first_offset == 0


def test_the_end_of_what_was_cleaned_keeps_its_offset_in_an_empty_batch(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"gone", None))
    close_segment(log)
    clean(log, clock)
    clock.now_ms += CONFIG.delete_retention_ms
    put(log, (b"gone", None))
    close_segment(log)
    clean(log, clock)
    clock.now_ms += CONFIG.delete_retention_ms
    log.state.cleaned_offset = 0
    clean(log, clock)
    assert [(h.base_offset, h.record_count) for h in headers(log)] == [(0, 1), (2, 0)]


def test_records_without_a_key_go(log: Log, clock: ManualClock) -> None:
    put(log, (None, b"nobody asks for it"), (b"a", b"1"))
    close_segment(log)
    clean(log, clock)
    assert offsets_and_values(log) == [(1, b"a", b"1")]


def test_segments_are_joined_up_to_the_size_of_one(log: Log, disk: SimulatedDisk, clock: ManualClock) -> None:
    for number in range(12):
        put(log, (b"%d" % (number % 10), b"x" * 100))
        close_segment(log)
    clean(log, clock)
    sizes = [segment.size_bytes for segment in log.segments[:-1]]
    assert len(sizes) < 6
    assert all(size <= CONFIG.segment_bytes for size in sizes)
    assert len(read_all(log)) == 10
    assert not findings(log, disk)
    kept = {name for name in disk.list(log.directory) if name.endswith(".snapshot")}
    bases = {f"{segment.base_offset:020d}.snapshot" for segment in log.segments}
    assert kept <= bases


def test_a_group_never_outgrows_relative_offsets(log: Log) -> None:
    put(log, (b"a", b"1"))
    close_segment(log)
    put(log, (b"b", b"1"))
    close_segment(log)
    first, second = log.segments[:-1]
    second.next_offset = first.base_offset + 2**31
    assert len(list(groups_of([first, second], CONFIG))) == 2


def test_a_map_that_is_too_small_takes_several_passes(log: Log, clock: ManualClock) -> None:
    bounds = Bounds(map_bytes=1000, map_load_factor=1.0)  # Four keys.
    for number in range(60):
        put(log, (b"key-%d" % (number % 12), b"%d" % number))
    close_segment(log)
    passes = 0
    while examine(log, clock.now_ms).dirty_bytes and passes < 30:
        before = table(read_all(log))
        clean(log, clock, bounds)
        assert table(read_all(log)) == before
        passes += 1
    assert 10 < passes < 20
    # A pass with room for all keys finds nothing left but what the small ones missed.
    log.state.cleaned_offset = 0
    clean(log, clock)
    assert [offset for offset, _, _ in offsets_and_values(log)] == list(range(48, 60))


def test_aborted_records_behind_the_end_of_a_pass_are_still_told_to_be_aborted(
    log: Log, clock: ManualClock
) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"b", b"2"))
    put(log, (b"c", b"3"), (b"d", b"4"))
    put(log, (b"a", b"aborted"), producer_id=1, sequence=0, transactional=True)
    end_transaction(log, 1, commit=False)
    close_segment(log)
    cleaning = clean(log, clock, Bounds(map_bytes=480, map_load_factor=1.0))
    assert cleaning.end_offset == 2
    assert (4, b"a", b"aborted") in offsets_and_values(log)
    assert log.aborted_transactions(0, log.log_end_offset) == [(1, 4)]


def test_the_map_stays_within_its_memory() -> None:
    budget = 4 * 1024**2
    newest = OffsetMap(budget)
    tracemalloc.start()
    try:
        number = 0
        while newest.has_room_for(1):
            newest.put([(b"a key of some length %d" % number, (1 << 40) + number)])
            number += 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert number > 10_000
    assert peak <= budget


def test_long_keys_are_told_apart_and_never_taken_for_short_ones() -> None:
    newest = OffsetMap(10_000)
    keys = (b"x" * 200 + b"1", b"x" * 200 + b"2", b"short", b"")
    newest.put((key, number) for number, key in enumerate(keys, 1))
    assert [newest.newest(key) for key in keys] == [1, 2, 3, 4]
    newest.put([(keys[1], 5), (b"new", 6), (keys[1], 7)])
    assert sorted(newest.offsets()) == [1, 3, 4, 6, 7]
    assert newest.newest(b"x" * 200) == -1


def test_a_young_record_is_safe_for_the_minimum_lag(disk: SimulatedDisk, clock: ManualClock) -> None:
    log = open_log(disk, clock, config=_config(min_compaction_lag_ms=5000))
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    clock.now_ms = START_MS + 4000
    clean(log, clock)
    assert len(read_all(log)) == 2
    clock.now_ms = START_MS + 5000
    clean(log, clock)
    assert len(read_all(log)) == 1


def test_an_old_record_is_due_after_the_maximum_lag_however_small_the_dirty_part(
    disk: SimulatedDisk, clock: ManualClock
) -> None:
    config = _config(min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=10_000)
    log = open_log(disk, clock, config=config)
    for number in range(10):
        put(log, (b"%d" % number, b"x" * 50))
    close_segment(log)
    clean(log, clock)
    put(log, (b"0", b"y"))
    close_segment(log)
    clock.now_ms = START_MS + 10_000
    assert not examine(log, clock.now_ms).is_due(config)
    clock.now_ms += 1
    assert examine(log, clock.now_ms).is_due(config)


def test_the_maximum_lag_closes_the_active_segment(disk: SimulatedDisk, clock: ManualClock) -> None:
    log = open_log(disk, clock, config=_config(max_compaction_lag_ms=1000))
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"), timestamp_ms=START_MS + 1001)
    assert len(log.segments) == 2


def test_the_dirty_ratio_decides_when_a_log_is_due(log: Log, clock: ManualClock) -> None:
    config = _config(min_cleanable_dirty_ratio=0.5)
    for number in range(4):
        put(log, (b"%d" % number, b"x"))
    close_segment(log)
    assert examine(log, clock.now_ms).dirty_ratio == 1.0
    clean(log, clock)
    assert examine(log, clock.now_ms).dirty_ratio == 0.0
    for number in range(4):
        put(log, (b"%d" % number, b"y"))
    close_segment(log)
    assert examine(log, clock.now_ms).dirty_ratio == 0.5
    assert not examine(log, clock.now_ms).is_due(config)
    put(log, (b"0", b"z"))
    close_segment(log)
    assert examine(log, clock.now_ms).is_due(config)


def test_a_slice_of_a_replaced_segment_stays_readable(log: Log, clock: ManualClock) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    close_segment(log)
    read = log.read(0, max_bytes=1000, end_offset=2)
    assert isinstance(read, LogRead)
    before = slice_bytes(read)
    clean(log, clock)
    assert slice_bytes(read) == before
    assert slice_bytes(log.read(0, max_bytes=1000, end_offset=2)) != before


@pytest.mark.parametrize("moment", range(6))
def test_whatever_happens_to_the_log_meanwhile_the_pass_gives_up_and_leaves_it_alone(
    disk: SimulatedDisk, clock: ManualClock, moment: int
) -> None:
    def disturbances(log: Log) -> list[object]:
        return [
            lambda: log.cutting.truncate_to(3),
            lambda: log.cutting.truncate_fully_and_start_at(50),
            lambda: log.cutting.delete_records(20),
            lambda: log.rename_and_close("/data/gone.1-delete"),
            lambda: log.close(),
            lambda: log.state.update_config(LogConfig()),
        ]

    for number in range(6):
        log = open_log(disk, clock, config=CONFIG, directory=f"/data/log-{number}")
        for each in range(30):
            put(log, (b"%d" % (each % 7), b"x" * 40))
        close_segment(log)
        disturb = disturbances(log)[number]

        def between(step: int, disturb: object = disturb) -> None:
            if step == moment:
                disturb()  # type: ignore[operator]

        # After a deletion of records before the rewriting, the pass simply has less to do.
        with suppress(CalledOffError) if number == 2 else pytest.raises(CalledOffError):
            clean(log, clock, between=between)
        if log.is_online:
            assert not [name for name in disk.list(log.directory) if "cleaned" in name or "swap" in name]
            assert not findings(log, disk)
            put(log, (b"more", b"y"))
            assert read_all(log)[-1].value == b"y"


def test_appends_go_on_during_a_pass(log: Log, clock: ManualClock) -> None:
    for number in range(30):
        put(log, (b"%d" % (number % 7), b"%d" % number))
    close_segment(log)

    def between(step: int) -> None:
        put(log, (b"%d" % (step % 7), b"later %d" % step))

    before = table(read_all(log))
    clean(log, clock, between=between)
    after = table(read_all(log))
    assert set(after) == set(before)
    assert sum(value.startswith(b"later") for value in after.values()) > 3


def test_retention_still_deletes_segments_of_a_log_that_is_compacted_too(
    disk: SimulatedDisk, clock: ManualClock
) -> None:
    config = _config(cleanup_policies=LogConfig().cleanup_policies | COMPACT, retention_ms=5000)
    log = open_log(disk, clock, config=config)
    for number in range(6):
        put(log, (b"%d" % number, b"x"), timestamp_ms=START_MS + number * 1000)
        close_segment(log)
    clean(log, clock)
    clock.now_ms = START_MS + 30_000
    assert log.cutting.apply_retention(clock.now_ms) >= 1
    assert read_all(log) == []


def test_a_log_is_cleaned_again_from_its_start_when_it_was_cut_below_the_checkpoint(
    log: Log, clock: ManualClock
) -> None:
    for number in range(10):
        put(log, (b"a", b"%d" % number))
    close_segment(log)
    clean(log, clock)
    log.cutting.truncate_to(0)
    assert log.state.cleaned_offset == 0


def _config(**changes: object) -> LogConfig:
    return replace(CONFIG, **changes)  # type: ignore[arg-type]
