"""Produce 3-13: append batches, and acknowledge them when as many replicas as asked for have them.

Everything is written before `handle` returns; what may be waited for is only the acknowledgement (acks=all
with followers, or `riverlog.acks.fsync`). Versions 0-2 are advertised for old librdkafka and close the
connection, as in Apache Kafka. A transactional batch is written only where its transaction is open or the
coordinator lets it in; only that may put the writing off (KIP-890). Never answers UNKNOWN_SERVER_ERROR.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from riverlog.broker.context import HangUp, InOrder, Parts, Repeated, RequestContext
from riverlog.broker.handlers.repeated_writes import RepeatedWrites
from riverlog.broker.produced_transactions import ProducedTransactions, begins_late
from riverlog.broker.transactional_writes import Refusals
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import Metrics
from riverlog.records.batch import CODEC_MASK
from riverlog.records.compression import Codec
from riverlog.records.produced import find_batch, first_batch_fault, is_plain_batch, is_transactional
from riverlog.records.rules import Rejected
from riverlog.replication.partition import NotWritten, Partition, Written
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.hot_produce import SingleBatch, encode_single
from riverlog.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from riverlog.wire.repeated_produce import RepeatedProduce

SERVED_VERSION_MIN = 3
_ACKS = frozenset({-1, 0, 1})
_ZSTD_VERSION_MIN = 7
_SINGLE_VERSION_MIN = 8
_BY_ID_VERSION_MIN = 13
_REPEATED_MAX = 256
_ALL = -1
_ATTRIBUTES_LOW_BYTE_AT = 22

_NONE_REFUSED: Refusals = {}
_EXPLAINED = {
    ErrorCode.INVALID_TXN_STATE: "the partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "the transaction's coordinator could not be asked; try again",
}
"""Of the refusals by a transaction's coordinator, those for which Kafka has words too."""

_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
"""Errors for which Kafka does not say where the log starts."""


class _Unacknowledged(NamedTuple):
    reply: PartitionProduceResponse
    partition: Partition
    waiting: "asyncio.Future[bool]"


