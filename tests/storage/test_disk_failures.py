"""A full disk is survived and resumes; an I/O error or a failed fsync ends the data directory."""

import errno
import random

import pytest

from riverlog.model.config.slices import CleanupPolicy, LogConfig
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.storage.disk.open_files import OpenFiles
from riverlog.storage.log.appends import AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.checks import violations
from tests.storage.logs import PARTITION, append, batch, marker, open_log, remove_deleted, values
from tests.storage.scenarios import TOPIC_ID, open_directory

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def fill(log: Log, disk: SimulatedDisk) -> int:
    """Append until the disk is full; returns how many batches were taken."""
    for number in range(10_000):
        try:
            append(log, batch(b"value-%04d" % number * 3, producer_id=1, epoch=0, sequence=number))
        except DiskFullError:
            return number
    raise AssertionError("the disk never filled up")


@pytest.mark.parametrize("capacity", range(1500, 2700, 37))
@pytest.mark.parametrize("short", [False, True])
def test_a_full_disk_cuts_the_append_back_and_writing_resumes(capacity: int, short: bool) -> None:
    disk = SimulatedDisk(capacity_bytes=capacity)
    disk.short_writes = random.Random(capacity) if short else None
    log = open_log(disk, config=SMALL)
    taken = fill(log, disk)
    assert log.is_online
    assert [offset for offset, _ in values(log)] == list(range(taken))
    with pytest.raises(DiskFullError):
        append(log, batch(b"x" * 400))
    disk.capacity_bytes = None
    append(log, batch(b"room again", producer_id=1, epoch=0, sequence=taken))
    log.close()
    log = open_log(disk, config=SMALL, clean=True)
    assert violations(log, disk) == []
    assert log.log_end_offset == taken + 1


@pytest.mark.parametrize("capacity", range(1500, 2700, 90))
def test_a_crash_while_the_disk_is_full_loses_nothing(capacity: int) -> None:
    disk = SimulatedDisk(capacity_bytes=capacity)
    log = open_log(disk, config=SMALL)
    taken = fill(log, disk)
    disk.kill()
    disk.capacity_bytes = None
    log = open_log(disk, config=SMALL)
    assert log.log_end_offset == taken
    assert violations(log, disk) == []


def test_a_marker_that_cannot_be_indexed_is_cut_back() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"a", producer_id=1, epoch=0, sequence=0, transactional=True))
    disk.capacity_bytes = disk.used_bytes() + 90
    with pytest.raises(DiskFullError):
        append(log, marker(1, commit=False), origin=AppendOrigin.COORDINATOR)
    assert log.log_end_offset == 1
    disk.capacity_bytes = None
    append(log, marker(1, commit=False), origin=AppendOrigin.COORDINATOR)
    assert log.aborted_transactions(0, 2) == [(1, 0)]
    assert violations(log, disk) == []


@pytest.mark.parametrize("room", range(0, 120, 7))
def test_a_partition_for_which_there_is_no_room_leaves_no_directory(room: int) -> None:
    """It may be made in another data directory next: the empty one must not be taken for it after a clean
    shutdown."""
    disk = SimulatedDisk()
    directory = open_directory(disk)
    disk.capacity_bytes = disk.used_bytes() + room
    try:
        directory.create(PARTITION, TOPIC_ID)
    except DiskFullError:
        assert not disk.exists(f"/data/{PARTITION}")
    disk.capacity_bytes = None
    is_here = PARTITION in directory
    directory.close()
    assert (PARTITION in open_directory(disk)) == is_here


def test_a_full_disk_goes_on_being_read() -> None:
    disk = SimulatedDisk(capacity_bytes=1000)
    log = open_log(disk, config=SMALL)
    taken = fill(log, disk)
    assert len(values(log)) == taken > 0


