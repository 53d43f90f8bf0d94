"""A data directory: whose it is, what a start reads, and what a clean shutdown leaves."""

import errno
from itertools import combinations
from uuid import UUID

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DirectoryInUseError, DiskFullError, FormatError, StorageError
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.files.partition_metadata import encode_uuid
from riverlog.storage.log.appends import AppendOrigin
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.storage.logs import PARTITION, ManualClock, append, batch, marker, remove_deleted, values
from tests.storage.scenarios import CONFIG, TOPIC_ID, open_directory

MARKER = "/data/.kafka_cleanshutdown"


def reopened(disk: SimulatedDisk, *, node_id: int = 1, cluster_id: str | None = "cluster") -> LogDirectory:
    return LogDirectory.open(
        "/data",
        disk=disk,
        clock=ManualClock(),
        node_id=NodeId(node_id),
        cluster_id=cluster_id,
        new_uuid=lambda: UUID(int=1),
    )


def with_records(
    disk: SimulatedDisk, count: int = 3, *, clock: ManualClock | None = None, config: LogConfig = CONFIG
) -> LogDirectory:
    directory = open_directory(disk, clock, config=config)
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION)
    assert log is not None
    for number in range(count):
        append(log, batch(b"%d" % number))
    log.state.set_high_watermark(count)
    return directory


def test_a_second_owner_is_refused() -> None:
    disk = SimulatedDisk()
    directory = open_directory(disk)
    with pytest.raises(DirectoryInUseError, match="Another process uses /data"):
        open_directory(disk)
    directory.close()
    open_directory(disk)


def test_the_directory_of_another_node_or_cluster_is_refused() -> None:
    disk = SimulatedDisk()
    open_directory(disk).close()
    with pytest.raises(FormatError, match=r"belongs to node 1, this is node 2"):
        reopened(disk, node_id=2)
    with pytest.raises(FormatError, match="belongs to cluster cluster"):
        reopened(disk, cluster_id="another")
    assert reopened(disk, cluster_id=None).meta.cluster_id == "cluster"


def test_a_newer_format_is_refused_and_says_what_to_do() -> None:
    disk = SimulatedDisk()
    open_directory(disk).close()
    path = "/data/meta.properties"
    newer = disk.read(path).replace(b"format.version=1", b"format.version=2")
    disk.open(path).pwrite(newer, 0)
    with pytest.raises(FormatError, match="Start the release that wrote it"):
        reopened(disk)


def test_a_clean_shutdown_leaves_a_marker_that_the_next_start_takes_away() -> None:
    disk = SimulatedDisk()
    with_records(disk).close()
    assert disk.exists(MARKER)
    directory = reopened(disk)
    assert directory.was_clean
    assert not disk.exists(MARKER)
    log = directory.get(PARTITION)
    assert log is not None
    assert (log.log_end_offset, log.high_watermark, log.topic_id) == (3, 3, TOPIC_ID)
    disk.kill()
    assert not reopened(disk).was_clean


def test_a_clean_start_opens_no_log() -> None:
    disk = SimulatedDisk()
    directory = open_directory(disk)
    for number in range(50):
        directory.create(TopicPartition("idle", number), TOPIC_ID)
    directory.close()
    before = dict(disk.counts)
    directory = open_directory(disk)
    assert len(directory) == 50
    assert TopicPartition("idle", 7) in directory
    assert directory.opened() == []
    assert disk.counts["open"] - before["open"] <= 1
    assert disk.counts["read"] - before.get("read", 0) < 10
    assert directory.logs.topic_id_of(TopicPartition("idle", 7)) == TOPIC_ID


def test_logs_that_nobody_opened_after_a_crash_stay_unrecovered_over_a_clean_shutdown() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk)
    other = TopicPartition("other", 0)
    directory.create(other, TOPIC_ID)
    disk.kill()
    directory = reopened(disk)
    assert directory.unrecovered_count == 2
    assert directory.get(other) is not None
    directory.close()
    assert not disk.exists(MARKER)
    directory = reopened(disk)
    assert directory.unrecovered_count == 1
    assert [log.topic_partition for log in directory.recover()] == [PARTITION]
    directory.close()
    assert disk.exists(MARKER)


