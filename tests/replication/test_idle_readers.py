"""Those who wait for a partition whose log is not open, and what becomes of them when it is."""

from riverlog.model.ids import TopicPartition
from riverlog.replication.idle_partition import IdleReaders
from tests.replication.test_partition_model import Watching

PARTITION = TopicPartition("orders", 0)


def test_readers_that_leave_are_not_kept() -> None:
    idle, reader = IdleReaders(), Watching()
    readers = idle.add(PARTITION, reader)
    assert len(idle) == 1
    idle.discard(PARTITION, readers, reader)
    assert len(idle) == 0


def test_readers_that_an_open_partition_has_taken_over_can_still_leave() -> None:
    idle, first, second = IdleReaders(), Watching(), Watching()
    readers = idle.add(PARTITION, first)
    assert idle.add(PARTITION, second) is readers
    assert idle.take(PARTITION) is readers
    idle.discard(PARTITION, readers, first)
    assert list(readers.waiting) == [second]
    later = idle.add(PARTITION, first)
    idle.discard(PARTITION, readers, second)
    assert (len(idle), list(later.waiting)) == (1, [first])


def test_a_change_disturbs_those_of_its_partition() -> None:
    idle, mine, others = IdleReaders(), Watching(), Watching()
    idle.add(PARTITION, mine)
    idle.add(TopicPartition("orders", 1), others)
    idle.disturb(PARTITION)
    assert (mine.disturbed, others.disturbed) == (1, 0)
    idle.disturb_all()
    assert (mine.disturbed, others.disturbed) == (2, 1)
