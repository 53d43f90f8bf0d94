"""Writing the end of a transaction into every partition that it touched, and only then completing it.

What can be written at once is, in the call that decided it; the rest is tried again, with growing
pauses, until it stands, there is no such partition any more, or the transaction is another coordinator's to
end. A transaction's markers are in one task's hands at a time. Whether a marker stands already is the
writer's to see, so that a crash between a marker and the completion does not leave two.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol

from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import VERSION_1, Transaction
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch, TopicPartition

MarkerWritten = asyncio.Future[ErrorCode | None]
"""None when the marker is committed."""

_PAUSE_S: Final = 0.05
_PAUSE_MAX_S: Final = 1.0
_NEEDS_NO_MARKER: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        # A later epoch has been there, which is given out only when this transaction has ended: its marker
        # stands, and the coordinator does not know that because a power cut took the end of its log.
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
_logger = logging.getLogger(__name__)


class Marker(NamedTuple):
    producer: ProducerIdAndEpoch
    coordinator_epoch: LeaderEpoch
    commit: bool
    client_version: int = VERSION_1


class MarkerWriter(Protocol):
    def write(self, partition: TopicPartition, marker: Marker, *, may_be_written: bool) -> MarkerWritten:
        """Append the marker; if it `may_be_written` already, see first whether it is."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """One transaction to be ended, for the shard of one partition under one leader epoch."""

    index: int
    coordinator_epoch: LeaderEpoch
    transaction: Transaction

    @property
    def marker(self) -> Marker:
        commit = self.transaction.state is TransactionState.PREPARE_COMMIT
        version = self.transaction.client_version
        return Marker(self.transaction.producer, self.coordinator_epoch, commit, version)


class MarkerSender:
    def __init__(
        self,
        writer: MarkerWriter,
        complete: Callable[[Work], MarkerWritten],
        is_ours: Callable[[Work], bool],
    ) -> None:
        """`is_ours` tells whether the shard that ordered the markers is the one that serves still."""
        self._writer = writer
        self._complete = complete
        self._is_ours = is_ours
        self._tasks: dict[Work, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        """Transactions that wait for a marker."""
        return len(self._tasks)

    def send(self, work: Work, *, may_be_written: bool) -> None:
        """Write the markers and complete the transaction; what cannot be done now is done later."""
        under_way = self._tasks.get(work)
        if under_way is not None and not under_way.done():
            return  # It goes on for a shard that was loaded again under the same epoch.
        left: dict[TopicPartition, MarkerWritten] = {}
        for partition in sorted(work.transaction.partitions):
            written = self._writer.write(partition, work.marker, may_be_written=may_be_written)
            if not (written.done() and (written.result() is None or written.result() in _NEEDS_NO_MARKER)):
                left[partition] = written
        if not left:
            completed = self._complete(work)
            if completed.done() and completed.result() is None:
                return
        task = asyncio.create_task(
            self._finish(work, left), name=f"markers of {work.transaction.transactional_id}"
        )
        self._tasks[work] = task
        task.add_done_callback(partial(self._forget, work))

    async def when_idle(self) -> None:
        """Return when every transaction that waited for a marker has it, or is another's to end."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, work: Work, task: "asyncio.Task[None]") -> None:
        """What has ended may have been sent again before it is noted here."""
        if self._tasks.get(work) is task:
            del self._tasks[work]

    async def _finish(self, work: Work, left: dict[TopicPartition, MarkerWritten]) -> None:
        pause_s = _PAUSE_S
        while left:
            again: list[TopicPartition] = []
            for partition, written in left.items():
                error = await written
                if error is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                    _logger.warning(
                        "the end of %s is left to its new coordinator: %s answers %s",
                        work.transaction.transactional_id,
                        partition,
                        error.name,
                    )
                    return
                if error is not None and error not in _NEEDS_NO_MARKER:
                    again.append(partition)
            if not again:
                break
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)
            if not self._is_ours(work):
                return  # Who leads the partition of the transaction now writes them, under its own epoch.
            left = {each: self._writer.write(each, work.marker, may_be_written=True) for each in again}
        await self._complete_at_last(work)

    async def _complete_at_last(self, work: Work) -> None:
        pause_s = _PAUSE_S
        while (error := await self._complete(work)) is not None:
            if error is ErrorCode.NOT_COORDINATOR and not self._is_ours(work):
                return  # The present leader of the partition finds the transaction prepared.
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_MAX_S)
