"""A power cut or a kill after every single change that a cleaned log makes to the disk."""

from dataclasses import replace

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DiskFullError
from riverlog.storage.cleaning.replacements import finish_replacements
from riverlog.storage.files import names
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.cleaning.compaction import CONFIG, clean, close_segment, offsets_and_values, put, table
from tests.storage.cleaning.scenarios import changes_in_table_life, crash_faults
from tests.storage.logs import ManualClock, open_log, read_all

CHANGES = changes_in_table_life()
SHARDS = 8


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_power_cut_at_any_change_costs_nothing_that_was_acknowledged(shard: int) -> None:
    for after in range(1 + shard, CHANGES + 1, SHARDS):
        assert crash_faults(after, lambda disk: disk.crash(after)) == [], f"{after=}"  # noqa: B023


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_kill_at_any_change_costs_nothing_that_was_acknowledged(shard: int) -> None:
    for after in range(1 + shard, CHANGES + 1, SHARDS):
        assert crash_faults(after, lambda disk: disk.kill()) == [], f"{after=}"


def test_the_life_that_is_cut_short_has_swaps_in_it() -> None:
    assert CHANGES > 300


@pytest.mark.parametrize("after", range(0, 40, 2))
def test_opening_can_itself_be_cut_short(after: int) -> None:
    """A crash in the middle of a replacement, then another one while it is being finished."""
    clock = ManualClock()
    for stop in range(1, 12):
        disk = SimulatedDisk()
        log = open_log(disk, clock, config=CONFIG)
        for number in range(12):
            put(log, (b"%d" % (number % 4), b"%d" % number))
        close_segment(log)
        before = disk.operations
        disk.power_off_after = before + after
        done = False
        try:
            clean(log, clock)
            done = True
        except BaseException as error:
            if type(error).__name__ != "PowerOff":
                raise
        disk.kill()
        disk.power_off_after = disk.operations + stop
        try:
            open_log(disk, clock, config=CONFIG)
        except BaseException as error:
            if type(error).__name__ != "PowerOff":
                raise
        disk.kill()
        recovered = open_log(disk, clock, config=CONFIG)
        newest = {key: value for _, key, value in offsets_and_values(recovered)}
        assert newest == {b"%d" % (number % 4): b"%d" % number for number in range(8, 12)}, (stop, done)


def test_a_swap_without_its_log_file_is_finished_and_one_beside_a_cleaned_log_file_is_forgotten() -> None:
    disk = SimulatedDisk()
    disk.make_directories("/p")
    for name, content in {
        "00000000000000000000.log": b"",
        "00000000000000000000.index.swap": b"new",
        "00000000000000000005.log": b"",
        "00000000000000000005.index": b"old",
        "00000000000000000005.index.swap": b"half done",
        "00000000000000000005.log.cleaned": b"half done",
    }.items():
        disk.open(f"/p/{name}", create=True).pwrite(content, 0)
    finish_replacements("/p", disk)
    assert sorted(disk.list("/p")) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000005.index",
        "00000000000000000005.log",
    ]
    assert disk.read("/p/00000000000000000000.index") == b"new"
    assert disk.read("/p/00000000000000000005.index") == b"old"


def test_a_full_disk_ends_the_pass_and_costs_no_record() -> None:
    disk, clock = SimulatedDisk(), ManualClock()
    log = open_log(disk, clock, config=CONFIG)
    for number in range(60):
        put(log, (b"%d" % (number % 50), b"x" * 40))
    close_segment(log)
    before = table(read_all(log))
    disk.capacity_bytes = disk.used_bytes() + 100
    with pytest.raises(DiskFullError):
        clean(log, clock)
    assert log.is_online
    assert table(read_all(log)) == before
    assert not [name for name in disk.list(log.directory) if names.CLEANED in name or names.SWAP in name]
    disk.capacity_bytes = None
    clean(log, clock)
    assert len(offsets_and_values(log)) == 50


def test_a_log_that_is_no_longer_compacted_is_recovered_whole() -> None:
    """Its gaps are no sign of damage, even when everything is scanned again."""
    disk, clock = SimulatedDisk(), ManualClock()
    log = open_log(disk, clock, config=CONFIG)
    for number in range(60):
        put(log, (b"%d" % (number % (7 + number % 3)), b"%d" % number * 10))
    close_segment(log)
    clean(log, clock)
    expected, cleaned_offset = offsets_and_values(log), log.state.cleaned_offset
    assert len(log.segments) > 2
    disk.kill()
    plain = replace(CONFIG, cleanup_policies=LogConfig().cleanup_policies, retention_ms=None)
    recovered = open_log(disk, clock, config=plain, cleaned_offset=cleaned_offset)
    assert offsets_and_values(recovered) == expected
