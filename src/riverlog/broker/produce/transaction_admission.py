"""Whether partitions may take a producer's transactional batches (KIP-890).

A transaction that is open in a partition goes on. A first batch is let in only when the coordinator knows
the partition as part of the transaction: newer clients leave it to the broker to add it, for older ones the
broker only asks. So no batch lands outside its transaction, where nothing would ever end it. The answer of
a coordinator on this node is mostly there at once, and nothing can come between it and the append. Where it
is not, a guard is taken with the question, which a marker takes away: an answer that was overtaken by the end
of the transaction does not count. The same guard is kept by batches that are written later than that.
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from riverlog.broker.produce.long_produce import parts_of
from riverlog.coordinator.transactions.cluster_transactions import (
    Asked,
    ClusterTransactions,
    Question,
    Verdict,
)
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.model.pieces import Pieces
from riverlog.records.batch import HEADER_BYTES, PRODUCER_ID_AT
from riverlog.records.records_field import is_transactional
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.producers.guards import ProducerGuards, VerificationGuard
from riverlog.storage.producers.state import NO_EPOCH, ProducerEntry, ProducerStates
from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.messages.produce import ProduceRequest, TopicProduceData

Refusals = Mapping[TopicPartition, ErrorCode]
"""By partition; a partition that is not in it may be written."""

_NONE_REFUSED: Final[Refusals] = {}
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AND_SEQUENCE: Final = struct.Struct(">qhi")
_ABORTABLE_SINCE: Final = 11
_ADDS_SINCE: Final = 12
_ASK_AGAIN: Final = ErrorCode.NOT_ENOUGH_REPLICAS
"""Clients repeat a produce for it, and know it in every version."""
_COORDINATOR_AWAY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        # A coordinator on another broker may hear of a topic later than this one.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)


class Support(Enum):
    """What the client's request version stands for."""

    OLD_ERRORS = "the partition was added before; TRANSACTION_ABORTABLE is not known"
    ABORTABLE = "the partition was added before"
    ADDS = "the broker adds the partition"


class TransactionAdmission:
    def __init__(self, transactions: ClusterTransactions, replicas: ReplicaSet, *, verifies: bool) -> None:
        self._transactions = transactions
        self._replicas = replicas
        self.verifies = verifies

    def admit(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        support: Support,
    ) -> Refusals | Awaitable[Refusals]:
        """What is awaited counts at the moment it is there: the batches are to be written in that step."""
        unknown: list[TopicPartition] = []
        stale: list[TopicPartition] = []
        for each in partitions:
            entry = self._entry(each, producer.producer_id)
            epoch = NO_EPOCH if entry is None else entry.epoch
            if epoch > producer.producer_epoch:
                stale.append(each)
            elif not _is_open(entry, producer):
                unknown.append(each)
        if stale:
            return dict.fromkeys([*stale, *unknown], ErrorCode.INVALID_PRODUCER_EPOCH)
        if not unknown or not self.asks(support):
            return _NONE_REFUSED
        question = Question(transactional_id, producer, tuple(unknown), adds=support is Support.ADDS)
        asked = self._transactions.ask(question)
        if asked.done() and not _is_to_wait(asked.result(), support):
            return self._refusals(asked.result(), unknown, support)
        guarded = self.guard(question.producer.producer_id, question.partitions)
        return _Later(lambda: self._admit_later(asked, guarded, question, support))

    def _refusals(self, answer: Verdict, partitions: Sequence[TopicPartition], support: Support) -> Refusals:
        if answer is None:
            return _NONE_REFUSED
        if isinstance(answer, ErrorCode):
            answer = dict.fromkeys(partitions, answer)
        return {
            at: self._error_for_client(at, error, support)
            for at, error in answer.items()
            if error is not ErrorCode.NONE
        }

    def _error_for_client(self, at: TopicPartition, error: ErrorCode, support: Support) -> ErrorCode:
        told = _error_for_client(error, support)
        if told is _ASK_AGAIN and self._may_be_led_elsewhere(at):
            # A broker that is cut off reaches no coordinator, and would be asked again for ever.
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return told

    def _may_be_led_elsewhere(self, partition: TopicPartition) -> bool:
        found = self._replicas.find(*partition)
        return isinstance(found, Partition) and not found.tenure.is_sure()

    def _entry(self, partition: TopicPartition, producer_id: int) -> ProducerEntry | None:
        producers = self._producers_of(partition)
        return None if producers is None else producers.get(producer_id)

    def _producers_of(self, partition: TopicPartition) -> ProducerStates | None:
        found = self._replicas.find(*partition)
        return found.log.producers if isinstance(found, Partition) else None

    def asks(self, support: Support) -> bool:
        """Whether a first batch of a transaction is let in only if the coordinator says so."""
        return self.verifies or support is Support.ADDS

    def guard(self, producer_id: int, partitions: Iterable[TopicPartition]) -> "list[_Guarded]":
        """To be taken in the step in which the question is asked."""
        return [
            _Guarded(at, producers.guards, producers.guards.begin_question(producer_id))
            for at in partitions
            if (producers := self._producers_of(at)) is not None
        ]

    def is_let_in(self, guarded: "_Guarded", producer: ProducerIdAndEpoch) -> bool:
        """Whether nothing has ended the transaction since; the guard is given back."""
        is_guarded = guarded.end(producer.producer_id)
        producers = self._producers_of(guarded.partition)
        is_guarded = is_guarded and producers is not None and producers.guards is guarded.guards
        return is_guarded or _is_open(self._entry(guarded.partition, producer.producer_id), producer)

    async def _admit_later(
        self,
        asked: Asked,
        guarded: "list[_Guarded]",
        question: Question,
        support: Support,
    ) -> Refusals:
        """While the transaction before this one is being ended, a client that has partitions added waits for
        it a little. A transaction that ended while the answer was on its way is asked for again."""
        config = self._transactions.config
        left_ms = config.add_retry_max_ms
        while True:
            ended: list[TopicPartition] = []
            try:
                answer = await asked
            finally:
                producer_id = question.producer.producer_id
                ended += [each.partition for each in guarded if not each.end(producer_id)]
            if left_ms <= 0 or not _is_to_wait(answer, support):
                break
            await asyncio.sleep(config.add_retry_pause_ms / 1000)
            left_ms -= config.add_retry_pause_ms
            asked = self._transactions.ask(question)
            guarded = self.guard(question.producer.producer_id, question.partitions)
        refusals = dict(self._refusals(answer, question.partitions, support))
        for at in ended:
            if not _is_open(self._entry(at, question.producer.producer_id), question.producer):
                refusals.setdefault(at, _ASK_AGAIN)
        return refusals


