"""A transaction shard without a runtime: effects are carried out at once, as if all were committed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from riverlog.coordinator.runtime.effects import CoordinatorRecord, Effects, Token
from riverlog.coordinator.transactions.decisions import EndRequest, Needs
from riverlog.coordinator.transactions.log_records import record_of
from riverlog.coordinator.transactions.shard import (
    ExpiryCheck,
    Initialised,
    ShardRules,
    TimeOutCheck,
    TransactionShard,
    WriteMarkers,
)
from riverlog.coordinator.transactions.takeover import InitRequest
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition

NAME = "payments"
RULES = ShardRules(expiration_ms=10_000)
TIMEOUT_MS = 1_000


@dataclass
class Bench:
    """One shard, its log, and what it handed over to be ended."""

    now_ms: int = 1_000_000
    next_id: int = 100
    completes: bool = False
    """Markers are written at once."""
    log: list[CoordinatorRecord] = field(default_factory=list)
    prepared: list[Transaction] = field(default_factory=list)
    markers: list[tuple[TopicPartition, ProducerIdAndEpoch, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shard = self._new_shard()

    def _new_shard(self) -> TransactionShard:
        return TransactionShard(RULES)

    @property
    def transaction(self) -> Transaction | None:
        return self.shard.get(NAME)

    def put(self, transaction: Transaction) -> None:
        """Begin in the middle."""
        self._carry_out(Effects(records=(record_of(transaction),)), [])

    def reload(self) -> None:
        """As after a crash: everything anew from the log."""
        self.shard = self._new_shard()
        for offset, (key, value) in enumerate(self.log):
            self.shard.replay(key, value, offset=offset, timestamp_ms=0, producer=None)
        self.prepared.clear()
        self._carry_out(self.shard.on_loaded(self.now_ms, may_have_lost=False), [])

    def decide(self, decide: Callable[[Token[Any]], Effects]) -> Any:
        answers: list[Any] = []
        self._carry_out(decide(Token(1)), answers)
        self._end_prepared()
        (answer,) = answers
        return answer

    def init(
        self, expected: ProducerIdAndEpoch | None = None, *, keep: bool = False, timeout_ms: int = TIMEOUT_MS
    ) -> Any:
        fresh_id: int | None = None
        while True:
            request = InitRequest(NAME, timeout_ms, expected, keep, fresh_id)
            answer: Initialised | Needs | ErrorCode = self.decide(
                lambda token, request=request: self.shard.init(request, token, self.now_ms)  # type: ignore[misc]
            )
            if answer is not Needs.FRESH_ID:
                return answer
            fresh_id = self._fresh()

    def add(self, producer: ProducerIdAndEpoch, *partitions: TopicPartition, version: int = 0) -> Any:
        added = frozenset(partitions)
        return self.decide(lambda token: self.shard.add(NAME, producer, added, version, token, self.now_ms))

    def end(self, producer: ProducerIdAndEpoch, *, commit: bool, version: int = 0) -> Any:
        fresh_id: int | None = None
        while True:
            request = EndRequest(producer, commit, version, fresh_id)
            answer = self.decide(
                lambda token, request=request: self.shard.end(NAME, request, token, self.now_ms)  # type: ignore[misc]
            )
            if answer is not Needs.FRESH_ID:
                return answer
            fresh_id = self._fresh()

    def complete(self, transaction: Transaction) -> Any:
        return self.decide(lambda token: self.shard.complete(transaction, token, self.now_ms))

    def pass_time(self, delay_ms: int) -> object:
        self.now_ms += delay_ms
        self._carry_out(self.shard.on_timer(TimeOutCheck(), self.now_ms), [])
        self._carry_out(self.shard.on_timer(ExpiryCheck(), self.now_ms), [])
        self._end_prepared()
        return None

    def _fresh(self) -> int:
        self.next_id += 1
        return self.next_id

    def _carry_out(self, effects: Effects, answers: list[Any]) -> None:
        for key, value in effects.records:
            self.log.append(CoordinatorRecord(key, value))
            self.shard.replay(key, value, offset=len(self.log), timestamp_ms=self.now_ms, producer=None)
        answers += [reply.answer for reply in effects.replies]
        for follow_up in effects.follow_ups:
            self._carry_out(self.shard.on_committed(follow_up, None, self.now_ms), answers)
        for order in effects.orders:
            assert isinstance(order, WriteMarkers)
            self.prepared.append(order.transaction)

    def _end_prepared(self) -> None:
        while self.completes and self.prepared:
            transaction = self.prepared.pop(0)
            commit = transaction.state.name == "PREPARE_COMMIT"
            self.markers += [(each, transaction.producer, commit) for each in sorted(transaction.partitions)]
            self.complete(transaction)
