"""Retention by time, by size and by log start; what is deleted, when, and what never is."""

from riverlog.model.config.slices import CleanupPolicy, LogConfig
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.logs import (
    DIRECTORY,
    PARTITION,
    START_MS,
    ManualClock,
    append,
    batch,
    open_log,
    remove_deleted,
    values,
)
from tests.storage.scenarios import TOPIC_ID, open_directory

HOUR_MS = 3_600_000


def filled(config: LogConfig, *, disk: SimulatedDisk | None = None, count: int = 30) -> Log:
    log = open_log(disk or SimulatedDisk(), config=config)
    for number in range(count):
        append(log, batch(b"x" * 100, timestamp_ms=START_MS + number * 1000))
    log.state.set_high_watermark(log.log_end_offset)
    return log


def test_segments_older_than_retention_ms_go() -> None:
    log = filled(LogConfig(segment_bytes=700, retention_ms=HOUR_MS))
    second = log.segments[1]
    cutoff = START_MS + (second.next_offset - 1) * 1000 + HOUR_MS
    assert log.cutting.apply_retention(cutoff) == 1
    assert log.cutting.apply_retention(cutoff + 1) == 1
    assert log.log_start_offset == second.next_offset
    assert values(log)[0][0] == second.next_offset


def test_an_active_segment_that_is_wholly_expired_is_rolled_and_deleted() -> None:
    log = filled(LogConfig(retention_ms=HOUR_MS))
    assert len(log.segments) == 1
    assert log.cutting.apply_retention(START_MS + 100 * HOUR_MS) == 1
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (30, 30, 0)
    assert log.cutting.apply_retention(START_MS + 200 * HOUR_MS) == 0
    append(log, batch(b"on", timestamp_ms=START_MS))
    assert values(log) == [(30, b"on")]


def test_the_oldest_segments_go_while_the_log_is_larger_than_retention_bytes() -> None:
    log = filled(LogConfig(segment_bytes=700, retention_ms=None, retention_bytes=2000))
    size = log.size_bytes
    assert log.cutting.apply_retention(START_MS) > 0
    assert 2000 <= log.size_bytes < size
    assert log.size_bytes - log.segments[0].size_bytes < 2000


def test_nothing_at_or_above_the_high_watermark_goes() -> None:
    log = filled(LogConfig(segment_bytes=700, retention_ms=HOUR_MS, retention_bytes=0))
    log.state.set_high_watermark(log.segments[2].base_offset + 1)
    assert log.cutting.apply_retention(START_MS + 100 * HOUR_MS) == 2


def test_a_compacted_topic_keeps_its_segments() -> None:
    compacted = LogConfig(
        segment_bytes=700, retention_ms=1, cleanup_policies=frozenset({CleanupPolicy.COMPACT})
    )
    assert filled(compacted).cutting.apply_retention(START_MS + 100 * HOUR_MS) == 0


def test_without_limits_nothing_goes() -> None:
    log = filled(LogConfig(segment_bytes=700, retention_ms=None))
    assert log.cutting.apply_retention(START_MS + 10**15) == 0


def test_delete_records_moves_the_log_start_and_drops_whole_segments() -> None:
    log = filled(LogConfig(segment_bytes=700))
    middle = log.segments[2].base_offset + 1
    assert log.cutting.delete_records(middle) == middle
    assert log.log_start_offset == middle
    assert log.segments[0].base_offset < middle < log.segments[1].base_offset
    assert log.read(middle - 1, max_bytes=1, end_offset=30) == OffsetOutOfRange(middle, 30)
    assert values(log)[0][0] == middle
    assert log.cutting.delete_records(0) == middle
    assert log.cutting.delete_records(31) == OffsetOutOfRange(middle, 30)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == middle


def test_deleting_every_record_keeps_the_end_offset() -> None:
    disk, clock = SimulatedDisk(), ManualClock()
    log = filled(LogConfig(segment_bytes=700), disk=disk)
    assert log.cutting.delete_records(30) == 30
    assert (log.log_start_offset, log.log_end_offset) == (30, 30)
    log.close()
    log = open_log(disk, clock, clean=True, log_start_offset=30, recovery_point=30)
    assert (log.log_start_offset, log.log_end_offset) == (30, 30)


def test_deleted_files_are_renamed_at_once_and_removed_after_the_delay() -> None:
    disk, clock = SimulatedDisk(), ManualClock()
    config = LogConfig(segment_bytes=700, retention_bytes=0, file_delete_delay_ms=1000)
    directory = open_directory(disk, clock, config=config)
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION)
    assert log is not None
    for _ in range(30):
        append(log, batch(b"x" * 100))
    log.state.set_high_watermark(30)
    count = len(log.segments)
    assert sum(directory.upkeep.retention_steps(clock.now_ms)) == count
    waiting = [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")]
    assert sum(".log" in name for name in waiting) == count
    remove_deleted(directory, clock.now_ms + 999)
    assert [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")] == waiting
    remove_deleted(directory, clock.now_ms + 1000)
    assert not [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")]
