"""A fetch that waits for data: woken by its partitions, ended by one timer, never polling.

It counts the bytes that its partitions report and reads again only when there may be enough. It ends with
data, with a disturbance (a topic deleted, a leader changed), at the deadline, or by cancellation when the
connection closes; in every case it stops watching.
"""

import asyncio
from collections.abc import Callable
from typing import Self

from riverlog.broker.fetch_reads import FetchReads
from riverlog.replication.partition import Partition


async def wait_for_records(
    read: Callable[[], FetchReads], partitions: list[Partition], enough_bytes: int, timeout_s: float
) -> FetchReads:
    """Read until there are `enough_bytes`, something must be told, or the time is up."""
    with Watch(partitions, enough_bytes, timeout_s) as watch:
        # Once more, now that nothing can be missed: records may have come before the watch began.
        reads = read()
        while reads.size_bytes < enough_bytes and not reads.must_answer and not watch.is_over:
            await watch.until_worth_reading(reads.size_bytes)
            reads = read()
        return reads


class Watch:
    """Over some partitions, until it is left or the time is up."""

    __slots__ = ("_enough_bytes", "_have_bytes", "_partitions", "_signal", "_timeout_s", "_timer", "is_over")

    def __init__(self, partitions: list[Partition], enough_bytes: int, timeout_s: float) -> None:
        self.is_over = False
        """The time is up, or something other than records came."""
        self._partitions = partitions
        self._timeout_s = timeout_s
        self._enough_bytes = enough_bytes
        self._have_bytes = 0
        self._signal: asyncio.Future[None] | None = None

    def __enter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self.on_disturbance)
        for partition in self._partitions:
            partition.watch(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.unwatch(self)

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
