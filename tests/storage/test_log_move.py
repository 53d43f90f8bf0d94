"""A log moves to another data directory while it is written; a crash in between loses nothing (I1, I10)."""

from itertools import count
from uuid import UUID

import pytest

from riverlog.model.config.slices import CleanupPolicy, LogConfig
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.directory.log_move import LogMove, settle_moves
from riverlog.storage.log.appends import Duplicate
from riverlog.storage.log.log import Log
from riverlog.testing.simulated_disk import PowerOff, SimulatedDisk
from tests.storage.checks import dump_producers, violations
from tests.storage.logs import PARTITION, ManualClock, append, batch, read_all, values
from tests.storage.scenarios import CONFIG, TOPIC_ID, Life

PATHS = ("/a", "/b")
SHARDS = 3


class Node:
    """Two data directories, and what a node does with them at its start."""

    def __init__(self, disk: SimulatedDisk, config: LogConfig = CONFIG) -> None:
        uuids = count(disk.operations * 100)
        self.first, self.second = self.directories = [
            LogDirectory.open(
                path,
                disk=disk,
                clock=ManualClock(),
                node_id=NodeId(1),
                cluster_id="cluster",
                new_uuid=lambda: UUID(int=next(uuids)),
                config_for=lambda topic: config,
            )
            for path in PATHS
        ]
        settle_moves(self.directories)

    @property
    def home(self) -> LogDirectory:
        (home,) = [each for each in self.directories if PARTITION in each] or [self.first]
        return home

    @property
    def other(self) -> LogDirectory:
        return self.second if self.home is self.first else self.first

    def log(self) -> Log:
        self.home.create(PARTITION, TOPIC_ID)
        log = self.home.get(PARTITION, TOPIC_ID)
        assert log is not None
        return log

    def move(self) -> LogMove:
        target = self.other
        return LogMove(self.log(), self.home, target, target.futures.begin(PARTITION, TOPIC_ID))

    def close(self) -> None:
        for each in self.directories:
            each.close()


def copy_piece(move: LogMove) -> bool:
    piece = move.next_piece()
    if piece is not None:
        move.write(piece.file.pread(piece.length, piece.position))
    return move.lag > 0


def finish(move: LogMove) -> Log:
    while copy_piece(move):
        pass
    move.prepare()()
    log = move.finish()
    move.begin_removal()()
    return log


class MovedLife(Life):
    """Records are written and synced before, during and after moves there and back."""

    def run(self, disk: SimulatedDisk, *, synced: bool, rounds: int = 12) -> None:
        node = Node(disk)
        log, move = node.log(), None
        for number in range(rounds):
            self._round(log, number)
            if synced:
                log.sync.flush()
            self.acknowledged = log.log_end_offset
            if move is None:
                move = node.move()
            elif number % 3:
                copy_piece(move)
            else:
                log, move = finish(move), None
            if number == rounds // 2:
                log.state.set_high_watermark(log.log_end_offset)
                node.close()
                self.acknowledged = log.log_end_offset
                node = Node(disk)
                log, move = node.log(), None


def faults_after(power_off_after: int, seed: int | None) -> list[str]:
    disk, life = SimulatedDisk(), MovedLife()
    disk.power_off_after = power_off_after
    try:
        life.run(disk, synced=seed is not None)
    except PowerOff:
        disk.kill() if seed is None else disk.crash(seed)
    node = Node(disk)
    log = node.log()
    faults = life.faults_of(log) + violations(log, disk)
    moved = finish(node.move())
    faults += life.faults_of(moved) + violations(moved, disk)
    node.close()
    log = Node(disk).log()
    return faults + life.faults_of(log) + violations(log, disk)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_power_cut_at_any_moment_of_a_move_loses_nothing_acknowledged(shard: int) -> None:
    disk = SimulatedDisk()
    MovedLife().run(disk, synced=True)
    for power_off_after in range(1 + shard, disk.operations + 1, SHARDS):
        seed = power_off_after % 7
        assert faults_after(power_off_after, seed) == [], f"faults_after({power_off_after}, {seed})"


def test_a_kill_at_any_moment_of_a_move_loses_nothing_written() -> None:
    disk = SimulatedDisk()
    MovedLife().run(disk, synced=False)
    for power_off_after in range(1, disk.operations + 1):
        assert faults_after(power_off_after, None) == [], f"faults_after({power_off_after}, None)"


