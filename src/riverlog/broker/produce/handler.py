"""Produce 3-13: append batches, and acknowledge them when as many replicas as asked for have them.

Everything is written before `handle` returns; what may be waited for is only the acknowledgement (acks=all
with followers, or `riverlog.acks.fsync`), and that takes no task. Versions 0-2 are advertised for old
librdkafka and close the connection, as in Apache Kafka. A transactional batch is written only where its
transaction is open or the coordinator lets it in; only that may put the writing off (KIP-890). Never answers
UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from uuid import UUID

from riverlog.broker.exchange.context import HangUp, InOrder, Parts, RequestContext
from riverlog.broker.exchange.long_work import InPieces
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.produce.delayed_produce import DelayedProduce, Unacknowledged
from riverlog.broker.produce.long_produce import (
    LARGE_MIN,
    LongAcknowledgement,
    by_place_in_pieces,
    count_named,
    outside,
)
from riverlog.broker.produce.refusals import refusal_of_all, refusal_of_all_in_pieces, refusal_of_records
from riverlog.broker.produce.replies import error_of, silence_or_hang_up, success
from riverlog.broker.produce.templated_writes import TemplatedWrites
from riverlog.broker.produce.transaction_admission import (
    AdmittedInPieces,
    ProduceAdmission,
    Refusals,
    begins_late,
)
from riverlog.broker.shared.leader_hints import PRODUCE_SINCE as PRODUCE_HINTS_SINCE
from riverlog.broker.shared.leader_hints import LeaderHints
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import TopicPartition
from riverlog.model.metrics import Metrics
from riverlog.model.pieces import Pieces
from riverlog.records.records_field import is_plain_batch
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.apis import TOPIC_ID_VERSION_MIN
from riverlog.wire.by_hand.produce_request import SingleBatch
from riverlog.wire.by_hand.produce_response import encode_single_produce
from riverlog.wire.by_hand.produce_template import ProduceTemplate
from riverlog.wire.codec import AT_ONCE_MAX
from riverlog.wire.dissolving import dissolve
from riverlog.wire.framing import RequestHeader
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

SERVED_VERSION_MIN = 3
_SINGLE_VERSION_MIN = 8
_TEMPLATES_MAX = 256
_ALL = -1

_NONE_REFUSED: Refusals = {}
_EXPLAINED = {
    ErrorCode.INVALID_TXN_STATE: "the partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "the transaction's coordinator could not be asked; try again",
}
"""Of the refusals by a transaction's coordinator, those for which Kafka has words too."""


