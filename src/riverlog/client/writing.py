"""Producing whole batches: several requests on the way to each leader, nothing lost and nothing doubled.

A batch arrives as encoded records; here it gets its header: producer id, epoch, sequence, CRC. At most
`IN_FLIGHT_MAX` requests of one writer are on the way to a broker, each with at most one batch of a partition,
which is as many as a broker remembers to know a repetition by. When a connection is lost, or a partition has
moved, everything that has no answer is sent again, in the order of its sequences, one batch at a time; the
broker takes what it has for a repetition. Without a producer nothing is sent twice on purpose, and a retry
may double. Blocking; memory is bounded by the requests on the way. Not here: building batches, transactions.
"""

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from riverlog.client.broker_connection import BrokerConnection
from riverlog.client.cluster import MOVED, BrokerRefused, Cluster
from riverlog.client.new_batch import NewBatch, produce_frame
from riverlog.client.transactions import Dialect, Producer, add_partitions
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import MalformedMessage, decode
from riverlog.wire.framing import RequestHeader, decode_response_header
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

IN_FLIGHT_MAX: Final = 5
_PIECES_AT_ONCE: Final = 512
"""Fewer than any system takes in one call."""
_REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
_NAMES_UNTIL: Final = 12
"""Of Produce: later ones name topics by id."""
_ADDED_BEFORE_UNTIL: Final = 11
"""Of Produce: later ones add their partitions to the transaction by themselves."""
_SEQUENCES: Final = 1 << 31

_AGAIN: Final = MOVED | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}
_WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_FENCED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


class WriterFenced(RiverlogError):  # noqa: N818 - named for what it is
    """The producer may not write any more: somebody took its id over, or its transaction was ended."""


@dataclass(frozen=True, slots=True)
class WriteSettings:
    acks: int = -1
    in_flight_max: int = IN_FLIGHT_MAX


@dataclass(frozen=True, slots=True)
class Transactional:
    transactional_id: str
    dialect: Dialect


