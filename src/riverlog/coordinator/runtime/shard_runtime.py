"""A shard that serves: carries out what it decides on its partition's log.

A decision is taken, written and replayed in one go on the event loop, so decisions of a shard follow each
other and each sees all before it. Nothing is answered before everything the answer rests on is committed:
replies wait for the high watermark, also those of decisions that wrote nothing. When the log refuses the
records, the shard stays as it was and the waiting requests are told.

A shard belongs to one partition under one leader epoch: under another the log may be another, so it is let go
and loaded again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, Generic, NamedTuple, TypeVar

from riverlog.coordinator.runtime.append_errors import error_for_client
from riverlog.coordinator.runtime.effects import (
    CancelTimer,
    CoordinatorRecord,
    Effects,
    Order,
    Reply,
    SetTimer,
    TimerKey,
    Token,
)
from riverlog.coordinator.runtime.loading import PIECE_BYTES
from riverlog.coordinator.runtime.shard import Shard
from riverlog.coordinator.runtime.timers import Timers
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, ProducerIdAndEpoch
from riverlog.records.batch import HEADER_BYTES
from riverlog.records.builder import ControlType, build_batch, build_control_batch
from riverlog.records.compression import Codec
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Leader
from riverlog.storage.log.appends import AppendOrigin

S = TypeVar("S", bound=Shard)
R = TypeVar("R")
ShardAnswer = asyncio.Future[R | ErrorCode]

_RECORD_OVERHEAD_BYTES: Final = 32
_TIMER_RETRY_MS: Final = 500

_logger = logging.getLogger(__name__)


class ShardLimits(NamedTuple):
    commit_timeout_ms: int = 5_000
    """How long a reply waits for its records to be committed."""
    parked_max: int = 20_000
    """Requests of one shard that may wait for a reply at once."""
    codec: Codec = Codec.NONE
    load_bytes: int = PIECE_BYTES
    """How much of a log is read at a time when a shard is loaded; at most a piece."""


@dataclass(frozen=True, slots=True)
class OrderFrom:
    """Which shard gave an order: that of one partition under one leader epoch."""

    index: int
    leader_epoch: LeaderEpoch


class ShardRuntime(Generic[S]):
    def __init__(
        self,
        index: int,
        partition: Partition,
        shard: S,
        timers: Timers,
        clock: Clock,
        rules: ShardLimits,
        take_order: Callable[[OrderFrom, Order], None],
    ) -> None:
        self.index = index
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.shard = shard
        self._take_order = take_order
        self._timers = timers
        self._clock = clock
        self._rules = rules
        self._numbers = count(1)
        self._parked: dict[Token[Any], ShardAnswer[Any]] = {}
        self._set_keys: set[TimerKey] = set()
        self._is_closed = False
        self._refused: ErrorCode | None = None
        """Why the last decision could not be written."""

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the partition still, under the same epoch."""
        role = self.partition.role
        return not self._is_closed and isinstance(role, Leader) and role.epoch == self.leader_epoch

    def begin(self) -> None:
        """The log has been replayed: serve."""
        now_ms = self._clock.wall_ms()
        log = self.partition.log
        may_have_lost = not log.was_clean and not log.config.acks_fsync
        self._carry_out(self.shard.on_loaded(now_ms, may_have_lost=may_have_lost), now_ms)

    def run(self, decide: Callable[[S, Token[R], int], Effects]) -> ShardAnswer[R]:
        """The reply to a fresh token, which this decision or a later one gives."""
        answer: ShardAnswer[R] = asyncio.get_running_loop().create_future()
        if len(self._parked) >= self._rules.parked_max:
            answer.set_result(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return answer
        token: Token[R] = Token(next(self._numbers))
        self._parked[token] = answer
        now_ms = self._clock.wall_ms()
        try:
            self._carry_out(decide(self.shard, token, now_ms), now_ms)
        except BaseException:
            self._parked.pop(token, None)
            raise
        if not answer.done():
            answer.add_done_callback(lambda _: self._parked.pop(token, None))
        return answer

    def ask(self, query: Callable[[S], R]) -> ShardAnswer[R]:
        """What the shard knows, once everything that it knows is committed."""
        return self.run(lambda shard, token, _: Effects(replies=(Reply(token, query(shard)),)))

    def decide(self, decide: Callable[[S, int], Effects]) -> None:
        """A decision that no request waits for."""
        now_ms = self._clock.wall_ms()
        self._carry_out(decide(self.shard, now_ms), now_ms)

    def ring(self, key: TimerKey) -> bool:
        """Let a timer go off before its time; True if the shard wants it to go off again at once."""
        now_ms = self._clock.wall_ms()
        effects = self.shard.on_timer(key, now_ms)
        if self._carry_out(effects, now_ms) is not None:
            return False
        return any(isinstance(timer, SetTimer) and timer == SetTimer(key, 0) for timer in effects.timers)

    async def when_committed(self) -> None:
        """Return when all that was decided is committed, or will not be in time."""
        ended: ShardAnswer[None] = asyncio.get_running_loop().create_future()
        self._when_committed(partial(_settle, ended), has_written=True)
        await ended

    def write_marker(
        self, producer: ProducerIdAndEpoch, coordinator_epoch: int, *, commit: bool
    ) -> ShardAnswer[None]:
        """End a transaction in this partition; done when the marker is committed."""
        now_ms = self._clock.wall_ms()
        batch = build_control_batch(
            ControlType.COMMIT if commit else ControlType.ABORT,
            timestamp_ms=now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            coordinator_epoch=coordinator_epoch,
        )
        answer: ShardAnswer[None] = asyncio.get_running_loop().create_future()
        written = self._write(batch, now_ms)
        if isinstance(written, ErrorCode):
            answer.set_result(written)
            return answer
        self.shard.replay_end_marker(producer, committed=commit)
        self._when_committed(partial(_settle, answer), has_written=True)
        return answer

    def close(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Serve no more; requests that wait are told to look for the coordinator again."""
        self._is_closed = True
        for key in self._set_keys:
            self._timers.cancel(self._own(key))
        self._set_keys.clear()
        parked, self._parked = self._parked, {}
        for answer in parked.values():
            if not answer.done():
                answer.set_result(error)

    def _carry_out(self, effects: Effects, now_ms: int) -> ErrorCode | None:
        error = self._append(effects, now_ms)
        if error is not None:
            self._finish(effects, error)
            if not self.is_leader:
                self.close()
            return error
        for timer in effects.timers:
            match timer:
                case SetTimer(key=key, delay_ms=delay_ms):
                    self._set_timer(key, delay_ms)
                case CancelTimer(key=key):
                    self._set_keys.discard(key)
                    self._timers.cancel(self._own(key))
        if effects.replies or effects.follow_ups or effects.orders:
            self._when_committed(partial(self._finish, effects), has_written=bool(effects.records))
        return None

    def _append(self, effects: Effects, now_ms: int) -> ErrorCode | None:
        """Write and replay; nothing of an atomic decision is done where this gives an error."""
        for records in self._batches(effects):
            batch = build_batch(
                [(now_ms, record.key, record.value, ()) for record in records],
                codec=self._rules.codec,
                producer_id=-1 if effects.producer is None else effects.producer.producer_id,
                producer_epoch=-1 if effects.producer is None else effects.producer.producer_epoch,
                transactional=effects.producer is not None,
            )
            written = self._write(batch, now_ms)
            if isinstance(written, ErrorCode):
                return written
            for offset, (key, value) in enumerate(records, written.first_offset):
                self.shard.replay(key, value, offset=offset, timestamp_ms=now_ms, producer=effects.producer)
        return None

    def _batches(self, effects: Effects) -> Iterator[tuple[CoordinatorRecord, ...]]:
        records = effects.records
        if effects.is_atomic:
            if records:
                yield records
            return
        limit = self.partition.log.config.max_message_bytes - HEADER_BYTES
        start = size = 0
        for at, (key, value) in enumerate(records):
            record_bytes = len(key) + len(value or b"") + _RECORD_OVERHEAD_BYTES
            if at > start and size + record_bytes > limit:
                yield records[start:at]
                start, size = at, 0
            size += record_bytes
        if start < len(records):
            yield records[start:]

    def _write(self, batch: bytes, now_ms: int) -> AppendedRecords | ErrorCode:
        outcome = self.partition.append(
            memoryview(bytearray(batch)), now_ms, for_all_replicas=True, origin=AppendOrigin.COORDINATOR
        )
        if isinstance(outcome, AppendRefused):
            self._report_refused(outcome.error)
            return error_for_client(outcome.error)
        self._refused = None
        return outcome

    def _report_refused(self, error: ErrorCode) -> None:
        """Once for each reason, not for each of the requests that come again and again."""
        if error is not self._refused:
            self._refused = error
            _logger.warning("%s: decisions cannot be written: %s", self.partition.topic_partition, error.name)

    def _when_committed(self, then: Callable[[ErrorCode | None], None], *, has_written: bool) -> None:
        """Now, if the whole log is committed already; otherwise when it is, or will not be in time.

        What was written and is committed was copied by all in sync, so that nobody else led. What rests on
        nothing new may be known better by another who leads by now: then the others have to confirm it."""
        waiting = self.partition.acknowledged(self.partition.log.log_end_offset)
        if waiting is None:
            self._when_confirmed(then)
        elif has_written:
            self._wait(waiting, then)
        else:
            self._wait(
                waiting, lambda error: then(error) if error is not None else self._when_confirmed(then)
            )

    def _when_confirmed(self, then: Callable[[ErrorCode | None], None]) -> None:
        waiting = self.partition.tenure.when_confirmed()
        if waiting is None:
            then(None)
        else:
            self._wait(waiting, then)

    def _wait(self, waiting: "asyncio.Future[bool]", then: Callable[[ErrorCode | None], None]) -> None:
        timeout = ("commit", next(self._numbers))
        self._timers.set(self._own(timeout), self._rules.commit_timeout_ms, waiting.cancel)
        waiting.add_done_callback(partial(self._on_wait_ended, timeout, then))

    def _on_wait_ended(
        self, timeout: TimerKey, then: Callable[[ErrorCode | None], None], waited: "asyncio.Future[bool]"
    ) -> None:
        self._timers.cancel(self._own(timeout))
        if waited.cancelled():
            then(error_for_client(ErrorCode.REQUEST_TIMED_OUT))
        elif waited.result():
            then(None)
        else:
            then(ErrorCode.COORDINATOR_NOT_AVAILABLE if self.is_leader else ErrorCode.NOT_COORDINATOR)

    def _finish(self, effects: Effects, error: ErrorCode | None) -> None:
        for token, answer in effects.replies:
            waiting = self._parked.pop(token, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer if error is None else error)
        for follow_up in effects.follow_ups:
            if self._is_closed:
                return
            now_ms = self._clock.wall_ms()
            self._carry_out(self.shard.on_committed(follow_up, error, now_ms), now_ms)
        if error is None and not self._is_closed:
            for order in effects.orders:
                self._take_order(OrderFrom(self.index, self.leader_epoch), order)

    def _set_timer(self, key: TimerKey, delay_ms: int) -> None:
        self._set_keys.add(key)
        self._timers.set(self._own(key), delay_ms, partial(self._on_timer, key))

    def _own(self, key: TimerKey) -> TimerKey:
        """Not that of the shard which had the partition before, be it under the same epoch: it may wait for
        something still, and ends that wait's timer."""
        return self, key

    def _on_timer(self, key: TimerKey) -> None:
        self._set_keys.discard(key)
        now_ms = self._clock.wall_ms()
        try:
            error = self._carry_out(self.shard.on_timer(key, now_ms), now_ms)
        except Exception:
            _logger.exception("%s: the timer %s failed; this is a bug", self.partition.topic_partition, key)
            return
        if error is not None and self.is_leader:
            self._set_timer(key, _TIMER_RETRY_MS)


def _settle(answer: ShardAnswer[None], error: ErrorCode | None) -> None:
    if not answer.done():
        answer.set_result(error)
