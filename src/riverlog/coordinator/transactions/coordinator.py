"""The transaction coordinator of this node: requests by transactional id, and the ends of transactions.

A thin front of the runtime for handlers. Where a decision needs a fresh producer id, it is fetched and the
decision taken again. Everything it starts ends with `close`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

from riverlog.coordinator.runtime.effects import Effects, Order, Token
from riverlog.coordinator.runtime.runtime import CoordinatorRuntime
from riverlog.coordinator.runtime.shard_runtime import OrderFrom, ShardAnswer, ShardLimits
from riverlog.coordinator.transactions.decisions import EndRequest, Needs, decide_verify
from riverlog.coordinator.transactions.lost import LostTransactions
from riverlog.coordinator.transactions.markers import MarkerSender, MarkerWriter, Work
from riverlog.coordinator.transactions.shard import (
    ExpiryCheck,
    Initialised,
    ShardRules,
    TimeOutCheck,
    TransactionShard,
    WriteMarkers,
)
from riverlog.coordinator.transactions.takeover import InitRequest
from riverlog.coordinator.transactions.transaction import NO_TIMEOUT_MS, Transaction
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.producer_ids import NoProducerIdError, ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.transaction_config import TransactionConfig
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.replication.replica_set import ReplicaSet

R = TypeVar("R")

_NO_ID_NOW: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
"""As Kafka answers while it has no ids to give; clients ask again."""


class TransactionCoordinator:
    def __init__(
        self,
        config: TransactionConfig,
        replicas: ReplicaSet,
        producer_ids: ProducerIds,
        writer: MarkerWriter,
        *,
        clock: Clock,
        read: Callable[[FileSlice], Awaitable[bytes]],
    ) -> None:
        self.config = config
        self._producer_ids = producer_ids
        self._sender = MarkerSender(
            writer,
            self._complete,
            lambda work: self._runtime.leads(OrderFrom(work.index, work.coordinator_epoch)),
        )
        shard_rules = ShardRules(
            config.timeout_check_interval_ms,
            config.id_expiration_ms,
            config.expiration_check_interval_ms,
            config.two_phase_warn_ms,
        )
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTIONS_TOPIC,
            replicas,
            lambda: TransactionShard(shard_rules),
            clock=clock,
            read=read,
            rules=ShardLimits(config.log_commit_timeout_ms, load_bytes=config.log_load_bytes),
            take_order=self._write_markers,
        )
        self._lost = LostTransactions(self._runtime, replicas, writer)

    async def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        *,
        for_two_phase: bool = False,
        keep_prepared: bool = False,
    ) -> Initialised | ErrorCode:
        if for_two_phase and not self.config.is_two_phase_enabled:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if for_two_phase:
            timeout_ms = NO_TIMEOUT_MS
        elif not 0 < timeout_ms <= self.config.timeout_max_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        fresh_id: int | None = None
        while True:
            request = InitRequest(transactional_id, timeout_ms, expected, keep_prepared, fresh_id)
            outcome = await self._run_init(request)
            if outcome is not Needs.FRESH_ID:
                return outcome
            fresh_id = await self._fresh_id()
            if fresh_id is None:
                return _NO_ID_NOW

    def _run_init(self, request: InitRequest) -> ShardAnswer[Initialised | Needs]:
        def decide(shard: TransactionShard, token: Token[Initialised | Needs], now_ms: int) -> Effects:
            return shard.init(request, token, now_ms)

        return self._runtime.run(self._index(request.transactional_id), decide)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        added: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> ShardAnswer[None]:
        """None when the partitions are part of the transaction, begun by it if need be."""
        partitions = frozenset(added)
        return self._runtime.run(
            self._index(transactional_id),
            lambda shard, token, now_ms: shard.add(
                transactional_id, producer, partitions, client_version, token, now_ms
            ),
        )

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, asked: Iterable[TopicPartition]
    ) -> ShardAnswer[Mapping[TopicPartition, ErrorCode]]:
        """For each partition whether it is part of the transaction."""
        partitions = tuple(asked)

        def query(shard: TransactionShard) -> Mapping[TopicPartition, ErrorCode]:
            found = decide_verify(shard.get(transactional_id), producer, partitions)
            return dict.fromkeys(partitions, found) if isinstance(found, ErrorCode) else found

        return self._runtime.ask(self._index(transactional_id), query)

    async def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, commit: bool, client_version: int
    ) -> ProducerIdAndEpoch | ErrorCode:
        """Who the producer is from now on. The end is decided and lasting then; markers follow."""
        fresh_id: int | None = None
        while True:
            request = EndRequest(producer, commit, client_version, fresh_id)
            outcome = await self._run_end(transactional_id, request)
            if outcome is not Needs.FRESH_ID:
                return outcome
            fresh_id = await self._fresh_id()
            if fresh_id is None:
                return _NO_ID_NOW

    def _run_end(self, transactional_id: str, request: EndRequest) -> ShardAnswer[ProducerIdAndEpoch | Needs]:
        def decide(shard: TransactionShard, token: Token[ProducerIdAndEpoch | Needs], now_ms: int) -> Effects:
            return shard.end(transactional_id, request, token, now_ms)

        return self._runtime.run(self._index(transactional_id), decide)

    def find(self, transactional_id: str) -> ShardAnswer[Transaction | None]:
        return self._runtime.ask(self._index(transactional_id), lambda shard: shard.get(transactional_id))

    def list_each(self) -> list[ShardAnswer[tuple[Transaction, ...]]]:
        """The transactions of each shard that this node leads."""
        return self._runtime.ask_each(tuple)

    def apply(self, delta: ImageDelta) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        self._runtime.apply(delta)

    async def load_all(
        self, recovered: Iterable[TopicPartition] = (), *, was_switched_off: bool = True
    ) -> None:
        """Complete what a crash left half ended, without a request, and abort what is open in the recovered
        partitions and was lost. `was_switched_off`: the machine, which can lose what a process cannot."""
        await self._runtime.load_all()
        await self._lost.end(recovered, was_switched_off=was_switched_off)

    async def run_what_is_due(self) -> None:
        """Abort now what has run out of time, and expire unused ids; return when the markers are written."""
        await self._runtime.ring_until_done(TimeOutCheck())
        await self._sender.when_idle()
        await self._runtime.ring_until_done(ExpiryCheck())

    async def close(self) -> None:
        await self._sender.close()
        await self._runtime.close()

    async def _fresh_id(self) -> int | None:
        """None while the store gives no block of ids; nothing is decided then."""
        try:
            return await self._producer_ids.next_producer_id()
        except NoProducerIdError:
            return None

    def _index(self, transactional_id: str) -> int:
        return self._runtime.partition_for(transactional_id)

    def _write_markers(self, origin: OrderFrom, order: Order) -> None:
        assert isinstance(order, WriteMarkers)
        work = Work(origin.index, origin.leader_epoch, order.transaction)
        self._sender.send(work, may_be_written=order.may_be_written)

    def _complete(self, work: Work) -> ShardAnswer[None]:
        return self._runtime.run(
            work.index, lambda shard, token, now_ms: shard.complete(work.transaction, token, now_ms)
        )