class _Later(NamedTuple):
    """A coroutine that is begun when it is awaited: the connection may end before."""

    begin: Callable[[], Coroutine[Any, Any, Refusals]]

    def __await__(self) -> Generator[Any, Any, Refusals]:
        return self.begin().__await__()


class _Guarded(NamedTuple):
    partition: TopicPartition
    guards: ProducerGuards
    guard: VerificationGuard

    def end(self, producer_id: int) -> bool:
        """Whether no marker came between; to be called once."""
        return self.guards.end_question(producer_id, self.guard)


def _is_open(entry: ProducerEntry | None, producer: ProducerIdAndEpoch) -> bool:
    return (
        entry is not None
        and entry.epoch == producer.producer_epoch
        and entry.transaction_first_offset is not None
    )


def _is_to_wait(answer: Verdict, support: Support) -> bool:
    """Whether the transaction before this one is being ended, and the client leaves the waiting to us."""
    if support is not Support.ADDS or answer is None:
        return False
    if isinstance(answer, ErrorCode):
        return answer is ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.CONCURRENT_TRANSACTIONS in answer.values()


def _error_for_client(error: ErrorCode, support: Support) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is Support.OLD_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    is_busy = error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not Support.ADDS
    if is_busy or error in _COORDINATOR_AWAY:
        return _ASK_AGAIN
    return error


