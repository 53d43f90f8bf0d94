"""Those who wait for records of a partition to be committed: producers for their own, readers for any.

Knows what is written and not committed by its size, so that a reader is told of bytes. Not here: what is
committed (`watermark`), and the log.
"""

import asyncio

from riverlog.replication.waiting import PendingAck, UnreadBytes, WaitingProducers, WaitingReaders
from riverlog.storage.log.log import Log


class CommitWaits:
    __slots__ = ("producers", "readers", "unread")

    def __init__(self, readers: WaitingReaders) -> None:
        self.readers = readers
        self.producers = WaitingProducers()
        self.unread = UnreadBytes()
        """What is written and not committed."""

    def count_anew(self, log: Log) -> None:
        """When what is written and not committed has changed otherwise than by an append or a commit."""
        self.unread.clear()
        if log.log_end_offset > log.high_watermark:
            self.unread.add(log.high_watermark, log.log_end_offset, size_bytes=log.size_bytes)

    def release(self, high_watermark: int) -> None:
        """All below is committed."""
        self.producers.release(high_watermark)
        self.readers.wake(self.unread.take(high_watermark))

    def future(self, end_offset: int) -> "asyncio.Future[bool]":
        """False if what is below will never be committed under this leader. Cancelling it only ends the
        wait."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(ended: PendingAck) -> None:
            if not future.done():
                future.set_result(bool(ended.is_committed))

        pending = self.producers.wait(end_offset, settle)
        future.add_done_callback(lambda _: pending.cancel())
        return future