def test_a_deleted_partition_is_gone_at_once_and_its_files_later() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk)
    log = directory.get(PARTITION)
    assert log is not None
    read = log.read(0, max_bytes=100, end_offset=3)
    directory.delete(PARTITION)
    assert PARTITION not in directory
    assert directory.get(PARTITION) is None
    with pytest.raises(StorageError, match="closed"):
        append(log, batch(b"late"))
    gone = [name for name in disk.list("/data") if name.endswith("-delete")]
    assert len(gone) == 1
    assert read is not None
    remove_deleted(directory, 1 << 60)
    assert not disk.exists(f"/data/{gone[0]}")
    directory.create(PARTITION, TopicId(UUID(int=8)))
    fresh = directory.get(PARTITION)
    assert fresh is not None
    assert (fresh.log_end_offset, fresh.topic_id) == (0, UUID(int=8))


def test_a_sync_that_comes_too_late_for_a_deleted_partition_harms_nothing() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk)
    log = directory.get(PARTITION)
    assert log is not None
    append(log, batch(b"unsynced"))
    task = log.sync.begin()
    directory.delete(PARTITION)
    task.run()
    log.sync.finish(task)
    assert directory.is_online
    assert log.flushed_offset == 0


def test_a_deletion_that_a_crash_interrupted_is_finished_later() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk)
    directory.delete(PARTITION)
    disk.kill()
    directory = reopened(disk)
    assert len(directory) == 0
    remove_deleted(directory, 1)
    assert not [name for name in disk.list("/data") if name.endswith("-delete")]


def test_a_directory_of_another_topic_of_the_same_name_is_refused() -> None:
    disk = SimulatedDisk()
    with_records(disk).close()
    with pytest.raises(StorageError, match="deleted"):
        reopened(disk).get(PARTITION, TopicId(UUID(int=99)))


def test_a_roll_writes_the_recovery_point_so_that_a_crash_scans_one_segment() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk, 40)
    log = directory.get(PARTITION)
    assert log is not None
    assert len(log.segments) > 3
    base = log.state.segments.active.base_offset
    disk.kill()
    recovered = reopened(disk).get(PARTITION)
    assert recovered is not None
    assert recovered.flushed_offset == base
    assert len(values(recovered)) == 40


def test_retention_reaches_logs_that_nobody_opened() -> None:
    disk = SimulatedDisk()
    config = LogConfig(segment_bytes=700, retention_ms=1000)
    directory = with_records(disk, 40, config=config)
    directory.close()
    directory = open_directory(disk, config=config)
    assert sum(directory.upkeep.retention_steps(10**15)) > 0
    assert directory.opened() == []
    log = directory.get(PARTITION)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (40, 40)


def test_log_start_and_high_watermark_survive_in_checkpoints() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk, 10)
    log = directory.get(PARTITION)
    assert log is not None
    log.cutting.delete_records(4)
    log.state.set_high_watermark(7)
    directory.begin_checkpoint()()
    disk.kill()
    log = reopened(disk).get(PARTITION)
    assert log is not None
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (4, 7, 10)
    assert disk.read("/data/replication-offset-checkpoint") == b"0\n1\norders 0 7\n"


@pytest.mark.parametrize("checkpoint", ["written", "written before a crash", "on its way"])
def test_a_partition_made_anew_has_nothing_of_the_one_before_it_after_a_crash(checkpoint: str) -> None:
    disk = SimulatedDisk()
    directory = with_records(disk, 10)
    log = directory.get(PARTITION)
    assert log is not None
    log.cutting.delete_records(4)
    log.state.set_high_watermark(7)
    write = directory.begin_checkpoint()
    if checkpoint != "on its way":
        write()
    directory.delete(PARTITION)
    if checkpoint == "written before a crash":
        disk.kill()
        directory = reopened(disk)
    directory.create(PARTITION, TopicId(UUID(int=8)))
    if checkpoint == "on its way":
        write()
    log = directory.get(PARTITION)
    assert log is not None
    for number in range(6):
        append(log, batch(b"new %d" % number))
    disk.kill()
    log = reopened(disk).get(PARTITION)
    assert log is not None
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 0, 6)