class ProduceAdmission:
    def __init__(self, writes: TransactionAdmission, replicas: ReplicaSet) -> None:
        self._writes = writes
        self._replicas = replicas

    def admit(self, request: ProduceRequest, version: int) -> Refusals | Awaitable[Refusals] | ErrorCode:
        """The partitions that may not be written, or an error for all."""
        named = _Transactional()
        self._note(named, request, version)
        return self._admit(named, request, version)

    def admit_in_pieces(
        self, request: ProduceRequest, version: int
    ) -> Pieces["AdmittedInPieces | ErrorCode"]:
        """The same for a request whose batches are written one by one later."""
        named = _Transactional()
        for some in parts_of(request):
            self._note(named, some, version)
            yield None
        admitted = self._admit(named, request, version)
        if isinstance(admitted, ErrorCode):
            return admitted
        producer = max(named.producers) if self._writes.asks(_support(version)) and named.producers else None
        return AdmittedInPieces(self._writes, admitted, producer, named.partitions)

    def _note(self, named: "_Transactional", request: ProduceRequest, version: int) -> None:
        for topic in request.topic_data:
            for data in topic.partition_data:
                records = data.records
                if not isinstance(records, memoryview) or len(records) < HEADER_BYTES:
                    continue
                if is_transactional(records):
                    producer = ProducerIdAndEpoch(*_PRODUCER.unpack_from(records, PRODUCER_ID_AT))
                    named.producers.add(producer)
                    if (at := self._partition_of(topic, data.index, version)) is not None:
                        named.partitions.append(at)

    def _admit(
        self, named: "_Transactional", request: ProduceRequest, version: int
    ) -> Refusals | Awaitable[Refusals] | ErrorCode:
        assert request.transactional_id is not None
        if not named.producers:
            return _NONE_REFUSED
        if len({each.producer_id for each in named.producers}) > 1:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING
        producer, support = max(named.producers), _support(version)
        return self._writes.admit(request.transactional_id, producer, named.partitions, support)

    def _partition_of(self, topic: TopicProduceData, index: int, version: int) -> TopicPartition | None:
        """None for a partition that is not here, which is refused for that."""
        if version < TOPIC_ID_VERSION_MIN:
            found = self._replicas.find(topic.name, index)
        else:
            found = self._replicas.find_by_id(topic.topic_id, index)
        return found.topic_partition if isinstance(found, Partition) else None


class _Transactional:
    """What a request names with transactional batches."""

    __slots__ = ("partitions", "producers")

    def __init__(self) -> None:
        self.producers: set[ProducerIdAndEpoch] = set()
        self.partitions: list[TopicPartition] = []


class AdmittedInPieces:
    """Of batches that are not written in the step in which the answer is there: each is guarded from then on
    until it is written, as the transaction may end in between. To be let go of in the end."""

    __slots__ = ("_admitted", "_guarded", "_partitions", "_producer", "_refusals", "_writes")

    def __init__(
        self,
        writes: TransactionAdmission,
        admitted: Refusals | Awaitable[Refusals],
        producer: ProducerIdAndEpoch | None,
        partitions: Sequence[TopicPartition],
    ) -> None:
        """To be made in the step in which `admitted` was. No `producer`: nothing is asked of anybody."""
        self._writes = writes
        self._producer = producer
        self._partitions = partitions
        self._guarded: dict[TopicPartition, _Guarded] = {}
        self._refusals: Refusals = _NONE_REFUSED
        self._admitted: Awaitable[Refusals] | None = None
        if isinstance(admitted, Mapping):
            self._take(admitted)
        else:
            self._admitted = admitted

    def when_answered(self) -> Awaitable[None] | None:
        """To be waited for before anything else is asked; None where the answer is there."""
        return None if self._admitted is None else self._answered(self._admitted)

    def refusal_of(self, partition: TopicPartition) -> ErrorCode | None:
        """To be asked once for each, in the step in which it is written."""
        if (refusal := self._refusals.get(partition)) is not None:
            return refusal
        guarded = self._guarded.pop(partition, None)
        if guarded is None or self._producer is None:
            return None
        return None if self._writes.is_let_in(guarded, self._producer) else _ASK_AGAIN

    def let_go(self) -> None:
        """Of what was not written. Can be called again."""
        while self._guarded and self._producer is not None:
            self._guarded.popitem()[1].end(self._producer.producer_id)

    async def _answered(self, admitted: Awaitable[Refusals]) -> None:
        self._take(await admitted)

    def _take(self, refusals: Refusals) -> None:
        self._refusals = refusals
        if self._producer is not None:
            guarded = self._writes.guard(self._producer.producer_id, dict.fromkeys(self._partitions))
            self._guarded = {each.partition: each for each in guarded}


def begins_late(partition: Partition, records: memoryview, version: int) -> bool:
    """Whether a producer that the partition does not know begins in the middle of its sequence.

    Where the broker adds the partition, the first batch may have been refused and a later one come through; a
    producer with an epoch for each transaction always begins at 0, so the gap is seen.
    """
    if version < _ADDS_SINCE or len(records) < HEADER_BYTES or not is_transactional(records):
        return False
    producer_id, _, base_sequence = _PRODUCER_AND_SEQUENCE.unpack_from(records, PRODUCER_ID_AT)
    return base_sequence != 0 and partition.log.producers.get(producer_id) is None


def _support(version: int) -> Support:
    if version >= _ADDS_SINCE:
        return Support.ADDS
    return Support.ABORTABLE if version >= _ABORTABLE_SINCE else Support.OLD_ERRORS
