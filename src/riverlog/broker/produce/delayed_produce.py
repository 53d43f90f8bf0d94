"""A produce that waits for its acknowledgement: told by its partitions, ended by one timer, without a task.

It ends when every partition has its records committed or never will, when the request's time is up, or when
the connection closes; in every case it stops waiting at all of them. Not here: when records are committed
(`replication.watermark`), and what is written.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from riverlog.broker.exchange.delayed import NOT_YET, DelayedReply
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.model.errors import ErrorCode
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Follower
from riverlog.replication.waiting import PendingAck
from riverlog.wire.messages.produce import PartitionProduceResponse, ProduceResponse

_OF_A_FAILED_DISK: Final = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER})


class Unacknowledged(NamedTuple):
    reply: PartitionProduceResponse
    """What to answer if it is acknowledged; changed where it is not."""
    partition: Partition
    end_offset: int


class DelayedProduce(DelayedReply):
    __slots__ = ("_is_over", "_left_count", "_pending", "_response", "_timer")

    def __init__(
        self, response: ProduceResponse, waiting: Sequence[Unacknowledged], timeout_s: float, turn: LoopTurn
    ) -> None:
        super().__init__(turn)
        self._response = response
        self._is_over = False
        self._pending: list[tuple[Unacknowledged, PendingAck]] = []
        self._left_count = 0
        for each in waiting:
            self.wait_for(each)
        self._timer = asyncio.get_running_loop().call_later(max(timeout_s, 0), self._on_timeout)

    def __len__(self) -> int:
        """How many were waited for."""
        return len(self._pending)

    @property
    def is_settled(self) -> bool:
        """Nothing is left to be waited for, also before anybody has begun to."""
        return self._is_over or not self._left_count

    def wait_for(self, each: Unacknowledged) -> None:
        """To be called in the turn in which it was written: later another leader may have written there."""
        pending = each.partition.when_acknowledged(each.end_offset, self._on_settled)
        if pending is not None:
            self._pending.append((each, pending))
            self._left_count += 1

    def _on_settled(self, settled: PendingAck) -> None:
        self._left_count -= 1
        if self._left_count == 0:
            self.poll_soon()

    def _on_timeout(self) -> None:
        self._is_over = True
        self.poll_soon()

    def make(self) -> object:
        if not self.is_settled:
            return NOT_YET
        for (reply, partition, _), pending in self._pending:
            error = _error(pending, partition)
            if error is not None:
                reply.error_code = error
                reply.base_offset = -1
        return self._response

    def drop(self) -> None:
        self._timer.cancel()
        for _, pending in self._pending:
            pending.cancel()


def _error(pending: PendingAck, partition: Partition) -> ErrorCode | None:
    """Of records that stand in the log: clients must take them for possibly written, and repeat them as they
    are (ADR 20)."""
    if pending.is_committed is None:
        return ErrorCode.REQUEST_TIMED_OUT
    if pending.is_committed:
        return None if partition.has_enough_replicas else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    if isinstance(partition.role, Follower):
        return ErrorCode.REQUEST_TIMED_OUT
    error = partition.refusal() or ErrorCode.KAFKA_STORAGE_ERROR
    # A disk has failed. Another replica may have the records already, and lead with them.
    may_be_elsewhere = error in _OF_A_FAILED_DISK and not partition.in_sync.is_sole
    return ErrorCode.REQUEST_TIMED_OUT if may_be_elsewhere else error
