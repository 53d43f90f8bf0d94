"""A transactional producer: some batches, perhaps offsets of a group, then a commit or an abort.

It speaks one of two dialects: the older one adds partitions and offsets to the transaction before it writes
to them, the newer one (KIP-890) leaves that to the broker and gets another epoch with every end. An end
without an answer is asked again; whatever makes it unsure of its transaction makes it begin with a new epoch.
The group is its own, so that it knows which offset is to be told of it (I14).
"""

from dataclasses import dataclass
from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.testing.simulation.clients.connection import ClientConnection, Disconnected
from riverlog.testing.simulation.clients.offsets import TransactionalOffsets
from riverlog.testing.simulation.clients.process import ELSEWHERE, Surroundings
from riverlog.testing.simulation.clients.producers import TRY_AGAIN, Producer, ProducerPlan
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from riverlog.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

_TRANSACTION_KEY = 1
_GROUP_KEY = 0
_TRIES = 20
_LOOK_CHANCE = 0.3
_CONNECT_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class TransactorPlan:
    transactional_id: str
    timeout_ms: int = 6000
    is_newer: bool = True
    abort_chance: float = 0.25
    leave_chance: float = 0.05
    """How often a transaction is left open, for the broker to abort."""
    group: str | None = None
    batches_max: int = 4
    hasty_chance: float = 0.0
    """How often the last batch is not waited for: the transaction is ended meanwhile."""


class _GiveUpError(Exception):
    """The transaction cannot be gone on with; begin with a new epoch."""


