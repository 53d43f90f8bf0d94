"""After a kill only the logs that were opened are recovered; after a power cut, or in doubt, all of them."""

from random import Random
from uuid import UUID

import pytest

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.directory.opened_logs import read_opened
from riverlog.storage.files import names
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk
from tests.storage.logs import ManualClock, append, batch, values

PARTITIONS = [TopicPartition("orders", index) for index in range(4)]
TOPIC_ID = TopicId(UUID(int=7))
OPENED = "/data/riverlog-opened"
MARKER = "/data/.kafka_cleanshutdown"


def open_directory(disk: SimulatedDisk, boot_id: str = "boot") -> LogDirectory:
    numbers = iter(range(10_000))
    return LogDirectory.open(
        "/data",
        disk=disk,
        clock=ManualClock(),
        node_id=NodeId(1),
        cluster_id="cluster",
        new_uuid=lambda: UUID(int=next(numbers)),
        config_for=lambda topic: LogConfig(segment_bytes=500),
        boot_id=boot_id,
    )


def written(disk: SimulatedDisk) -> LogDirectory:
    """All partitions have a record, and the directory was closed cleanly since."""
    directory = open_directory(disk)
    for partition in PARTITIONS:
        directory.create(partition, TOPIC_ID)
        append(log_of(directory, partition), batch(b"first"))
    directory.close()
    return open_directory(disk)


def log_of(directory: LogDirectory, partition: TopicPartition) -> Log:
    log = directory.get(partition)
    assert log is not None
    return log


def test_after_a_kill_the_logs_that_were_opened_are_recovered() -> None:
    disk = SimulatedDisk()
    directory = written(disk)
    append(log_of(directory, PARTITIONS[1]), batch(b"more"))
    assert directory.logs.facts_of(PARTITIONS[2]) is not None
    disk.kill()
    directory = open_directory(disk)
    assert directory.unrecovered_count == 1
    assert not directory.was_clean
    assert [log.topic_partition for log in directory.recover()] == [PARTITIONS[1]]
    assert [len(values(log_of(directory, each))) for each in PARTITIONS] == [1, 2, 1, 1]


def test_what_was_not_recovered_before_the_next_kill_is_still_to_be() -> None:
    disk = SimulatedDisk()
    append(log_of(written(disk), PARTITIONS[1]), batch(b"more"))
    disk.kill()
    open_directory(disk)
    disk.kill()
    assert open_directory(disk).unrecovered_count == 1


@pytest.mark.parametrize("boot_id", ["another", ""])
def test_under_another_boot_id_every_log_is_recovered(boot_id: str) -> None:
    disk = SimulatedDisk()
    written(disk)
    disk.kill()
    assert open_directory(disk, boot_id).unrecovered_count == len(PARTITIONS)


def test_a_clean_shutdown_leaves_a_marker_and_no_list() -> None:
    disk = SimulatedDisk()
    directory = written(disk)
    assert disk.exists(OPENED)
    directory.close()
    assert disk.exists(MARKER)
    assert not disk.exists(OPENED)


def test_a_partition_that_was_not_made_whole_is_taken_away_after_a_kill() -> None:
    disk = SimulatedDisk()
    directory = written(disk)
    directory.create(TopicPartition("new", 0), None)
    disk.kill()
    directory = open_directory(disk)
    assert TopicPartition("new", 0) not in directory
    assert len(directory) == len(PARTITIONS)


def test_where_there_is_no_room_for_a_name_all_logs_are_recovered() -> None:
    disk = SimulatedDisk()
    directory = written(disk)
    disk.capacity_bytes = disk.used_bytes()
    assert len(values(log_of(directory, PARTITIONS[3]))) == 1
    assert not disk.exists(OPENED)
    disk.kill()
    disk.capacity_bytes = None
    assert open_directory(disk).unrecovered_count == len(PARTITIONS)