def with_records(node: Node, number: int = 20) -> Log:
    log = node.log()
    for each in range(number):
        append(log, batch(b"%d" % each * 20, producer_id=5, epoch=0, sequence=each))
    log.state.set_high_watermark(number)
    return log


def test_the_moved_log_is_the_same_to_producers_and_readers() -> None:
    node = Node(SimulatedDisk())
    log = with_records(node)
    log.state.assign_leader_epoch(LeaderEpoch(3))
    log.cutting.delete_records(7)
    before = values(log), log.state.epochs.entries, dump_producers(log.producers), log.high_watermark
    moved = finish(node.move())
    moved.state.assign_leader_epoch(
        LeaderEpoch(3)
    )  # As whoever leads does with a log that it opens: no record shows it yet.
    assert moved.directory == "/b/orders-0"
    assert (
        values(moved),
        moved.state.epochs.entries,
        dump_producers(moved.producers),
        moved.high_watermark,
    ) == before
    assert moved.log_start_offset == 7
    again = moved.append(batch(b"19" * 20, producer_id=5, epoch=0, sequence=19), leader_epoch=LeaderEpoch(3))
    assert isinstance(again, Duplicate)
    assert PARTITION not in node.first
    assert PARTITION in node.second


def test_producers_whose_records_are_gone_are_still_known_after_a_move_and_a_restart() -> None:
    disk = SimulatedDisk()
    node = Node(disk)
    log = with_records(node)
    log.cutting.delete_records(20)
    assert values(finish(node.move())) == []
    node.close()
    log = Node(disk).log()
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)
    assert isinstance(
        log.append(batch(b"19" * 20, producer_id=5, epoch=0, sequence=19), leader_epoch=LeaderEpoch(0)),
        Duplicate,
    )


def test_a_clean_restart_goes_on_with_the_copy_and_a_crash_begins_it_again() -> None:
    for is_clean in (True, False):
        disk = SimulatedDisk()
        node = Node(disk)
        with_records(node)
        move = node.move()
        copy_piece(move)
        copied = move.future.log_end_offset
        assert 0 < copied < 20
        node.close() if is_clean else disk.kill()
        node = Node(disk)
        assert list(node.second.futures) == [PARTITION]
        future = node.second.futures.resume(PARTITION, TOPIC_ID, is_trusted=True)
        assert future.log_end_offset == (copied if is_clean else 0)
        moved = finish(LogMove(node.log(), node.first, node.second, future))
        assert [offset for offset, _ in values(moved)] == list(range(20))


def test_a_full_disk_under_the_copy_leaves_the_log_where_it_is() -> None:
    disk = SimulatedDisk()
    node = Node(disk)
    log = with_records(node)
    move = node.move()
    disk.capacity_bytes = disk.used_bytes() + 100
    with pytest.raises(DiskFullError):
        finish(move)
    move.give_up()
    disk.capacity_bytes = None
    append(log, batch(b"more"))
    assert [offset for offset, _ in values(node.log())] == list(range(21))
    assert list(node.second.futures) == []
    assert [offset for offset, _ in values(finish(node.move()))] == list(range(21))


def test_a_log_with_damage_is_not_moved_and_keeps_what_lies_behind_it() -> None:
    disk = SimulatedDisk()
    node = Node(disk)
    log = with_records(node)
    node.close()
    damaged, behind = log.segments[1], log.segments[2].base_offset
    disk.open(damaged.log.path).pwrite(b"\x7f\xff\xff\xff", 8)
    node = Node(disk)
    move = node.move()
    with pytest.raises(StorageError, match=f"offset {damaged.base_offset}"):
        finish(move)
    move.give_up()
    assert [record.offset for record in read_all(node.log(), start=behind)] == list(range(behind, 20))
    assert list(node.second.futures) == []


def test_a_copy_whose_original_is_deleted_stops() -> None:
    node = Node(SimulatedDisk())
    with_records(node)
    move = node.move()
    copy_piece(move)
    node.first.delete(PARTITION)
    with pytest.raises(StorageError):
        finish(move)


def test_compaction_waits_for_the_end_of_a_move() -> None:
    config = LogConfig(segment_bytes=700, cleanup_policies=frozenset({CleanupPolicy.COMPACT}))
    node = Node(SimulatedDisk(), config)
    log = with_records(node)
    log.sync.flush()
    move = node.move()
    segments = log.segments[:1]
    cleaned = log.replacement.open_cleaned(0, buffer_max=1000)
    cleaned.finish([])
    assert not log.replacement.replace_segments(segments, cleaned)
    assert not finish(move).replacement.is_moving
