"""A reader that goes on where its last read ended is answered from memory; it must get what anybody gets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch
from riverlog.storage.disk.damage import DamageReports
from riverlog.storage.disk.open_files import Files, OpenFiles
from riverlog.storage.files.index_files import OffsetIndex
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment_list import LogRead, SegmentList
from riverlog.testing.simulated_disk import SimulatedDisk, SimulatedFile
from tests.storage.logs import batch, open_log

CONFIG = LogConfig(segment_bytes=14_000, index_interval_bytes=300)
"""Segments of some hundred batches, more than are remembered because they are new."""


def read_afresh(log: Log, offset: int, max_bytes: int, end_offset: int, one: bool) -> LogRead:
    """The same read by somebody who remembers nothing."""
    segments = SegmentList(log.segments)
    return segments.read(offset, max_bytes=max_bytes, end_offset=end_offset, at_least_one_batch=one)


def fill(log: Log, sizes: list[int]) -> None:
    for size in sizes:
        log.append(batch(*[b"v" * 5] * (1 + size % 3), b"v" * size), leader_epoch=LeaderEpoch(0))


def test_what_was_cut_off_and_written_anew_is_read_anew() -> None:
    log = open_log(SimulatedDisk(), config=LogConfig(index_interval_bytes=300))
    fill(log, [30] * 300)
    before = log.read(10, max_bytes=2_000, end_offset=log.log_end_offset)
    assert isinstance(before, LogRead)
    log.cutting.truncate_to(6)
    fill(log, [32] * 300)
    found = log.read(before.upper_offset, max_bytes=2_000, end_offset=log.log_end_offset)
    assert found == read_afresh(log, before.upper_offset, 2_000, log.log_end_offset, True)


steps = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 3), st.sampled_from([0, 1, 150, 700, 2_000, 9_000])),
    st.tuples(st.just("jump"), st.integers(0, 1500), st.sampled_from([200, 3_000])),
    st.tuples(st.just("truncate"), st.integers(0, 1500), st.just(0)),
    st.tuples(st.just("append"), st.integers(0, 400), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 300), st.just(0)),
)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 120), min_size=1, max_size=40),
    plan=st.lists(steps, min_size=5, max_size=60),
    behind=st.integers(0, 20),
)
def test_every_read_finds_what_a_stranger_finds(
    sizes: list[int], plan: list[tuple[str, int, int]], behind: int
) -> None:
    log = open_log(SimulatedDisk(), config=CONFIG)
    fill(log, sizes * 10)
    readers = [0, 0, 0, 0]
    for step, number, max_bytes in plan:
        match step:
            case "append":
                fill(log, [number % 120] * number)
            case "truncate":
                log.cutting.truncate_to(max(log.log_start_offset, log.log_end_offset - number))
            case "delete":
                log.state.set_high_watermark(log.log_end_offset)
                log.cutting.delete_records(min(log.log_start_offset + number, log.log_end_offset))
            case "jump":
                readers[number % 4] = number
        end = max(log.log_end_offset - behind, 0)
        for reader, offset in enumerate(readers):
            if step == "read" and reader != number:
                continue
            offset = min(max(offset, log.log_start_offset), log.log_end_offset)
            one = max_bytes != 700
            found = log.read(offset, max_bytes=max_bytes, end_offset=end, at_least_one_batch=one)
            if offset >= end:
                assert found == LogRead(None, end)
                continue
            assert found == read_afresh(log, offset, max_bytes, end, one)
            assert isinstance(found, LogRead)
            readers[reader] = found.upper_offset if found.records is not None else offset
    log.close()


def test_reading_on_costs_one_read_of_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(SimulatedDisk(), config=LogConfig(index_interval_bytes=300))
    fill(log, [100] * 3_000)
    log.sync.roll()
    positions: list[int] = []
    pread = SimulatedFile.pread

    def counting(file: SimulatedFile, length: int, position: int) -> bytes:
        positions.append(position)
        return pread(file, length, position)

    monkeypatch.setattr(SimulatedFile, "pread", counting)
    offset, reads = 0, 0
    while offset < log.log_end_offset:
        found = log.read(offset, max_bytes=10_000, end_offset=log.log_end_offset)
        assert isinstance(found, LogRead)
        offset, reads = found.upper_offset, reads + 1
    assert reads > 50
    pages = 3
    assert len(positions) <= reads + 2 * pages + 2, "one where the slice ends, and each page of the index"


@settings(max_examples=60, deadline=None)
@given(
    changes=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 900)),
            st.tuples(st.just("save"), st.just(0)),
            st.tuples(st.just("keep"), st.integers(0, 3_000)),
            st.tuples(st.just("ask"), st.integers(-5, 9_000)),
        ),
        max_size=30,
    )
)
def test_an_index_that_changes_is_never_answered_from_an_old_page(changes: list[tuple[str, int]]) -> None:
    index = OffsetIndex("/index", Files(SimulatedDisk(), OpenFiles(), DamageReports()))
    entries: list[tuple[int, int]] = []
    age = 0
    for change, number in changes:
        match change:
            case "append":
                for _ in range(number):
                    last = entries[-1] if entries else (0, 0)
                    entries.append((last[0] + 1 + age % 3, last[1] + 2 + age % 2))
                    index.append(*entries[-1])
            case "save":
                index.save()
            case "keep":
                age += 1
                del entries[number:]
                index.keep(number)
        for target in (number, number + 1, entries[-1][0] if entries else 0):
            assert index.floor(target, 0) == sum(offset <= target for offset, _ in entries) - 1
            assert (index.entry_for(target) or (0, 0))[1] == max(
                (at for of, at in entries if of <= target), default=0
            )
            assert (index.entry_before(target) or (0, 0))[1] == max(
                (at for _, at in entries if at <= target), default=0
            )


def test_the_pages_of_all_indexes_are_bounded_and_go_with_their_index() -> None:
    files = Files(SimulatedDisk(), OpenFiles(), DamageReports())
    indexes = [OffsetIndex(f"/index-{number}", files) for number in range(300)]
    for index in indexes:
        index.append(1, 10)
        index.append(3, 30)
        index.save()
        assert index.entry_for(2) == (1, 10)
    assert len(files.open_files.pages) == 256
    for index in indexes:
        assert index.entry_for(3) == (3, 30)
        index.forget()
        assert (index.entry_for(0) or (0, 0))[1] == 0
        index.forget()
    assert len(files.open_files.pages) == 0