def test_retention_makes_room_on_a_full_disk() -> None:
    disk = SimulatedDisk(capacity_bytes=2600)
    directory = open_directory(disk, config=LogConfig(segment_bytes=600, retention_bytes=0))
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION)
    assert log is not None
    taken = fill(log, disk)
    log.state.set_high_watermark(log.log_end_offset)
    assert sum(directory.upkeep.retention_steps(0)) > 0
    remove_deleted(directory, 1 << 60)
    append(log, batch(b"room", producer_id=1, epoch=0, sequence=taken))
    assert log.log_end_offset == taken + 1


def test_an_error_on_write_takes_the_directory_offline_for_good() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    disk.fail("write", errno.EIO)
    with pytest.raises(StorageError, match="offline"):
        append(log, batch(b"b"))
    assert not log.is_online
    for _ in range(2):
        with pytest.raises(StorageError):
            append(log, batch(b"b"))
        with pytest.raises(StorageError):
            log.read(0, max_bytes=100, end_offset=1)


def test_an_error_on_read_takes_the_directory_offline() -> None:
    disk = SimulatedDisk()
    log = open_log(disk)
    append(log, batch(b"a"))
    log.close()
    log = open_log(disk, clean=True)
    disk.fail("read", errno.EIO)
    with pytest.raises(StorageError):
        log.read(0, max_bytes=100, end_offset=1)
    assert not log.is_online


@pytest.mark.parametrize("after", range(4))
def test_a_log_that_cannot_be_loaded_leaves_no_file_open(after: int) -> None:
    disk, open_files = SimulatedDisk(), OpenFiles()
    log = open_log(disk, config=LogConfig(segment_bytes=200))
    for number in range(6):
        append(log, batch(b"value-%d" % number))
    disk.kill()  # So that everything is read again.
    disk.fail("read", errno.EIO, after=after)
    with pytest.raises(StorageError):
        open_log(disk, config=LogConfig(segment_bytes=200), open_files=open_files)
    assert open_files.count == 0


def test_a_log_that_is_opened_for_a_moment_on_a_failing_disk_leaves_no_file_open() -> None:
    disk = SimulatedDisk()
    config = LogConfig(segment_bytes=600, retention_bytes=0)
    directory = open_directory(disk, config=config)
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION)
    assert log is not None
    for number in range(20):
        append(log, batch(b"value-%04d" % number))
    log.state.set_high_watermark(log.log_end_offset)
    directory.close()
    directory = open_directory(disk, config=config)
    disk.fail("sync", errno.EIO)
    with pytest.raises(StorageError):
        list(directory.upkeep.retention_steps(0))
    assert directory.environment.files.open_files.count == 0


def test_a_log_whose_disk_fails_while_it_is_looked_at_to_be_cleaned_leaves_no_file_open() -> None:
    disk = SimulatedDisk()
    config = LogConfig(cleanup_policies=frozenset({CleanupPolicy.COMPACT}))
    directory = open_directory(disk, config=config)
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION)
    assert log is not None
    append(log, batch(b"value"))
    directory.close()
    directory = open_directory(disk, config=config)

    def read_it(log: Log) -> bool:
        disk.fail("read", errno.EIO)
        return bool(values(log))

    with pytest.raises(StorageError):
        directory.upkeep.open_to_clean(PARTITION, read_it)
    assert directory.environment.files.open_files.count == 0


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_failed_fsync_is_fatal_and_moves_nothing(error: int) -> None:
    disk = SimulatedDisk()
    directory = open_directory(disk)
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION)
    assert log is not None
    append(log, batch(b"a"))
    disk.fail("sync", error)
    with pytest.raises(StorageError, match="fsync"):
        log.sync.flush()
    assert log.flushed_offset == 0
    assert not directory.is_online
    syncs = disk.counts["sync"]
    with pytest.raises(StorageError):
        log.sync.flush()
    assert disk.counts["sync"] == syncs
    directory.close()
    assert not disk.exists("/data/.kafka_cleanshutdown")


def test_other_directories_are_not_touched_by_a_failure() -> None:
    broken, sound = SimulatedDisk(), SimulatedDisk()
    log, other = open_log(broken), open_log(sound)
    broken.fail("write", errno.EIO)
    with pytest.raises(StorageError):
        append(log, batch(b"a"))
    append(other, batch(b"a"))