def test_an_older_checkpoint_never_replaces_a_newer_one() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk, 2)
    log = directory.get(PARTITION)
    assert log is not None
    older = directory.begin_checkpoint()
    append(log, batch(b"c"))
    log.state.set_high_watermark(3)
    newer = directory.begin_checkpoint()
    newer()
    older()
    assert disk.read("/data/replication-offset-checkpoint") == b"0\n1\norders 0 3\n"


def test_offsets_of_many_logs_are_noted_in_steps_and_what_goes_in_between_is_not() -> None:
    disk = SimulatedDisk()
    directory = open_directory(disk)
    partitions = [TopicPartition("many", number) for number in range(1_001)]
    for partition in partitions:
        directory.create(partition, TOPIC_ID)
        log = directory.get(partition)
        assert log is not None
        append(log, batch(b"v"))
        log.state.set_high_watermark(1)
    steps = directory.note_offsets()
    next(steps)
    directory.delete(partitions[0])
    directory.delete(partitions[-1])
    assert len(list(steps)) == 1
    directory.begin_checkpoint_of_noted()()
    watermarks = disk.read("/data/replication-offset-checkpoint").decode().split("\n")
    assert "many 0 1" not in watermarks
    assert "many 1000 1" not in watermarks
    assert watermarks[1] == "999"


def test_a_roll_notes_its_own_log_for_the_checkpoint_and_no_other() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk, 2)
    other = TopicPartition("other", 0)
    directory.create(other, TOPIC_ID)
    log = directory.get(other)
    assert log is not None
    append(log, batch(b"v"))
    log.state.set_high_watermark(1)
    rolled = directory.get(PARTITION)
    assert rolled is not None
    rolled.sync.roll()
    assert disk.read("/data/replication-offset-checkpoint") == b"0\n1\norders 0 2\n"


def test_flush_ms_names_the_logs_that_are_due() -> None:
    clock = ManualClock()
    directory = with_records(SimulatedDisk(), clock=clock, config=LogConfig(flush_ms=1000))
    log = directory.get(PARTITION)
    assert directory.upkeep.flush_due(clock.now_ms + 999) == []
    assert directory.upkeep.flush_due(clock.now_ms + 1000) == [log]


def test_flush_messages_syncs_after_so_many_records() -> None:
    directory = with_records(SimulatedDisk(), 5, config=LogConfig(flush_messages=3))
    log = directory.get(PARTITION)
    assert log is not None
    assert log.flushed_offset == 3


def test_the_size_of_a_partition_is_known_without_opening_it() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk)
    name = str(PARTITION)
    size = directory.logs.size_of(name)
    assert size
    directory.close()
    directory = reopened(disk)
    assert directory.logs.size_of(name) is None
    directory.logs.note_sizes(directory.logs.measure([name, "absent-0"]))
    assert directory.logs.size_of(name) == size
    assert directory.opened() == []


def test_a_size_that_was_measured_before_a_log_was_opened_counts_for_nothing() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk)
    directory.close()
    directory = reopened(disk)
    measured = directory.logs.measure([str(PARTITION)])
    log = directory.get(PARTITION)
    assert log is not None
    directory.logs.note_sizes({str(PARTITION): 1, "absent-0": 1})
    assert directory.logs.size_of(str(PARTITION)) == log.size_bytes == measured[str(PARTITION)]
    directory.delete(PARTITION)
    directory.logs.note_sizes(measured)
    assert directory.logs.size_of(str(PARTITION)) is None
    assert directory.logs.measure([str(PARTITION)]) == {}
    assert directory.is_online


