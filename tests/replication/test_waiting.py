"""Those who wait on a partition."""

import asyncio

from riverlog.replication.waiting import WaitingProducers, WaitingReaders


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


def test_producers_are_released_by_offset_and_not_before() -> None:
    async def main() -> None:
        producers = WaitingProducers()
        first, second, again = producers.wait(5), producers.wait(9), producers.wait(5)
        producers.release(4)
        assert not first.done()
        producers.release(5)
        assert (first.result(), again.result(), second.done()) == (True, True, False)
        producers.release(100)
        assert second.result() is True

    asyncio.run(main())


def test_a_cancelled_wait_is_forgotten() -> None:
    async def main() -> None:
        producers = WaitingProducers()
        cancelled, kept = producers.wait(5), producers.wait(5)
        cancelled.cancel()
        producers.release(5)
        assert kept.result() is True

    asyncio.run(main())


def test_whoever_waits_for_a_lost_leader_is_told() -> None:
    async def main() -> None:
        producers = WaitingProducers()
        waiting = producers.wait(5)
        producers.give_up()
        assert waiting.result() is False
        producers.release(5)

    asyncio.run(main())
