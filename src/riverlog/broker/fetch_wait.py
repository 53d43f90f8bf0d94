"""A fetch that waits for data: woken by its partitions, ended by one timer, never polling.

It counts the bytes that its partitions report and reads again only when there may be enough. It ends with
data, with a disturbance (a topic deleted, a leader changed), at the deadline, or by cancellation when the
connection closes; in every case it stops watching.
"""

import asyncio
from collections.abc import Callable

from riverlog.broker.fetch_reads import FetchReads
from riverlog.replication.partition import Partition


async def wait_for_records(
    read: Callable[[], FetchReads], partitions: list[Partition], enough_bytes: int, timeout_s: float
) -> FetchReads:
    """Read until there are `enough_bytes`, something must be told, or the time is up."""
    wait = _Wait(enough_bytes)
    timer = asyncio.get_running_loop().call_later(timeout_s, wait.on_disturbance)
    for partition in partitions:
        partition.watch(wait)
    try:
        # Once more, now that nothing can be missed: records may have come before the watch began.
        reads = read()
        while reads.size_bytes < enough_bytes and not reads.must_answer and not wait.is_over:
            await wait.until_worth_reading(reads.size_bytes)
            reads = read()
        return reads
    finally:
        timer.cancel()
        for partition in partitions:
            partition.unwatch(wait)


class _Wait:
    __slots__ = ("_enough_bytes", "_have_bytes", "_signal", "is_over")

    def __init__(self, enough_bytes: int) -> None:
        self.is_over = False
        self._enough_bytes = enough_bytes
        self._have_bytes = 0
        self._signal: asyncio.Future[None] | None = None

    async def until_worth_reading(self, have_bytes: int) -> None:
        self._have_bytes = have_bytes
        self._signal = asyncio.get_running_loop().create_future()
        await self._signal

    def on_records(self, size_bytes: int) -> None:
        self._have_bytes += size_bytes
        if self._have_bytes >= self._enough_bytes:
            self._wake()

    def on_disturbance(self) -> None:
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._signal is not None and not self._signal.done():
            self._signal.set_result(None)
