"""Those who wait for a partition whose log is not open, and what becomes of them when it is."""

from uuid import UUID

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch, TopicPartition
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
    return IdlePartition(topic_partition, UUID(int=1), Leader(LeaderEpoch(0)), log, idle)


def test_readers_that_leave_are_not_kept() -> None:
    idle, reader = IdleReaders(), Watching()
    partition = idle_partition(idle)
    partition.watch(reader)
    assert len(idle) == 1
    partition.unwatch(reader)
    assert len(idle) == 0
    idle.forget()
    assert idle.take(PARTITION) is None


def test_a_reader_that_waits_is_not_forgotten() -> None:
    idle, reader = IdleReaders(), Watching()
    partition = idle_partition(idle)
    partition.watch(reader)
    idle.forget()
    taken = idle.take(PARTITION)
    assert taken is not None
    assert list(taken.waiting) == [reader]


def test_who_begins_to_wait_after_all_were_forgotten_is_found() -> None:
    idle, first, second = IdleReaders(), Watching(), Watching()
    partition = idle_partition(idle)
    idle.forget()
    partition.watch(first)
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


def test_a_partition_that_was_let_go_finds_those_who_wait_for_it_again() -> None:
    """One that is kept no longer may still be in use by a request, which then begins to wait."""
    idle, reader = IdleReaders(), Watching()
    partition = idle_partition(idle)
    idle.forget_one(PARTITION)
    partition.watch(reader)
    assert len(idle) == 1
    idle.forget_one(PARTITION)
    waiting = idle.take(PARTITION)
    assert waiting is not None
    assert list(waiting.waiting) == [reader]
