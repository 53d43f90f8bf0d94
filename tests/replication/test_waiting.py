"""Those who wait on a partition."""

from riverlog.replication.waiting import PendingAck, UnreadBytes, WaitingProducers, WaitingReaders


class Counting:
    def __init__(self, readers: WaitingReaders) -> None:
        self.readers = readers
        self.size_bytes = 0
        self.disturbed = 0

    def on_records(self, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self.readers.discard(self)

    def on_disturbance(self) -> None:
        self.disturbed += 1


def test_readers_may_leave_while_they_are_woken() -> None:
    readers = WaitingReaders()
    watching = [Counting(readers) for _ in range(3)]
    for reader in watching:
        readers.add(reader)
    readers.wake(10)
    readers.wake(10)
    assert [reader.size_bytes for reader in watching] == [10, 10, 10]
    assert len(readers) == 0


def test_a_disturbance_reaches_everybody() -> None:
    readers = WaitingReaders()
    watching = [Counting(readers) for _ in range(2)]
    for reader in watching:
        readers.add(reader)
    readers.disturb()
    assert [reader.disturbed for reader in watching] == [1, 1]
    readers.discard(watching[0])
    readers.discard(watching[0])


def waiting_for(producers: WaitingProducers, *end_offsets: int) -> tuple[list[PendingAck], list[PendingAck]]:
    """The waits, and those of them that have ended, in that order."""
    ended: list[PendingAck] = []
    return [producers.wait(each, ended.append) for each in end_offsets], ended


def test_producers_are_released_by_offset_and_not_before() -> None:
    producers = WaitingProducers()
    (first, second, again), ended = waiting_for(producers, 5, 9, 5)
    producers.release(4)
    assert not ended
    producers.release(5)
    assert ended == [first, again]
    producers.release(100)
    assert ended == [first, again, second]
    assert all(each.is_committed for each in ended)


def test_a_cancelled_wait_is_not_told() -> None:
    producers = WaitingProducers()
    (cancelled, kept), ended = waiting_for(producers, 5, 5)
    cancelled.cancel()
    cancelled.cancel()
    producers.release(5)
    kept.cancel()
    assert ended == [kept]
    assert (cancelled.is_committed, kept.is_committed) == (None, True)


def test_whoever_waits_for_a_lost_leader_is_told() -> None:
    producers = WaitingProducers()
    (first, second), ended = waiting_for(producers, 9, 5)
    producers.give_up()
    producers.release(9)
    assert ended == [second, first]
    assert [each.is_committed for each in ended] == [False, False]
    assert len(producers) == 0


def test_cancelled_waits_do_not_pile_up() -> None:
    """As when every request times out before a stuck watermark moves."""
    producers = WaitingProducers()
    (kept,), ended = waiting_for(producers, 10_000)
    for number in range(5_000):
        producers.wait(number, ended.append).cancel()
        assert len(producers) <= 3
    producers.release(10_000)
    assert ended == [kept]


def test_a_release_touches_only_those_it_releases() -> None:
    """Of many that wait, each is compared a few times, however often the watermark moves."""
    compared = 0

    class Offset(int):
        def __lt__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int.__lt__(self, other)  # type: ignore[operator]

    producers = WaitingProducers()
    count = 2_000
    waits, ended = waiting_for(producers, *map(Offset, range(1, count + 1)))
    compared = 0
    for high_watermark in range(1, count + 1):
        producers.release(high_watermark)
    assert ended == waits
    assert 0 < compared < count * 40, "a whole queue for each release would be millions"


def test_unread_bytes_are_told_once_and_never_too_few() -> None:
    unread = UnreadBytes()
    for number in range(1000):
        unread.add(number, number + 1, size_bytes=10)
    assert unread.take(0) == 0
    assert unread.take(100) == 1000
    assert unread.take(100) == 0
    assert unread.take(500) >= 4000
    assert unread.take(1000) >= 5000
    assert unread.take(1000) == 0
