"""A fetch that waits for data: woken by its partitions, ended by one timer, never polling.

It counts the bytes that its partitions report and reads again only when there may be enough. It ends with
data, with a disturbance (a topic deleted, a leader changed), at the deadline, or when the connection closes;
in every case it stops watching. It begins in the turn of the event loop in which nothing was found, so that
nothing can come in between.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from riverlog.broker.exchange.delayed import NOT_YET, DelayedReply
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition


class DelayedFetch(DelayedReply):
    """`look` gives the response, or how many bytes there are if that is not enough."""

    __slots__ = ("_enough_bytes", "_have_bytes", "_is_over", "_look", "_on_end", "_partitions", "_timer")

    def __init__(
        self,
        partitions: Sequence[Partition | IdlePartition],
        look: Callable[[bool], Any | int],
        *,
        have_bytes: int,
        enough_bytes: int,
        timeout_s: float,
        on_end: Callable[[], None],
        turn: LoopTurn,
    ) -> None:
        super().__init__(turn)
        self._partitions = partitions
        self._look = look
        self._have_bytes = have_bytes
        self._enough_bytes = enough_bytes
        self._on_end = on_end
        self._is_over = False
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self.on_disturbance)
        for partition in partitions:
            partition.watch(self)

    def on_records(self, size_bytes: int) -> None:
        self._have_bytes += size_bytes
        if self._have_bytes >= self._enough_bytes:
            self.poll_soon()

    def on_warmed(self) -> None:
        """What was on the disk only is in memory: look whether it gives enough."""
        self.poll_soon()

    def on_disturbance(self) -> None:
        """Also at the end of the time: look once more, and tell what is there."""
        self._is_over = True
        self.poll_soon()

    def make(self) -> Any:
        found = self._look(self._is_over)
        if not isinstance(found, int):
            return found
        self._have_bytes = found
        return NOT_YET

    def drop(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.unwatch(self)
        self._on_end()