class _Pipe(BrokerConnection):
    """A connection with several Produce requests on the way."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        settings = cluster.settings
        address = cluster.brokers()[node_id]
        super().__init__(address, timeout_s=settings.request_timeout_s, client_id=settings.client_id)
        self.on_the_way: deque[tuple[int, list[NewBatch]]] = deque()

    def send(
        self, version: int, transactional_id: str | None, acks: int, timeout_ms: int, batches: list[NewBatch]
    ) -> None:
        self._asked += 1
        self.on_the_way.append((self._asked, batches))
        header = RequestHeader(ApiKey.PRODUCE, version, self._asked, self._client_id)
        pieces = [
            memoryview(piece) for piece in produce_frame(header, transactional_id, acks, timeout_ms, batches)
        ]
        while pieces:
            sent = self._socket.sendmsg(pieces[:_PIECES_AT_ONCE])
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            if sent:
                pieces[0] = pieces[0][sent:]

    def receive(self, version: int) -> tuple[list[NewBatch], ProduceResponse]:
        size = int.from_bytes(self._receive(4), signed=True)
        data = self._receive(size)
        answered, position = decode_response_header(ApiKey.PRODUCE, version, data)
        asked, batches = self.on_the_way[0]
        if answered != asked:
            raise ConnectionError("the broker answered something that was not asked")
        response, _ = decode(APIS[ApiKey.PRODUCE].response, version, data, position)
        self.on_the_way.popleft()
        assert isinstance(response, ProduceResponse)
        return batches, response


@dataclass(slots=True)
class BatchWriter:
    """Give batches to `write`, then `flush`: they are written, or an exception has said why not."""

    cluster: Cluster
    producer: Producer | None
    transactional: Transactional | None = None
    settings: WriteSettings = WriteSettings()
    _pipes: dict[int, _Pipe] = field(default_factory=dict)
    _sequences: dict[TopicPartition, int] = field(default_factory=dict)
    _leaders: dict[TopicPartition, int] = field(default_factory=dict)
    _unsure: list[NewBatch] = field(default_factory=list)
    """Sent, and without an answer that says written."""
    _written: int = 0

    @property
    def has_written(self) -> bool:
        return bool(self._sequences)

    @property
    def records_written(self) -> int:
        return self._written

    def write(self, batches: Collection[NewBatch]) -> None:
        """Send these, and wait for room. Later batches of a partition follow the earlier ones."""
        self._sign(batches)
        for node_id, request in self._requests(batches):
            self._send(node_id, request)
        if self._unsure:
            self._recover()

    def flush(self) -> None:
        """Return when everything is written."""
        for node_id in list(self._pipes):
            while (pipe := self._pipes.get(node_id)) is not None and pipe.on_the_way:
                self._receive(node_id, pipe)
        if self._unsure:
            self._recover()

    def close(self) -> None:
        """Drop the connections; what is on the way may or may not arrive."""
        for pipe in self._pipes.values():
            pipe.close()
        self._pipes.clear()

    def _sign(self, batches: Iterable[NewBatch]) -> None:
        new: list[TopicPartition] = []
        for batch in batches:
            at = TopicPartition(batch.topic, batch.partition)
            sequence = self._sequences.get(at)
            if sequence is None:
                new.append(at)
                sequence = 0
            batch.sign(self.producer, sequence, is_transactional=self.transactional is not None)
            self._sequences[at] = (sequence + batch.record_count) % _SEQUENCES
        if new and self.transactional is not None and not self.transactional.dialect.has_epoch_each:
            assert self.producer is not None
            add_partitions(self.cluster, self.transactional.transactional_id, self.producer, new)

    def _requests(self, batches: Iterable[NewBatch]) -> Iterable[tuple[int, list[NewBatch]]]:
        """Batches by leader, a partition once in each request, none much larger than the limit."""
        filling: dict[int, tuple[set[TopicPartition], list[NewBatch], list[int]]] = {}
        for batch in batches:
            at = TopicPartition(batch.topic, batch.partition)
            node_id = self._leader(at)
            seen, request, size = filling.setdefault(node_id, (set(), [], [0]))
            if at in seen or (request and size[0] + batch.size_bytes > _REQUEST_BYTES_MAX):
                yield node_id, request
                seen, request, size = filling[node_id] = (set(), [], [0])
            seen.add(at)
            request.append(batch)
            size[0] += batch.size_bytes
        for node_id, (_, request, _) in filling.items():
            yield node_id, request

    def _leader(self, at: TopicPartition) -> int:
        if at not in self._leaders:
            self._leaders[at] = self.cluster.leader(*at)
        return self._leaders[at]

    def _send(self, node_id: int, batches: list[NewBatch]) -> None:
        if self._unsure:
            # Something before these has failed: they must not overtake it.
            self._unsure += batches
            return
        pipe: _Pipe | None = None
        try:
            pipe = self._pipe(node_id)
            while len(pipe.on_the_way) >= self.settings.in_flight_max:
                self._receive(node_id, pipe)
                if self._unsure:
                    self._unsure += batches
                    return
            pipe.send(
                self._version(pipe), self._transactional_id, self.settings.acks, self._timeout_ms, batches
            )
        except OSError:
            self._lost(node_id, pipe, batches)

    def _receive(self, node_id: int, pipe: _Pipe) -> None:
        try:
            batches, response = pipe.receive(self._version(pipe))
        except (OSError, MalformedMessage):
            self._lost(node_id, pipe, ())
            return
        self._unsure += self._left_over(batches, response)

    def _lost(self, node_id: int, pipe: _Pipe | None, batches: Iterable[NewBatch]) -> None:
        known: dict[int, NewBatch] = {}
        if pipe is not None:
            known = {id(batch): batch for _, sent in pipe.on_the_way for batch in sent}
            pipe.close()
        self._pipes.pop(node_id, None)
        known |= {id(batch): batch for batch in batches}
        self._unsure += known.values()

    def _recover(self) -> None:
        """Send again whatever has no answer, batch by batch in the order of sequences."""
        for node_id, pipe in list(self._pipes.items()):
            while node_id in self._pipes and pipe.on_the_way:
                self._receive(node_id, pipe)
        unsure, self._unsure = self._unsure, []
        # In each partition the order of arrival here is not that of sequences: pipes fail one by one.
        unsure.sort(key=lambda batch: _sequence_of(batch, self._sequences))
        self._leaders.clear()
        self.cluster.invalidate()
        for batch in unsure:
            self._write_alone(batch)

    def _write_alone(self, batch: NewBatch) -> None:
        request = self._request_alone(batch)
        version_max = self._version_max()

        def attempt() -> int:
            answer: ProduceResponse = self.cluster.ask_leader(
                batch.topic, batch.partition, ApiKey.PRODUCE, request, version_max=version_max
            )
            return answer.responses[0].partition_responses[0].error_code

        def code_of(code: int) -> int:
            return ErrorCode.NONE if code in _WRITTEN else code

        try:
            self.cluster.retrying(
                attempt, code_of, doing=f"write to {batch.topic}-{batch.partition}", retry_on=_AGAIN
            )
        except BrokerRefused as refusal:
            raise _refusal(batch, refusal.code) from refusal
        self._written += batch.record_count

    def _left_over(self, batches: list[NewBatch], response: ProduceResponse) -> list[NewBatch]:
        codes = {
            (topic.name, each.index): each.error_code
            for topic in response.responses
            for each in topic.partition_responses
        }
        again = []
        for batch in batches:
            code = codes.get((batch.topic, batch.partition), ErrorCode.UNKNOWN_SERVER_ERROR)
            if code in _WRITTEN:
                self._written += batch.record_count
            elif code in _AGAIN or (code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._unsure):
                again.append(batch)
            else:
                raise _refusal(batch, code)
        return again

    def _pipe(self, node_id: int) -> _Pipe:
        if node_id not in self._pipes:
            self._pipes[node_id] = _Pipe(self.cluster, node_id)
        return self._pipes[node_id]

    def _version_max(self) -> int:
        is_older = self.transactional is not None and not self.transactional.dialect.has_epoch_each
        return _ADDED_BEFORE_UNTIL if is_older else _NAMES_UNTIL

    def _version(self, pipe: _Pipe) -> int:
        return pipe.version(ApiKey.PRODUCE, self._version_max())

    @property
    def _transactional_id(self) -> str | None:
        return None if self.transactional is None else self.transactional.transactional_id

    @property
    def _timeout_ms(self) -> int:
        return int(self.cluster.settings.request_timeout_s * 1000)

    def _request_alone(self, batch: NewBatch) -> ProduceRequest:
        partition = PartitionProduceData(index=batch.partition, records=b"".join(batch.pieces))
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self.settings.acks,
            timeout_ms=self._timeout_ms,
            topic_data=[TopicProduceData(name=batch.topic, partition_data=[partition])],
        )


def _sequence_of(batch: NewBatch, next_sequences: dict[TopicPartition, int]) -> int:
    """Minus how far before the next sequence the batch is, so that a wrap to 0 does not matter."""
    upcoming = next_sequences[TopicPartition(batch.topic, batch.partition)]
    return -((upcoming - batch.sequence) % _SEQUENCES)


def _refusal(batch: NewBatch, code: int) -> RiverlogError:
    doing = f"write to partition {batch.partition} of topic {batch.topic}"
    refusal = BrokerRefused(doing, code)
    return WriterFenced(str(refusal)) if code in _FENCED else refusal