class ProduceHandler:
    def __init__(
        self,
        replicas: ReplicaSet,
        transactions: ProduceAdmission,
        turn: LoopTurn,
        clock: Clock,
        metrics: Metrics,
        hints: LeaderHints | None = None,
    ) -> None:
        """`hints` where there are other brokers that may lead."""
        self._hints = hints
        self._replicas = replicas
        self._transactions = transactions
        self._turn = turn
        self._clock = clock
        self._bytes_in = metrics.counter("riverlog_produced_bytes_total")
        self._templates: dict[object, TemplatedWrites] = {}
        """For all connections, so that what many of them need is in the processor's caches once."""

    def handle(
        self, request: ProduceRequest | SingleBatch, context: RequestContext
    ) -> Parts | ProduceResponse | DelayedProduce | InOrder | InPieces[ProduceResponse] | HangUp | None:
        if isinstance(request, SingleBatch):
            answer = self._write_single(request, context)
            if answer is not None:
                return answer
            request = request.as_request()
        return self._write_all(request, context)

    def template(
        self, frame: memoryview, header: RequestHeader, body: int, request: SingleBatch, origin: Origin
    ) -> TemplatedWrites | None:
        """How requests like this one are answered; None if each must be looked at."""
        if request.acks != 1 and request.acks != _ALL:
            return None
        partition = self._find(header.api_version, request.name, request.topic_id, request.partition)
        if not isinstance(partition, Partition):
            return None
        template = ProduceTemplate(frame, header, body, request)
        key = (origin.principal, template.key)  # What one may do is no grant to another.
        known = self._templates.get(key)
        if known is not None and known.partition is partition:
            return known
        if len(self._templates) == _TEMPLATES_MAX:
            self._templates.clear()
        is_for_all = request.acks == _ALL
        writes = TemplatedWrites(
            template, header.client_id, partition, is_for_all, self._clock, self._bytes_in
        )
        self._templates[key] = writes
        return writes

    def _write_single(
        self, request: SingleBatch, context: RequestContext
    ) -> Parts | ProduceResponse | DelayedProduce | None:
        """The short way for what small requests are: one batch of an existing partition, to be answered.

        None, and nothing is written, wherever there may be something to refuse before the log is asked.
        """
        acks, timeout_ms, name, topic_id, index, records = request
        _, version, correlation_id, _ = context.header
        if version < _SINGLE_VERSION_MIN or (acks != 1 and acks != _ALL):
            return None
        partition = self._find(version, name, topic_id, index)
        if not isinstance(partition, Partition):
            return None
        now_ms, for_all = self._clock.wall_ms(), acks == _ALL
        written = partition.append_alone(records, now_ms, for_all)
        if isinstance(written, int):
            self._bytes_in.value += len(records)
            row = (index, 0, written, -1, partition.log.state.log_start_offset)
            return [encode_single_produce(version, correlation_id, request, row)]
        if written is not None:
            outcome: AppendedRecords | AppendRefused = written
        elif is_plain_batch(records):
            outcome = partition.append(records, now_ms, for_all_replicas=for_all)
        else:
            return None
        waiting: list[Unacknowledged] = []
        reply = self._reply(index, records, outcome, partition, acks, waiting)
        answer = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[reply])
        response = ProduceResponse(responses=[answer])
        if reply.error_code:
            self._tell_leaders(response, context)
        return self._when_acknowledged(response, waiting, timeout_ms)

    def _write_all(
        self, request: ProduceRequest, context: RequestContext
    ) -> ProduceResponse | DelayedProduce | InOrder | InPieces[ProduceResponse] | HangUp | None:
        if (count := count_named(request)) > AT_ONCE_MAX:  # It has its records for itself.
            return InPieces(self._write_in_pieces(request, context), count >= LARGE_MIN)
        refusal = refusal_of_all(request)
        refusals: Refusals = _NONE_REFUSED
        if refusal is None and request.transactional_id is not None:
            admitted = self._transactions.admit(request, context.version)
            if isinstance(admitted, ErrorCode):
                refusal = AppendRefused(admitted)
            elif isinstance(admitted, Mapping):
                refusals = admitted
            else:
                # The next request of this producer must not be written first.
                return InOrder(self._write_later(_kept(request), context, admitted))
        return self._write(request, context, refusal, refusals)

    async def _write_later(
        self, request: ProduceRequest, context: RequestContext, admitted: Awaitable[Refusals]
    ) -> ProduceResponse | HangUp | None:
        response = self._write(request, context, None, await admitted)
        if isinstance(response, DelayedProduce):
            made: ProduceResponse = await response.answer()
            return made
        return response

    def _write(
        self,
        request: ProduceRequest,
        context: RequestContext,
        refusal: AppendRefused | None,
        refusals: Refusals,
    ) -> ProduceResponse | DelayedProduce | HangUp | None:
        version, now_ms = context.version, self._clock.wall_ms()
        waiting: list[Unacknowledged] = []
        response = ProduceResponse()
        for topic, wanted in _by_place(request.topic_data):
            answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for data in wanted:
                if refusal is not None:
                    reply = error_of(data.index, refusal)
                else:
                    reply = self._append(topic, data, request, version, now_ms, waiting, refusals.get)
                answer.partition_responses.append(reply)
            response.responses.append(answer)
        if request.acks == 0:
            return silence_or_hang_up(response)
        self._tell_leaders(response, context)
        return self._when_acknowledged(response, waiting, request.timeout_ms)

    def _write_in_pieces(
        self, request: ProduceRequest, context: RequestContext
    ) -> Pieces[ProduceResponse | HangUp | None]:
        """The same for very many partitions, each of which may have to be opened first."""
        ends_s = self._clock.monotonic_s() + request.timeout_ms / 1000
        version = context.version
        refusal = yield from refusal_of_all_in_pieces(request)
        refused: Callable[[TopicPartition], ErrorCode | None] = _NONE_REFUSED.get
        admitted: AdmittedInPieces | None = None
        response = ProduceResponse()
        acknowledged = LongAcknowledgement(response, ends_s, self._clock.monotonic_s, self._turn)
        try:
            if refusal is None and request.transactional_id is not None:
                found = yield from self._transactions.admit_in_pieces(request, version)
                if isinstance(found, ErrorCode):
                    refusal = AppendRefused(found)
                else:
                    admitted, refused = found, found.refusal_of
                    if (waits_for := found.when_answered()) is not None:
                        yield from outside(waits_for)
            now_ms = self._clock.wall_ms()
            for topic, wanted in (yield from by_place_in_pieces(request.topic_data)):
                answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
                response.responses.append(answer)
                for data in wanted:
                    waiting: list[Unacknowledged] = []
                    if refusal is not None:
                        reply = error_of(data.index, refusal)
                    else:
                        reply = self._append(topic, data, request, version, now_ms, waiting, refused)
                    answer.partition_responses.append(reply)
                    acknowledged.wait_for(waiting)
                    yield None
            if request.acks == 0:
                return silence_or_hang_up(response)
            if self._hints is not None and version >= PRODUCE_HINTS_SINCE:
                yield from self._hints.on_produce_in_pieces(response, context.listener_name)
            yield from acknowledged.wait()
        finally:
            acknowledged.give_up()
            if admitted is not None:
                admitted.let_go()
        yield from dissolve(request)
        return response

    def _tell_leaders(self, response: ProduceResponse, context: RequestContext) -> None:
        if self._hints is not None and context.version >= PRODUCE_HINTS_SINCE:
            self._hints.on_produce(response, context.listener_name)

    def _when_acknowledged(
        self, response: ProduceResponse, waiting: list[Unacknowledged], timeout_ms: int
    ) -> ProduceResponse | DelayedProduce:
        return DelayedProduce(response, waiting, timeout_ms / 1000, self._turn) if waiting else response

    def _append(
        self,
        topic: TopicProduceData,
        data: PartitionProduceData,
        request: ProduceRequest,
        version: int,
        now_ms: int,
        waiting: list[Unacknowledged],
        refused: Callable[[TopicPartition], ErrorCode | None],
    ) -> PartitionProduceResponse:
        partition = self._find(version, topic.name, topic.topic_id, data.index)
        if not isinstance(partition, Partition):
            return error_of(data.index, AppendRefused(partition))
        if (error := refused(partition.topic_partition)) is not None:
            return error_of(data.index, AppendRefused(error, _EXPLAINED.get(error)))
        records = data.records
        refusal = refusal_of_records(records, version)
        if refusal is not None:
            return error_of(data.index, refusal)
        assert isinstance(records, memoryview)
        if request.transactional_id is not None and begins_late(partition, records, version):
            return error_of(data.index, AppendRefused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), partition)
        outcome = partition.append(records, now_ms, for_all_replicas=request.acks == _ALL)
        return self._reply(data.index, records, outcome, partition, request.acks, waiting)

    def _reply(
        self,
        index: int,
        records: memoryview,
        outcome: AppendedRecords | AppendRefused,
        partition: Partition,
        acks: int,
        waiting: list[Unacknowledged],
    ) -> PartitionProduceResponse:
        if isinstance(outcome, AppendRefused):
            return error_of(index, outcome, partition)
        self._bytes_in.add(len(records))
        reply = success(index, outcome, partition)
        log = partition.log
        if (acks == _ALL or log.config.acks_fsync) and log.high_watermark < outcome.end_offset:
            waiting.append(Unacknowledged(reply, partition, outcome.end_offset))
        return reply

    def _find(self, version: int, name: str, topic_id: UUID | None, index: int) -> Partition | ErrorCode:
        if version < TOPIC_ID_VERSION_MIN:
            return self._replicas.find(name, index)
        return self._replicas.find_by_id(topic_id, index)


def _by_place(
    topics: list[TopicProduceData],
) -> Iterable[tuple[TopicProduceData, Collection[PartitionProduceData]]]:
    """Kafka takes a topic that is named twice as one, and of a partition that is named twice the last."""
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return [(topics[0], topics[0].partition_data)]
    merged: dict[tuple[str, UUID | None], tuple[TopicProduceData, dict[int, PartitionProduceData]]] = {}
    for topic in topics:
        _, wanted = merged.setdefault((topic.name, topic.topic_id), (topic, {}))
        wanted.update((data.index, data) for data in topic.partition_data)
    return [(topic, wanted.values()) for topic, wanted in merged.values() if wanted]


def _kept(request: ProduceRequest) -> ProduceRequest:
    """The request with its own copy of the records, for use when the receive buffer is another's."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                data.records = memoryview(bytearray(data.records))
    return request
