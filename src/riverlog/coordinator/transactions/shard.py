"""The transactional ids of one partition of `__transaction_state`.

Hard state is a `Transaction` for each id, changed by `replay` alone. Soft state is the epoch by which a
repeated InitProducerId is known, which Kafka's log has no place for, and of which ids a power cut may have
taken the last epochs: they get another producer id, since a partition would take the batches of an epoch that
was used before for repetitions. When the end of a transaction is decided
and committed, `WriteMarkers` is ordered; so it is for every such transaction that a load finds, so that none
stays half ended after a crash. Not here: the writing of markers.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from riverlog.coordinator.formats.formats import TransactionRecord, UnknownVersion, decode_key, kind_of
from riverlog.coordinator.formats.transactions import TransactionLogKey
from riverlog.coordinator.runtime.effects import NOTHING, Effects, FollowUp, SetTimer, TimerKey, Token, reply
from riverlog.coordinator.runtime.rules import Goto
from riverlog.coordinator.transactions.decisions import (
    EndRequest,
    Moved,
    Needs,
    Stands,
    decide_add,
    decide_end,
)
from riverlog.coordinator.transactions.log_records import record_of, tombstone_of, transaction_of
from riverlog.coordinator.transactions.states import TransactionEvent, TransactionState, rule
from riverlog.coordinator.transactions.takeover import (
    Fenced,
    InitRequest,
    TakenOver,
    decide_fence,
    decide_init,
)
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.wire.codec import MalformedMessage

_RETRY_MS: Final = 500
_ABORTS_AT_ONCE: Final = 1_000
_logger = logging.getLogger(__name__)


class ShardRules(NamedTuple):
    timeout_check_ms: int = 10_000
    expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    expiration_check_ms: int = 60 * 60 * 1000
    two_phase_warn_ms: int = 60 * 60 * 1000


class Initialised(NamedTuple):
    producer: ProducerIdAndEpoch
    ongoing: ProducerIdAndEpoch | None = None
    """Whose transaction was kept open, if the request wanted that and there was one."""


@dataclass(frozen=True, slots=True)
class TimeOutCheck:
    """Time to look for transactions that were open too long."""


@dataclass(frozen=True, slots=True)
class ExpiryCheck:
    """Time to look for transactional ids that are no longer used."""


@dataclass(frozen=True, slots=True)
class FinishCheck:
    """Time to ask again whether the prepared end is committed."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """Ends that were decided: once they are committed, the markers follow."""

    transactions: tuple[Transaction, ...]
    may_be_written: bool = False


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """An order: the end of this transaction is to be written into its partitions, and then completed."""

    transaction: Transaction
    may_be_written: bool
    """Some of the markers may stand already."""


class TransactionShard:
    def __init__(self, rules: ShardRules) -> None:
        self._rules = rules
        self._transactions: dict[str, Transaction] = {}
        self._last_epochs: dict[str, int] = {}
        self._warned: set[str] = set()
        self._begun_ahead: dict[tuple[str, int], int] = {}
        """Open ones that began later than it is now, by id and begin: since when that is known."""
        self._doubtful: set[str] = set()

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self._transactions.values())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    # What replay rebuilds.

    def replay(
        self,
        key: bytes,
        value: bytes | None,
        *,
        offset: int,
        timestamp_ms: int,
        producer: ProducerIdAndEpoch | None,
    ) -> None:
        if kind_of(key) != TransactionRecord.TRANSACTION_LOG:
            _logger.warning("a record of unknown kind at offset %d is passed over", offset)
            return
        try:
            transactional_id = decode_key(TransactionLogKey, key).transactional_id
            if value is None:
                self._transactions.pop(transactional_id, None)
                self._last_epochs.pop(transactional_id, None)
                return
            before, after = self.get(transactional_id), transaction_of(transactional_id, value)
            self._transactions[transactional_id] = after
            if before is not None and before.client.producer_id != after.client.producer_id:
                self._doubtful.discard(transactional_id)
        except (MalformedMessage, UnknownVersion, ValueError) as error:
            _logger.error("a transaction at offset %d cannot be read: %s", offset, error)

    def replay_end_marker(self, producer: ProducerIdAndEpoch, *, committed: bool) -> None:
        """There are no transactions within this topic."""

    # Decisions.

    def init(self, request: InitRequest, token: Token[Initialised | Needs], now_ms: int) -> Effects:
        name = request.transactional_id
        before = self.get(name)
        is_doubtful = name in self._doubtful
        match decide_init(
            before, request, last_epoch=self._last_epochs.get(name), now_ms=now_ms, is_doubtful=is_doubtful
        ):
            case TakenOver(transaction=after, last_epoch=last_epoch):
                if last_epoch is None:
                    self._last_epochs.pop(name, None)
                else:
                    self._last_epochs[name] = last_epoch
                was_kept = after.state is TransactionState.ONGOING
                answer = Initialised(after.client, after.producer if was_kept else None)
                return reply(token, answer, record_of(after))
            case Fenced(transaction=after):
                self._last_epochs.pop(name, None)
                return self._prepare(after) + reply(token, ErrorCode.CONCURRENT_TRANSACTIONS)
            case outcome:
                return reply(token, outcome)

    def add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        added: frozenset[TopicPartition],
        client_version: int,
        token: Token[None],
        now_ms: int,
    ) -> Effects:
        outcome = decide_add(
            self.get(transactional_id), producer, added, client_version=client_version, now_ms=now_ms
        )
        match outcome:
            case Moved(transaction=after):
                return reply(token, None, record_of(after))
            case Stands():
                return reply(token, None)
            case error:
                return reply(token, error)

    def end(
        self,
        transactional_id: str,
        request: EndRequest,
        token: Token[ProducerIdAndEpoch | Needs],
        now_ms: int,
    ) -> Effects:
        before = self.get(transactional_id)
        match decide_end(before, request, now_ms):
            case Moved(transaction=after):
                return self._prepare(after) + reply(token, after.client)
            case Stands():
                assert before is not None
                return reply(token, before.client)
            case outcome:
                return reply(token, outcome)

    def complete(self, prepared: Transaction, token: Token[None], now_ms: int) -> Effects:
        """Every partition has the marker of `prepared`."""
        present = self.get(prepared.transactional_id)
        if present == prepared and isinstance(rule(present.state, TransactionEvent.MARKERS_WRITTEN), Goto):
            return reply(token, None, record_of(present.completed(now_ms)))
        return reply(token, None)

    def _prepare(self, after: Transaction) -> Effects:
        return Effects(records=(record_of(after),), follow_ups=(Prepared((after,)),))

    # What time brings.

    def on_loaded(self, now_ms: int, *, may_have_lost: bool) -> Effects:
        self._doubtful = set(self._transactions) if may_have_lost else set()
        prepared = tuple(each for each in self if each.state.is_prepared)
        return Effects(
            timers=(
                SetTimer(TimeOutCheck(), self._rules.timeout_check_ms),
                SetTimer(ExpiryCheck(), self._rules.expiration_check_ms),
            ),
            follow_ups=(Prepared(prepared, may_be_written=True),) if prepared else (),
        )

    def on_committed(self, follow_up: FollowUp, error: ErrorCode | None, now_ms: int) -> Effects:
        assert isinstance(follow_up, Prepared)
        # What could not be written is not in the shard, and what was completed meanwhile is there no more.
        standing = [each for each in follow_up.transactions if self.get(each.transactional_id) == each]
        if error is None:
            return Effects(orders=tuple(WriteMarkers(each, follow_up.may_be_written) for each in standing))
        # Written and not yet committed: look again.
        return Effects(
            timers=tuple(SetTimer(FinishCheck(each.transactional_id), _RETRY_MS) for each in standing)
        )

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        match key:
            case TimeOutCheck():
                return self._abort_timed_out(now_ms)
            case ExpiryCheck():
                return self._expire(now_ms)
            case FinishCheck(transactional_id=name):
                transaction = self.get(name)
                if transaction is None or not transaction.state.is_prepared:
                    return NOTHING
                return Effects(follow_ups=(Prepared((transaction,), may_be_written=True),))
            case _:
                raise AssertionError(f"no timer {key}")

    def _warn_of_old(self, now_ms: int) -> None:
        """Once for each transaction that an outside two-phase commit has left open for long."""
        old = {
            each.transactional_id: each
            for each in self
            if each.is_open_for_two_phase and now_ms - (each.started_ms or 0) > self._rules.two_phase_warn_ms
        }
        for name in sorted(old.keys() - self._warned):
            _logger.warning(
                "the two-phase transaction of %s is open since %d ms; it is never timed out, "
                "end it with riverlog txn abort if its owner is gone",
                name,
                now_ms - (old[name].started_ms or 0),
            )
        self._warned = set(old)

    def _abort_timed_out(self, now_ms: int) -> Effects:
        self._warn_of_old(now_ms)
        self._note_begun_ahead(now_ms)
        late = [each for each in self if self._is_late(each, now_ms)]
        fenced = tuple(
            decide_fence(each, now_ms).transaction
            for each in late[:_ABORTS_AT_ONCE]
            if rule(each.state, TransactionEvent.TIME_OUT) == Goto(TransactionState.PREPARE_EPOCH_FENCE)
        )
        for transaction in fenced:
            _logger.info("the transaction of %s has run out of time; aborted", transaction.transactional_id)
            self._last_epochs.pop(transaction.transactional_id, None)
        has_more = len(late) > _ABORTS_AT_ONCE
        return Effects(
            records=tuple(record_of(each) for each in fenced),
            timers=(SetTimer(TimeOutCheck(), 0 if has_more else self._rules.timeout_check_ms),),
            is_atomic=False,
            follow_ups=(Prepared(fenced),) if fenced else (),
        )

    def _note_begun_ahead(self, now_ms: int) -> None:
        """The clock was set back since, or another coordinator's is ahead: their time counts from now on."""
        before, self._begun_ahead = self._begun_ahead, {}
        for each in self:
            if each.deadline_ms is None or each.started_ms is None:
                continue
            begun = each.transactional_id, each.started_ms
            if each.started_ms > now_ms or begun in before:
                self._begun_ahead[begun] = min(before.get(begun, now_ms), now_ms)

    def _is_late(self, transaction: Transaction, now_ms: int) -> bool:
        deadline_ms = transaction.deadline_ms
        if deadline_ms is None or transaction.started_ms is None:
            return False
        since_ms = self._begun_ahead.get((transaction.transactional_id, transaction.started_ms))
        return deadline_ms < now_ms or (since_ms is not None and since_ms + transaction.timeout_ms < now_ms)

    def _expire(self, now_ms: int) -> Effects:
        unused = [
            each.transactional_id
            for each in self
            if each.updated_ms <= now_ms - self._rules.expiration_ms
            and rule(each.state, TransactionEvent.EXPIRE) == Goto(TransactionState.DEAD)
        ]
        return Effects(
            records=tuple(tombstone_of(each) for each in unused),
            timers=(SetTimer(ExpiryCheck(), self._rules.expiration_check_ms),),
            is_atomic=False,
        )