@pytest.mark.parametrize("length", [5, 9, 15, 30])
def test_a_topic_id_that_a_power_cut_has_torn_is_not_taken_for_damage_after_a_clean_shutdown(
    length: int,
) -> None:
    """Found by the simulator: the partition answered with an error from the second start on; a file that
    ended before its version was taken for one of an unknown version."""
    disk = SimulatedDisk()
    with_records(disk)
    disk.kill()
    torn = disk.open(f"/data/{PARTITION}/partition.metadata")
    torn.truncate(length)
    torn.close()
    directory = reopened(disk)
    assert [log.topic_partition for log in directory.recover()] == [PARTITION]
    directory.close()
    directory = reopened(disk)
    assert directory.was_clean
    log = directory.get(PARTITION, TOPIC_ID)
    assert log is not None
    assert log.topic_id == TOPIC_ID


def test_a_topic_id_with_a_hole_from_a_power_cut_does_not_keep_a_start_from_recovering_the_log() -> None:
    """Where it was written piece by piece any of them may be lost, the number of its version, too."""
    written = b"version: 0\ntopic_id: " + encode_uuid(TOPIC_ID).encode()
    for start, end in combinations(range(len(written) + 1), 2):
        disk = SimulatedDisk()
        with_records(disk)
        disk.kill()
        torn = disk.open(f"/data/{PARTITION}/partition.metadata")
        torn.pwrite(bytes(end - start), start)
        torn.close()
        assert [log.topic_id for log in reopened(disk).recover()] == [None], (start, end)


def test_a_topic_id_that_a_power_cut_has_taken_is_written_when_the_log_is_used() -> None:
    disk = SimulatedDisk()
    with_records(disk)
    disk.kill()
    disk.unlink(f"/data/{PARTITION}/partition.metadata")
    directory = reopened(disk)
    assert [log.topic_id for log in directory.recover()] == [None]
    directory.get(PARTITION, TOPIC_ID)
    directory.close()
    assert reopened(disk).logs.topic_id_of(PARTITION) == TOPIC_ID


def test_a_partition_that_a_full_disk_had_no_room_for_can_be_made_later() -> None:
    """Found by the simulator: what was left was taken for damage, or for the log, after a clean stop."""
    disk = SimulatedDisk()
    directory = open_directory(disk)
    disk.capacity_bytes = disk.used_bytes() + 20
    with pytest.raises(DiskFullError):
        directory.create(PARTITION, TOPIC_ID)
    disk.capacity_bytes = None
    directory.close()
    directory = reopened(disk)
    assert PARTITION not in directory
    directory.create(PARTITION, TOPIC_ID)
    log = directory.get(PARTITION, TOPIC_ID)
    assert log is not None
    assert log.topic_id == TOPIC_ID


def test_a_partition_whose_creation_failed_is_not_there_after_a_crash() -> None:
    """Found by the simulator: it was made in another data directory then, and after the next start the empty
    one was served in its place."""
    disk = SimulatedDisk()
    directory = open_directory(disk)
    disk.fail("write", errno.EIO)
    with pytest.raises(StorageError):
        directory.create(PARTITION, TOPIC_ID)
    disk.kill()
    disk.mend()
    assert PARTITION not in reopened(disk)


def test_a_transaction_whose_marker_is_not_committed_is_not_over_after_a_clean_restart() -> None:
    disk = SimulatedDisk()
    directory = with_records(disk, 1)
    log = directory.get(PARTITION)
    assert log is not None
    append(log, batch(b"open", producer_id=7, sequence=0, transactional=True))
    append(log, marker(7, commit=True), origin=AppendOrigin.COORDINATOR)
    log.state.set_high_watermark(2)
    assert log.last_stable_offset == 1
    directory.close()
    again = open_directory(disk).get(PARTITION)
    assert again is not None
    assert (again.high_watermark, again.log_end_offset, again.last_stable_offset) == (2, 3, 1)
    again.state.set_high_watermark(3)
    assert again.last_stable_offset == 3
