"""Recovery: what is scanned, what is cut, and that the rest is rebuilt as it was."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.config.slices import CleanupPolicy, LogConfig
from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import patch
from riverlog.storage.files import names
from riverlog.storage.inspect import Finding, dump_batches, verify
from riverlog.storage.log.appends import AppendOrigin
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import dump_producers, violations
from tests.storage.logs import DIRECTORY, START_MS, accept, append, batch, open_log, values
from tests.storage.scenarios import flipped_bit_faults

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=1 << 20))
def test_a_flipped_bit_after_the_recovery_point_never_reaches_a_reader(bit: int) -> None:
    assert flipped_bit_faults(bit)[0] == []


@settings(max_examples=100, deadline=None)
@given(st.integers(min_value=0, max_value=1 << 20))
def test_verify_finds_a_flipped_bit_anywhere(bit: int) -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(12):
        append(log, batch(b"value-%d" % number, timestamp_ms=START_MS + number))
    log.close()
    assert not [finding for finding in verify(disk, DIRECTORY) if isinstance(finding, Finding)]
    path = log.segments[0].log.path
    bit %= disk.size(path) * 8
    disk.flip_bit(path, bit)
    findings = [finding for finding in verify(disk, DIRECTORY) if isinstance(finding, Finding)]
    if not findings:
        # The leader epoch is the one field that neither the CRC nor anything else vouches for.
        begin = max(found.position for found in dump_batches(disk, path) if found.position <= bit // 8)
        assert 12 <= bit // 8 - begin < 16


def test_a_torn_tail_is_cut_and_the_log_goes_on() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"whole"))
    size = log.size_bytes
    append(log, batch(b"torn" * 100))
    path = log.segments[0].log.path
    disk.open(path).truncate(size + 100)
    disk.kill()
    log = open_log(disk)
    assert (log.log_end_offset, log.cut_bytes, log.size_bytes) == (1, 100, size)
    append(log, batch(b"next"))
    assert values(log) == [(0, b"whole"), (1, b"next")]


@pytest.mark.parametrize("seed", range(20))
def test_what_recovery_has_cut_does_not_come_back_behind_what_is_written_in_its_place(seed: int) -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for number in range(4):
        append(log, batch(b"old-%d" % number), leader_epoch=2)
    path = log.segments[0].log.path
    log.close()
    disk.flip_bit(path, 8 * 60)  # In the records of the first batch.
    log = open_log(disk)
    assert log.log_end_offset == 0
    append(log, batch(b"new-0"), leader_epoch=4)
    disk.crash(seed)
    assert values(open_log(disk)) in ([], [(0, b"new-0")])


def test_only_segments_after_the_recovery_point_are_scanned() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(40):
        append(log, batch(b"value-%02d" % number * 3))
    log.sync.flush()
    point = log.flushed_offset
    assert len(log.segments) > 4
    first, last = log.segments[0].log.path, log.segments[-1].log.path
    disk.kill()
    disk.flip_bit(first, 70 * 8)
    before = disk.counts.get("read", 0)
    log = open_log(disk, config=SMALL, recovery_point=point)
    assert log.log_end_offset == 40
    assert disk.counts.get("read", 0) - before < 4 * len(log.segments)
    disk.kill()
    disk.flip_bit(last, 70 * 8)
    assert open_log(disk, config=SMALL, recovery_point=point).log_end_offset < 40


def test_a_gap_that_the_next_batch_vouches_for_is_kept() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    for base_offset in (0, 5):
        data = bytearray(bytes(batch(b"a").data) + bytes(batch(b"b").data))
        patch(data, 0, base_offset=base_offset, leader_epoch=LeaderEpoch(0))
        patch(data, len(data) // 2, base_offset=base_offset + 1, leader_epoch=LeaderEpoch(0))
        append(log, accept(bytes(data)), origin=AppendOrigin.REPLICATION)
    disk.kill()
    assert [offset for offset, _ in values(open_log(disk))] == [0, 1, 5, 6]


def test_damage_in_the_middle_drops_the_segments_behind_it() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(40):
        append(log, batch(b"value-%02d" % number * 3, producer_id=3, epoch=0, sequence=number))
    second = log.segments[1]
    end = log.segments[0].next_offset
    disk.kill()
    disk.flip_bit(second.log.path, 70 * 8)
    log = open_log(disk, config=SMALL)
    assert log.log_end_offset == end
    assert violations(log, disk) == []
    kept = {parsed[0] for name in disk.list(DIRECTORY) if (parsed := names.parse_segment_file(name))}
    assert max(kept) <= end
    append(log, batch(b"on", producer_id=3, epoch=0, sequence=end))


def test_a_segment_behind_a_hole_is_dropped_unless_compaction_made_the_hole() -> None:
    compacted = LogConfig(segment_bytes=600, cleanup_policies=frozenset({CleanupPolicy.COMPACT}))
    for config, kept in ((SMALL, "prefix"), (compacted, "all")):
        disk = SimulatedDisk()
        log = open_log(disk, config=SMALL)
        for number in range(20):
            append(log, batch(b"value-%02d" % number * 3))
        first = log.segments[0]
        end, count = first.next_offset, len(log.segments)
        last = max(found.position for found in dump_batches(disk, first.log.path))
        disk.kill()
        disk.open(first.log.path).truncate(last)
        offsets = [offset for offset, _ in values(open_log(disk, config=config))]
        assert count > 2
        if kept == "prefix":
            assert offsets == list(range(end - 1))
        else:
            assert offsets == [offset for offset in range(20) if offset != end - 1]


def test_a_clean_start_scans_nothing() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=LogConfig(index_interval_bytes=100))
    for number in range(200):
        append(log, batch(b"value" * 50, producer_id=1, epoch=0, sequence=number))
    state = dump_producers(log.producers)
    log.close()
    disk.kill()
    before = disk.counts.get("read", 0)
    log = open_log(disk, config=LogConfig(index_interval_bytes=100), clean=True)
    assert disk.counts.get("read", 0) - before < 10
    assert (log.log_end_offset, dump_producers(log.producers)) == (200, state)


@pytest.mark.parametrize("suffix", [names.INDEX, names.TIME_INDEX])
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_index_of_an_old_segment_is_rebuilt(suffix: str, damage: str) -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(40):
        append(log, batch(b"value-%02d" % number * 3, timestamp_ms=START_MS + number))
    log.close()
    path = names.segment_path(DIRECTORY, log.segments[1].base_offset, suffix)
    whole = disk.read(path)
    assert whole
    if damage == "missing":
        disk.unlink(path)
    else:
        disk.open(path).truncate(len(whole) - 3)
    log = open_log(disk, config=SMALL, clean=True)
    assert log.log_end_offset == 40
    assert violations(log, disk) == []
    assert disk.read(path) == whole


def test_leftovers_of_deletion_and_cleaning_are_removed_on_open() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"kept"))
    log.close()
    for name in ("00000000000000000005.log.deleted", "00000000000000000005.index.cleaned", "x.tmp"):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    disk.open(f"{DIRECTORY}/00000000000000000009.index", create=True)
    log = open_log(disk, clean=True)
    left = disk.list(DIRECTORY)
    assert not [name for name in left if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert "00000000000000000009.index" not in left
    assert values(log) == [(0, b"kept")]


def test_an_interrupted_swap_is_completed() -> None:
    disk = SimulatedDisk()
    log = open_log(disk, config=SMALL)
    for number in range(20):
        append(log, batch(b"value-%02d" % number * 3))
    log.close()
    second = log.segments[1].base_offset
    whole = disk.read(names.segment_path(DIRECTORY, 0, names.LOG))
    disk.open(f"{DIRECTORY}/{0:020d}.log.swap", create=True).pwrite(whole, 0)
    disk.unlink(names.segment_path(DIRECTORY, 0, names.LOG))
    log = open_log(disk, config=SMALL, clean=True)
    assert log.segments[1].base_offset == second
    assert [offset for offset, _ in values(log)] == list(range(20))


def test_a_recovery_point_past_the_end_of_the_log_does_no_harm() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    disk.kill()
    log = open_log(disk, recovery_point=500)
    assert (log.log_end_offset, log.flushed_offset) == (1, 1)


def test_a_batch_larger_than_a_chunk_of_the_scan_is_recovered_whole() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    large = b"x" * 5_000_000
    append(log, batch(b"small"))
    append(log, batch(large))
    append(log, batch(b"after"))
    disk.kill()
    assert [value for _, value in values(open_log(disk))] == [b"small", large, b"after"]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.integers(min_value=0, max_value=200))
def test_any_bytes_in_place_of_a_log_are_cut_without_a_crash(garbage: bytes, keep: int) -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"first"))
    append(log, batch(b"second"))
    path, size = log.segments[0].log.path, log.size_bytes
    file = disk.open(path)
    keep = min(keep, size)
    file.truncate(keep)
    file.pwrite(garbage, keep)
    disk.kill()
    log = open_log(disk)
    kept = values(log)
    assert kept == [(0, b"first"), (1, b"second")][: len(kept)]
    assert violations(log, disk) == []