class ProduceHandler:
    def __init__(
        self, replicas: ReplicaSet, transactions: ProducedTransactions, clock: Clock, metrics: Metrics
    ) -> None:
        self._replicas = replicas
        self._transactions = transactions
        self._clock = clock
        self._bytes_in = metrics.counter("riverlog_produced_bytes_total")
        self._repeated: dict[object, tuple[Partition, Repeated]] = {}
        """For all connections, so that what many of them need is in the processor's caches once."""

    def handle(
        self, request: ProduceRequest | SingleBatch, context: RequestContext
    ) -> Parts | ProduceResponse | Awaitable[ProduceResponse] | InOrder | HangUp | None:
        if isinstance(request, SingleBatch):
            answer = self._write_single(request, context)
            if answer is not None:
                return answer
            request = request.as_request()
        return self._write_all(request, context)

    def repeated(self, like: RepeatedProduce, request: SingleBatch) -> Repeated | None:
        """The answers to requests that are like one that was just handled; None if each must be looked at."""
        if request.acks != 1 and request.acks != _ALL:
            return None
        partition = self._find(like.version, request.name, request.topic_id, request.partition)
        if not isinstance(partition, Partition):
            return None
        known = self._repeated.get(like.key)
        if known is not None and known[0] is partition:
            return known[1]
        if len(self._repeated) == _REPEATED_MAX:
            self._repeated.clear()
        writes = RepeatedWrites(like, partition, request.acks == _ALL, self._clock, self._bytes_in)
        self._repeated[like.key] = partition, writes.answer
        return writes.answer

    def _write_single(
        self, request: SingleBatch, context: RequestContext
    ) -> Parts | ProduceResponse | Awaitable[ProduceResponse] | None:
        """The short way for what small requests are: one batch of an existing partition, to be answered.

        None, and nothing is written, wherever there may be something to refuse before the log is asked.
        """
        acks, timeout_ms, name, topic_id, index, records = request
        version, correlation_id = context.header[1:3]
        if version < _SINGLE_VERSION_MIN or (acks != 1 and acks != _ALL):
            return None
        partition = self._find(version, name, topic_id, index)
        if not isinstance(partition, Partition):
            return None
        now_ms, for_all = self._clock.wall_ms(), acks == _ALL
        written = partition.append_plain(records, now_ms, for_all)
        if isinstance(written, int):
            self._bytes_in.add(len(records))
            row = (index, 0, written, -1, partition.log.log_start_offset)
            return [encode_single(version, correlation_id, request, row)]
        if written is not None:
            outcome: Written | NotWritten = written
        elif is_plain_batch(records):
            outcome = partition.append(records, now_ms, for_all_replicas=for_all)
        else:
            return None
        waiting: list[_Unacknowledged] = []
        reply = self._reply(index, records, outcome, partition, acks, waiting)
        answer = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[reply])
        response = ProduceResponse(responses=[answer])
        return _acknowledge(response, waiting, timeout_ms / 1000) if waiting else response

    def _write_all(
        self, request: ProduceRequest, context: RequestContext
    ) -> ProduceResponse | Awaitable[ProduceResponse] | InOrder | HangUp | None:
        refusal = _refusal_of_all(request)
        refusals: Refusals = _NONE_REFUSED
        if refusal is None and request.transactional_id is not None:
            admitted = self._transactions.admit(request, context.version)
            if isinstance(admitted, ErrorCode):
                refusal = NotWritten(admitted)
            elif isinstance(admitted, Mapping):
                refusals = admitted
            else:
                # The next request of this producer must not be written first.
                return InOrder(self._write_later(_kept(request), context.version, admitted))
        return self._write(request, context.version, refusal, refusals)

    async def _write_later(
        self, request: ProduceRequest, version: int, admitted: Awaitable[Refusals]
    ) -> ProduceResponse | HangUp | None:
        response = self._write(request, version, None, await admitted)
        return await response if isinstance(response, Awaitable) else response

    def _write(
        self, request: ProduceRequest, version: int, refusal: NotWritten | None, refusals: Refusals
    ) -> ProduceResponse | Awaitable[ProduceResponse] | HangUp | None:
        now_ms = self._clock.wall_ms()
        waiting: list[_Unacknowledged] = []
        response = ProduceResponse()
        for topic, wanted in _by_place(request.topic_data):
            answer = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
            for data in wanted:
                if refusal is not None:
                    reply = _error(data.index, refusal)
                else:
                    reply = self._append(topic, data, request, version, now_ms, waiting, refusals)
                answer.partition_responses.append(reply)
            response.responses.append(answer)
        if request.acks == 0:
            return _silence_or_hang_up(response)
        if waiting:
            return _acknowledge(response, waiting, request.timeout_ms / 1000)
        return response

    def _append(
        self,
        topic: TopicProduceData,
        data: PartitionProduceData,
        request: ProduceRequest,
        version: int,
        now_ms: int,
        waiting: list[_Unacknowledged],
        refusals: Refusals,
    ) -> PartitionProduceResponse:
        partition = self._find(version, topic.name, topic.topic_id, data.index)
        if not isinstance(partition, Partition):
            return _error(data.index, NotWritten(partition))
        if refusals and (error := refusals.get(partition.topic_partition)) is not None:
            return _error(data.index, NotWritten(error, _EXPLAINED.get(error)))
        records = data.records
        refusal = _refusal_of_records(records, version)
        if refusal is not None:
            return _error(data.index, refusal)
        assert isinstance(records, memoryview)
        if request.transactional_id is not None and begins_late(partition, records, version):
            return _error(data.index, NotWritten(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), partition)
        outcome = partition.append(records, now_ms, for_all_replicas=request.acks == _ALL)
        return self._reply(data.index, records, outcome, partition, request.acks, waiting)

    def _reply(
        self,
        index: int,
        records: memoryview,
        outcome: Written | NotWritten,
        partition: Partition,
        acks: int,
        waiting: list[_Unacknowledged],
    ) -> PartitionProduceResponse:
        if isinstance(outcome, NotWritten):
            return _error(index, outcome, partition)
        self._bytes_in.add(len(records))
        reply = _success(index, outcome, partition)
        if acks == _ALL or partition.log.config.acks_fsync:
            unacknowledged = partition.acknowledged(outcome.end_offset)
            if unacknowledged is not None:
                waiting.append(_Unacknowledged(reply, partition, unacknowledged))
        return reply

    def _find(self, version: int, name: str, topic_id: UUID | None, index: int) -> Partition | ErrorCode:
        if version < _BY_ID_VERSION_MIN:
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