class Model:
    """A directory, and what is in its logs."""

    def __init__(self, seed: int) -> None:
        self.disk = SimulatedDisk()
        self.random = Random(seed)
        self.boots = 0
        self.records: dict[TopicPartition, int] = {}
        self.directory = open_directory(self.disk, "boot 0")

    def act(self) -> None:
        partition = self.random.choice(PARTITIONS)
        match self.random.randrange(6):
            case 0 | 1 | 2:
                self.append(partition)
            case 3:
                self.directory.delete(partition)
                self.records.pop(partition, None)
            case 4:
                self.directory.close()
                self.directory = open_directory(self.disk, f"boot {self.boots}")
            case 5:
                list(self.directory.upkeep.retention_steps(0))
        self.check(self.random.choice(PARTITIONS))

    def append(self, partition: TopicPartition) -> None:
        if partition not in self.directory:
            self.directory.create(partition, TOPIC_ID)
            self.records[partition] = 0
        log = log_of(self.directory, partition)
        append(log, batch(b"x" * self.random.randrange(200)))
        self.records[partition] += 1
        log.state.commit_all()

    def check(self, partition: TopicPartition) -> None:
        """What is told of a log, open or not, is what it holds."""
        if partition not in self.records or partition not in self.directory:
            return
        facts = self.directory.logs.facts_of(partition)
        if facts is not None:
            assert facts.log_end_offset == self.records[partition]
            assert facts.size_bytes == self.directory.logs.measure([str(partition)])[str(partition)]
        else:
            assert log_of(self.directory, partition).log_end_offset == self.records[partition]

    def kill(self) -> None:
        """In the middle of the next actions. What was being written is there, or not."""
        before = dict(self.records)
        self.disk.power_off_after = self.disk.operations + self.random.randrange(60)
        try:
            for _ in range(8):
                before = dict(self.records)
                self.act()
        except PowerOff:
            pass
        self.disk.kill()
        self.directory = open_directory(self.disk, f"boot {self.boots}")
        for partition in PARTITIONS:
            if partition not in self.directory:
                self.records.pop(partition, None)
                continue
            told = self.directory.logs.facts_of(partition)
            found = log_of(self.directory, partition).log_end_offset
            assert told is None or told.log_end_offset == found
            assert found in (
                before.get(partition, 0),
                before.get(partition, 0) + 1,
                self.records.get(partition),
            )
            assert len(values(log_of(self.directory, partition))) == found
            self.records[partition] = found
            log_of(self.directory, partition).state.commit_all()


@pytest.mark.parametrize("seed", range(40))
def test_what_is_told_of_logs_is_what_they_hold_whatever_happens(seed: int) -> None:
    model = Model(seed)
    for _ in range(6):
        for _ in range(12):
            model.act()
        model.kill()


def test_of_a_log_without_a_record_only_its_place_is_saved() -> None:
    for seed in range(5):
        disk = SimulatedDisk()
        directory = open_directory(disk)
        for partition in PARTITIONS:
            directory.create(partition, TOPIC_ID)
            log = log_of(directory, partition)
            log.state.assign_leader_epoch(LeaderEpoch(3))
            log.state.commit_all()
        append(log_of(directory, PARTITIONS[1]), batch(b"first"), leader_epoch=3)
        directory.close()
        disk.crash(seed)
        directory = open_directory(disk)
        assert directory.was_clean
        found = [
            sorted(each.rpartition(".")[2] for each in disk.list(f"/data/{name}")) for name in PARTITIONS
        ]
        assert found[0] == found[2] == found[3] == ["log", "metadata"]
        assert "snapshot" in found[1]
        for partition in PARTITIONS:
            log = log_of(directory, partition)
            assert log.topic_id == TOPIC_ID
            assert len(values(log)) == (partition is PARTITIONS[1])
            log.state.assign_leader_epoch(LeaderEpoch(7))
            append(log, batch(b"more"), leader_epoch=7)
        directory.close()
        disk.crash(seed)
        directory = open_directory(disk)
        epochs = [log_of(directory, each).state.epochs.entries for each in PARTITIONS]
        assert epochs == [((7, 0),), ((3, 0), (7, 1)), ((7, 0),), ((7, 0),)]


@pytest.mark.parametrize("left", [b"", b"bo", b"boot"])
def test_a_file_of_which_a_power_cut_left_no_line_says_nothing(left: bytes) -> None:
    """A broker that could not read it would never start again."""
    disk = SimulatedDisk()
    disk.make_directories("/data")
    if left:
        disk.open(f"/data/{names.OPENED}", create=True).pwrite(left, 0)
    else:
        disk.open(f"/data/{names.OPENED}", create=True)
    assert read_opened(disk, "/data", "boot") is None
