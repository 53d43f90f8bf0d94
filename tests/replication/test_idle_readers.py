"""Those who wait for a partition whose log is not open, and what becomes of them when it is."""

from uuid import UUID

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch, TopicId, TopicPartition
from riverlog.replication.idle_partition import IdlePartition, IdleReaders
from riverlog.replication.roles import Leader
from riverlog.storage.log.closed_log import NOTHING, ClosedLog
from riverlog.storage.log.log import Log
from tests.replication.test_partition_model import Watching

PARTITION = TopicPartition("orders", 0)


def idle_partition(idle: IdleReaders, topic_partition: TopicPartition = PARTITION) -> IdlePartition:
    def nobody_looks() -> Log:
        raise AssertionError

    log = ClosedLog(NOTHING, 0, LogConfig, nobody_looks)  # type: ignore[arg-type]
    return IdlePartition(topic_partition, TopicId(UUID(int=1)), Leader(LeaderEpoch(0)), log, idle)


def test_readers_that_leave_are_not_kept() -> None:
    idle, reader = IdleReaders(), Watching()
    partition = idle_partition(idle)
    partition.watch(reader)
    assert len(idle) == 1
    partition.unwatch(reader)
    assert len(idle) == 0
    partition.let_go()
    assert idle.take(PARTITION) is None


def test_those_who_wait_are_kept_when_their_partition_is_not_and_go_with_the_last() -> None:
    idle, first, second = IdleReaders(), Watching(), Watching()
    partition = idle_partition(idle)
    partition.watch(first)
    partition.watch(second)
    partition.let_go()
    partition.unwatch(first)
    assert len(idle) == 1
    partition.unwatch(second)
    assert idle.take(PARTITION) is None


def test_those_who_wait_by_one_look_and_by_another_are_found_together() -> None:
    idle, first, second = IdleReaders(), Watching(), Watching()
    idle_partition(idle).watch(first)
    idle_partition(idle).watch(second)
    taken = idle.take(PARTITION)
    assert taken is not None
    assert list(taken.waiting) == [first, second]


def test_readers_that_an_open_partition_has_taken_over_can_still_leave() -> None:
    idle, first, second = IdleReaders(), Watching(), Watching()
    partition, other = idle_partition(idle), idle_partition(idle)
    partition.watch(first)
    other.watch(second)
    readers = idle.take(PARTITION)
    assert readers is not None
    partition.unwatch(first)
    assert list(readers.waiting) == [second]
    later = idle_partition(idle)
    later.watch(first)
    other.unwatch(second)
    assert (len(idle), list(readers.waiting)) == (1, [])


def test_a_change_disturbs_those_of_its_partition() -> None:
    idle, mine, others = IdleReaders(), Watching(), Watching()
    idle_partition(idle).watch(mine)
    idle_partition(idle, TopicPartition("orders", 1)).watch(others)
    idle.disturb(PARTITION)
    assert (mine.disturbed, others.disturbed) == (1, 0)
    idle.disturb_all()
    assert (mine.disturbed, others.disturbed) == (2, 1)


def test_one_who_has_left_takes_nobody_along_who_waits_now() -> None:
    idle, first, second = IdleReaders(), Watching(), Watching()
    partition, other = idle_partition(idle), idle_partition(idle)
    partition.watch(first)
    partition.unwatch(first)
    other.watch(second)
    partition.unwatch(first)
    waiting = idle.take(PARTITION)
    assert waiting is not None
    assert list(waiting.waiting) == [second]