def _refusal_of_all(request: ProduceRequest) -> NotWritten | None:
    """What is wrong with the request as a whole, and so with every partition in it."""
    if request.acks not in _ACKS:
        return NotWritten(ErrorCode.INVALID_REQUIRED_ACKS)
    transactional = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                if fault := first_batch_fault(data.records):
                    return NotWritten(fault.error, fault.reply_message)
                transactional = transactional or is_transactional(data.records)
    if transactional and request.transactional_id is None:
        return NotWritten(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return None


def _kept(request: ProduceRequest) -> ProduceRequest:
    """The request with its own copy of the records, for use when the receive buffer is another's."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                data.records = memoryview(bytearray(data.records))
    return request


def _refusal_of_records(records: object, version: int) -> NotWritten | None:
    """What is wrong before the log is even asked."""
    if not isinstance(records, memoryview):
        # Kafka leaves a client that sends null records without any answer.
        return NotWritten(ErrorCode.INVALID_RECORD)
    batch = find_batch(records)
    if isinstance(batch, Rejected):
        return NotWritten(batch.error, batch.reply_message)
    if version < _ZSTD_VERSION_MIN and batch[_ATTRIBUTES_LOW_BYTE_AT] & CODEC_MASK == Codec.ZSTD:
        return NotWritten(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return None


def _success(index: int, written: Written, partition: Partition) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        base_offset=written.first_offset,
        log_append_time_ms=-1 if written.append_time_ms is None else written.append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )


def _error(index: int, refused: NotWritten, partition: Partition | None = None) -> PartitionProduceResponse:
    has_log_start = partition is not None and (
        bool(refused.record_errors) or refused.error not in _WITHOUT_LOG_START
    )
    return PartitionProduceResponse(
        index=index,
        error_code=_told(refused.error),
        base_offset=-1,
        log_start_offset=partition.log.log_start_offset if partition is not None and has_log_start else -1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
            for at, message in refused.record_errors
        ],
        error_message=refused.message,
    )


def _told(error: ErrorCode) -> ErrorCode:
    """Kafka stumbles over some bytes with UNKNOWN_SERVER_ERROR; clients take that for a lost write and repeat
    it, so it is told as what it is: a batch that will never be taken."""
    return ErrorCode.INVALID_RECORD if error is ErrorCode.UNKNOWN_SERVER_ERROR else error


def _silence_or_hang_up(response: ProduceResponse) -> HangUp | None:
    """A client that wants no reply learns of a failure by losing its connection, as with Kafka."""
    for topic in response.responses:
        for reply in topic.partition_responses:
            if reply.error_code:
                error = ErrorCode(reply.error_code).name
                return HangUp(f"produce with acks=0 to {topic.name}-{reply.index} failed with {error}")
    return None


async def _acknowledge(
    response: ProduceResponse, waiting: list[_Unacknowledged], timeout_s: float
) -> ProduceResponse:
    await asyncio.wait([each.waiting for each in waiting], timeout=max(timeout_s, 0))
    for reply, partition, acknowledged in waiting:
        if not acknowledged.done():
            acknowledged.cancel()
            _fail(reply, ErrorCode.REQUEST_TIMED_OUT)
        elif not acknowledged.result():
            _fail(reply, partition.refusal() or ErrorCode.KAFKA_STORAGE_ERROR)
    return response


def _fail(reply: PartitionProduceResponse, error: ErrorCode) -> None:
    reply.error_code = error
    reply.base_offset = -1
    reply.log_append_time_ms = -1
    reply.log_start_offset = -1
