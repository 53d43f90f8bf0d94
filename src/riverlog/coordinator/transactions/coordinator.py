"""The transaction coordinator of this node: requests by transactional id, and the ends of transactions.

A thin front of the runtime for handlers. Where a decision needs a fresh producer id, it is fetched and the
decision taken again. Everything it starts ends with `close`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

from riverlog.coordinator.effects import Effects, Producer, Token
from riverlog.coordinator.hosted_shard import Answer
from riverlog.coordinator.runtime import CoordinatorRuntime
from riverlog.coordinator.transactions.decisions import EndRequest, Needs, decide_verify
from riverlog.coordinator.transactions.markers import MarkerSender, MarkerWriter, Work
from riverlog.coordinator.transactions.shard import Initialised, ShardRules, TransactionShard
from riverlog.coordinator.transactions.takeover import InitRequest
from riverlog.coordinator.transactions.transaction import NO_TIMEOUT_MS, Transaction
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.transaction_config import TransactionConfig
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.metadata_store import StoreWriteError
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet

R = TypeVar("R")

TRANSACTION_TOPIC: Final = "__transaction_state"
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
        self._replicas = replicas
        self._producer_ids = producer_ids
        self._sender = MarkerSender(writer, self._complete)
        self._shard_rules = ShardRules(
            config.timeout_check_interval_ms,
            config.id_expiration_ms,
            config.expiration_check_interval_ms,
            config.two_phase_warn_ms,
        )
        self._runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            TRANSACTION_TOPIC, replicas, self._new_shard, clock=clock, read=read
        )

    async def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
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

    def _run_init(self, request: InitRequest) -> Answer[Initialised | Needs]:
        def decide(shard: TransactionShard, token: Token[Initialised | Needs], now_ms: int) -> Effects:
            return shard.init(request, token, now_ms)

        return self._runtime.run(self._index(request.transactional_id), decide)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        added: Iterable[TopicPartition],
        *,
        client_version: int,
    ) -> Answer[None]:
        """None when the partitions are part of the transaction, begun by it if need be."""
        partitions = frozenset(added)
        return self._runtime.run(
            self._index(transactional_id),
            lambda shard, token, now_ms: shard.add(
                transactional_id, producer, partitions, client_version, token, now_ms
            ),
        )

    def verify_partitions(
        self, transactional_id: str, producer: Producer, asked: Iterable[TopicPartition]
    ) -> Answer[Mapping[TopicPartition, ErrorCode]]:
        """For each partition whether it is part of the transaction."""
        partitions = tuple(asked)

        def query(shard: TransactionShard) -> Mapping[TopicPartition, ErrorCode]:
            found = decide_verify(shard.get(transactional_id), producer, partitions)
            return dict.fromkeys(partitions, found) if isinstance(found, ErrorCode) else found

        return self._runtime.ask(self._index(transactional_id), query)

    def are_part_of(self, transactional_id: str, producer: Producer, asked: Iterable[TopicPartition]) -> bool:
        """Whether all partitions are part of the open transaction at this very moment, committed or not."""
        seen: list[bool] = []

        def look(shard: TransactionShard) -> None:
            found = decide_verify(shard.get(transactional_id), producer, asked)
            seen.append(not isinstance(found, ErrorCode) and not any(found.values()))

        self._runtime.ask(self._index(transactional_id), look)
        return seen == [True]

    async def end(
        self, transactional_id: str, producer: Producer, *, commit: bool, client_version: int
    ) -> Producer | ErrorCode:
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

    def _run_end(self, transactional_id: str, request: EndRequest) -> Answer[Producer | Needs]:
        def decide(shard: TransactionShard, token: Token[Producer | Needs], now_ms: int) -> Effects:
            return shard.end(transactional_id, request, token, now_ms)

        return self._runtime.run(self._index(transactional_id), decide)

    def find(self, transactional_id: str) -> Answer[Transaction | None]:
        return self._runtime.ask(self._index(transactional_id), lambda shard: shard.get(transactional_id))

    def list_each(self) -> list[Answer[tuple[Transaction, ...]]]:
        """The transactions of each shard that this node leads."""
        return self._runtime.ask_each(tuple)

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        self._runtime.apply(old, new)

    async def load_all(self) -> None:
        """Take up what a crash left half ended, though nobody asks for it."""
        await self._runtime.load_all()

    async def close(self) -> None:
        await self._sender.close()
        await self._runtime.close()

    async def _fresh_id(self) -> int | None:
        """None while the store takes no write, and so gives no block of ids; nothing is decided then."""
        try:
            return await self._producer_ids.next_producer_id()
        except StoreWriteError:
            return None

    def _index(self, transactional_id: str) -> int:
        return self._runtime.partition_for(transactional_id)

    def _new_shard(self, index: int) -> TransactionShard:
        partition = self._replicas.find(TRANSACTION_TOPIC, index)
        assert isinstance(partition, Partition), "a shard is made only for a partition that is led here"
        epoch = partition.leader_epoch

        def send(transaction: Transaction, may_be_written: bool) -> None:
            self._sender.send(Work(index, epoch, transaction), may_be_written=may_be_written)

        return TransactionShard(self._shard_rules, send)

    def _complete(self, work: Work) -> Answer[None]:
        return self._runtime.run(
            work.index, lambda shard, token, now_ms: shard.complete(work.transaction, token, now_ms)
        )