class Transactor(Producer):
    kind = "transaction"

    def __init__(
        self,
        around: Surroundings,
        plan: ProducerPlan,
        transactions: TransactorPlan,
        offsets: TransactionalOffsets | None = None,
    ) -> None:
        super().__init__(around, plan)
        self.transactions = transactions
        self._offsets = offsets or TransactionalOffsets()
        self._offset: int | None = None
        """What the open transaction has committed for the group."""
        self._connection_aside: ClientConnection | None = None

    async def operate(self) -> None:
        await self.pause(self.plan.pause_s)
        try:
            if self._producer is None:
                await self._begin_anew()
            await self._transaction()
            if self.transactions.group is not None and self._chance.random() < _LOOK_CHANCE:
                await self._look_at_offset(self.transactions.group)
        except _GiveUpError:
            self._producer = None
            await self.pause(0.1)
        except Disconnected:
            self._producer = None
            raise

    async def _begin_anew(self) -> None:
        await self._find(self.transactions.transactional_id, _TRANSACTION_KEY)
        request = InitProducerIdRequest(
            transactional_id=self.transactions.transactional_id,
            transaction_timeout_ms=self.transactions.timeout_ms,
        )
        reply = await self._insist("init transactions", ApiKey.INIT_PRODUCER_ID, 5, request)
        self._producer = (reply.producer_id, reply.producer_epoch)
        self._sequences.clear()
        self.done("initialised", id=reply.producer_id, epoch=reply.producer_epoch)

    async def _find(self, key: str, kind: int) -> None:
        for _ in range(_TRIES):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            reply = await self.ask(ApiKey.FIND_COORDINATOR, 4, request)
            found = reply.coordinators[0]
            if not found.error_code:
                self._routes.go_to(found.host, found.port)
                return
            self.refused("find coordinator", reply.coordinators[0].error_code)
            await self.pause(0.2)
        raise _GiveUpError

    async def _transaction(self) -> None:
        chance, self._offset = self._chance, None
        indexes = [
            chance.randrange(self.plan.partitions)
            for _ in range(chance.randint(1, self.transactions.batches_max))
        ]
        if not self.transactions.is_newer:
            await self._add_partitions(sorted(set(indexes)))
        hasty = self.transactions.hasty_chance
        is_hasty = bool(hasty) and chance.random() < hasty
        for index in indexes[:-1] if is_hasty else indexes:
            await self._write(index)
        if is_hasty:
            await self._write_without_waiting(indexes[-1])
        if self.transactions.group is not None and chance.random() < 0.5:
            await self._commit_offsets(self.transactions.group)
        if chance.random() < self.transactions.leave_chance:
            self.done("left open")
            raise _GiveUpError
        await self._end(commit=chance.random() >= self.transactions.abort_chance)

    async def _go_to_coordinator(self) -> None:
        if not self._routes.is_sole:
            await self._find(self.transactions.transactional_id, _TRANSACTION_KEY)

    async def _add_partitions(self, indexes: list[int]) -> None:
        await self._go_to_coordinator()
        producer_id, epoch = self._identity
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactions.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self.plan.topic, partitions=indexes)],
        )

        def code_of(reply: Any) -> int:
            results = reply.results_by_topic_v3_and_below[0].results_by_partition
            return int(max(each.partition_error_code for each in results))

        await self._insist("add partitions", ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, code_of)
        self.done("added partitions")

    async def _write(self, index: int) -> None:
        if not await self.go_to_leader(self.plan.topic, index):
            raise _GiveUpError
        sending = self.new_batch(index, transactional=True)
        request = self.request(sending, self.transactions.transactional_id)
        version = 12 if self.transactions.is_newer else min(self.plan.version, 11)

        def answer_of(reply: Any) -> Any:
            return reply.responses[0].partition_responses[0]

        reply = await self._insist(
            "transactional produce", ApiKey.PRODUCE, version, request, lambda got: answer_of(got).error_code
        )
        offset = answer_of(reply).base_offset
        if self.plan.acks:
            self.check_acknowledged(sending, offset)
        self.done("wrote", at=f"{self.plan.topic}-{index}", offset=offset)

    async def _write_without_waiting(self, index: int) -> None:
        """As a client that gives up what is on its way when it aborts. Whether it stands is never told."""
        if not await self.go_to_leader(self.plan.topic, index):
            raise _GiveUpError
        connection = await self._aside()
        request = self.request(self.new_batch(index, transactional=True), self.transactions.transactional_id)
        answer = connection.send(ApiKey.PRODUCE, 12 if self.transactions.is_newer else 11, request)
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.done("wrote without waiting")

    async def _aside(self) -> ClientConnection:
        """One of its own, since a broker answers what comes on one connection in turn."""
        if self._connection_aside is not None:
            self._connection_aside.close()
        self._connection_aside = await ClientConnection.open(
            self._around.network, self._routes.present, self.name, _CONNECT_TIMEOUT_S
        )
        return self._connection_aside

    def disconnect(self) -> None:
        super().disconnect()
        if self._connection_aside is not None:
            self._connection_aside.close()

    async def _commit_offsets(self, group: str) -> None:
        producer_id, epoch = self._identity
        if not self.transactions.is_newer:
            await self._go_to_coordinator()
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactions.transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=group,
            )
            await self._insist("add offsets", ApiKey.ADD_OFFSETS_TO_TXN, 3, request)
        await self._find(group, _GROUP_KEY)
        offset = self._offsets.last = self._offsets.last + 1
        piece = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactions.transactional_id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self.plan.topic, partitions=[piece])],
        )
        await self._insist(
            "transactional offsets",
            ApiKey.TXN_OFFSET_COMMIT,
            5 if self.transactions.is_newer else 3,
            commit,
            lambda reply: reply.topics[0].partitions[0].error_code,
        )
        self._offset = offset
        self.done("added offsets", offset=offset)

    async def _look_at_offset(self, group: str) -> None:
        await self._find(group, _GROUP_KEY)
        least = self._offsets.counts
        topics = [OffsetFetchRequestTopics(name=self.plan.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=True
        )
        reply = await self.ask(ApiKey.OFFSET_FETCH, 8, request)
        [found] = reply.groups
        [answer] = found.topics[0].partitions if not found.error_code else [found]
        if answer.error_code:
            self.refused("fetch transactional offset", answer.error_code)
            return
        why = self._offsets.why_not(answer.committed_offset, min(least, self._offsets.counts))
        if why is not None:
            raise self.violated("I14", f"{group} {self.plan.topic}-0: {why}")
        self.done("found its offset", offset=answer.committed_offset)

    async def _end(self, *, commit: bool) -> None:
        await self._go_to_coordinator()
        producer_id, epoch = self._identity
        request = EndTxnRequest(
            transactional_id=self.transactions.transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commit,
        )
        version = 5 if self.transactions.is_newer else 3
        offset, losses = self._offset, self._offsets.losses
        if commit and offset is not None:
            self._offsets.ask_to_commit(offset)
        reply = await self._insist("end transaction", ApiKey.END_TXN, version, request)
        if self.transactions.is_newer:
            self._producer = (reply.producer_id, reply.producer_epoch)
            self._sequences.clear()
        if commit and offset is not None and losses == self._offsets.losses:
            self._offsets.committed(offset)
        self.done("committed" if commit else "aborted", id=producer_id, epoch=epoch)

    @property
    def _identity(self) -> tuple[int, int]:
        assert self._producer is not None
        return self._producer

    async def _insist(
        self,
        what: str,
        key: ApiKey,
        version: int,
        request: Any,
        code_of: Any = lambda reply: reply.error_code,
    ) -> Any:
        """Ask until there is an answer that no later try would change."""
        for _ in range(_TRIES):
            reply = await self.ask(key, version, request)
            code = code_of(reply)
            if not code:
                return reply
            if code == ErrorCode.UNKNOWN_SERVER_ERROR:
                raise self.violated("I6", f"{what} was answered with UNKNOWN_SERVER_ERROR")
            self.refused(what, code)
            if code == ErrorCode.REQUEST_TIMED_OUT:
                self._routes.go_anywhere()  # As `Producer` does.
            is_elsewhere = code in ELSEWHERE or code == ErrorCode.REQUEST_TIMED_OUT
            if code not in TRY_AGAIN or (is_elsewhere and not self._routes.is_sole):
                break
            await self.pause(0.1)
        raise _GiveUpError
