"""Searching an index gives what a search of the list of its entries gives, wherever the entries are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.storage.disk.damage import DamageReports
from riverlog.storage.disk.open_files import Files, OpenFiles
from riverlog.storage.files.index_files import OffsetIndex, TimeIndex
from riverlog.testing.simulated_disk import SimulatedDisk


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(min_value=0, max_value=2500),
    saved=st.integers(min_value=0, max_value=2500),
    targets=st.lists(st.integers(min_value=-1, max_value=8000), max_size=30),
)
def test_the_floor_is_found_in_memory_and_on_disk(count: int, saved: int, targets: list[int]) -> None:
    index = OffsetIndex("/index", Files(SimulatedDisk(), OpenFiles(), DamageReports()))
    entries = [(number * 3 + 1, number * 100) for number in range(count)]
    for number, entry in enumerate(entries):
        index.append(*entry)
        if number == saved:
            index.save()
    assert list(index.entries()) == entries
    assert index.last == (entries[-1] if entries else None)
    for target in targets:
        expected = max((position for offset, position in entries if offset <= target), default=0)
        assert (index.entry_for(target) or (0, 0))[1] == expected
        before = max((position for _, position in entries if position <= target), default=0)
        assert (index.entry_before(target) or (0, 0))[1] == before


@pytest.mark.parametrize("saved", [False, True])
def test_truncation_keeps_what_is_below(saved: bool) -> None:
    disk = SimulatedDisk()
    index = OffsetIndex("/index", Files(disk, OpenFiles(), DamageReports()))
    for number in range(1000):
        index.append(number * 2, number)
    if saved:
        index.save()
    index.keep_below(100)
    assert index.count == 50
    assert index.last == (98, 49)
    index.append(200, 500)
    index.save()
    assert OffsetIndex("/index", Files(disk, OpenFiles(), DamageReports())).last == (200, 500)


def test_a_time_index_takes_only_greater_timestamps() -> None:
    index = TimeIndex("/time", Files(SimulatedDisk(), OpenFiles(), DamageReports()))
    for timestamp, offset in ((-1, 0), (5, 1), (5, 2), (4, 3), (9, 4)):
        index.note(timestamp, offset)
    assert list(index.entries()) == [(5, 1), (9, 4)]
    found = [index.entry_before(timestamp) for timestamp in (4, 5, 8, 9, 10)]
    assert found == [None, (5, 1), (5, 1), (9, 4), (9, 4)]


def test_half_an_entry_goes_with_the_first_change() -> None:
    disk = SimulatedDisk()
    disk.open("/index", create=True).pwrite(b"torn", 0)
    index = OffsetIndex("/index", Files(disk, OpenFiles(), DamageReports()))
    index.keep(0)
    index.save()
    assert disk.size("/index") == 0
