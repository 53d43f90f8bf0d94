"""Producing whole batches: several requests on the way to each leader, nothing lost and nothing doubled.

The blocking driver of `core.producing`. A batch arrives as encoded records; here it gets its header: producer
id, epoch, sequence, CRC. At most `IN_FLIGHT_MAX` requests of one writer are on the way to a broker. When a
connection is lost, or a partition has moved, everything that has no answer is sent again, in the order of its
sequences, one batch at a time; the broker takes what it has for a repetition. Without a producer nothing is
sent twice on purpose, and a retry may double. Memory is bounded by the requests on the way. Not here:
building batches, transactions.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from riverlog.client.broker_connection import Transport
from riverlog.client.cluster import BrokerRefused, Cluster
from riverlog.client.core.events import Replied
from riverlog.client.core.new_batch import NewBatch, produce_frame
from riverlog.client.core.producing import (
    IN_FLIGHT_MAX,
    ProduceBatches,
    Sequences,
    is_fenced,
    is_written,
    outcome_of,
    requests_for,
)
from riverlog.client.transaction_dialect import Dialect
from riverlog.client.transactions import add_partitions
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_NAMES_UNTIL: Final = 12
"""Of Produce: later ones name topics by id."""
_ADDED_BEFORE_UNTIL: Final = 11
"""Of Produce: later ones add their partitions to the transaction by themselves."""

_Pipe = Transport[list[NewBatch]]
"""A connection with several Produce requests on the way, each with its batches."""


class WriterFenced(RiverlogError):  # noqa: N818 - named for what it is
    """The producer may not write any more: its id was taken over, or its transaction was ended."""


@dataclass(frozen=True, slots=True)
class WriteSettings:
    acks: int = -1
    in_flight_max: int = IN_FLIGHT_MAX


@dataclass(frozen=True, slots=True)
class Transactional:
    transactional_id: str
    dialect: Dialect


@dataclass(slots=True)
class BatchWriter:
    """Give batches to `write`, then `flush`: they are written, or an exception has said why not."""

    cluster: Cluster
    producer: ProducerIdAndEpoch | None
    transactional: Transactional | None = None
    settings: WriteSettings = WriteSettings()
    _pipes: dict[int, _Pipe] = field(default_factory=dict)
    _sequences: Sequences = field(default_factory=Sequences)
    _leaders: dict[TopicPartition, int] = field(default_factory=dict)
    _unsure: list[NewBatch] = field(default_factory=list)
    """Sent, and without an answer that says written."""
    _written: int = 0

    @property
    def records_written(self) -> int:
        return self._written

    def write(self, batches: Collection[NewBatch]) -> None:
        """Send these, and wait for room. Later batches of a partition follow the earlier ones."""
        self._sign(batches)
        for request in requests_for(batches, self._leader):
            self._send(request)
        if self._unsure:
            self._recover()

    def write_alone(self, batch: NewBatch) -> None:
        """One batch, written when this returns, over the connection that the cluster has anyway."""
        self._sign([batch])
        self._write_again(batch)

    def flush(self) -> None:
        """Return when everything is written."""
        self._receive_all()
        if self._unsure:
            self._recover()

    def close(self) -> None:
        """Drop the connections; what is on the way may or may not arrive."""
        for pipe in self._pipes.values():
            pipe.close()
        self._pipes.clear()

    def _sign(self, batches: Iterable[NewBatch]) -> None:
        transactional = self.transactional
        new = self._sequences.sign(batches, self.producer, is_transactional=transactional is not None)
        if new and transactional is not None and not transactional.dialect.bumps_epoch:
            assert self.producer is not None
            add_partitions(self.cluster, transactional.transactional_id, self.producer, new)

    def _leader(self, at: TopicPartition) -> int:
        if at not in self._leaders:
            self._leaders[at] = self.cluster.leader(*at)
        return self._leaders[at]

    def _send(self, request: ProduceBatches) -> None:
        try:
            pipe = self._pipe(request.node_id)
            while not self._unsure and pipe.outstanding >= self.settings.in_flight_max:
                self._receive(request.node_id, pipe)
            if self._unsure:
                # Something before these has failed: they must not overtake it.
                self._unsure += request.batches
                return
            self._queue(pipe, request.batches)
            pipe.send()
        except OSError:
            self._lost(request.node_id, request.batches)

    def _queue(self, pipe: _Pipe, batches: list[NewBatch]) -> None:
        pipe.open()
        pipe.core.request_pieces(
            ApiKey.PRODUCE,
            pipe.core.versions.newest(ApiKey.PRODUCE, self._version_max),
            batches,
            lambda header: produce_frame(
                header, self._transactional_id, self.settings.acks, self._timeout_ms, batches
            ),
        )

    def _receive_all(self) -> None:
        for node_id, pipe in list(self._pipes.items()):
            while node_id in self._pipes and pipe.outstanding:
                self._receive(node_id, pipe)

    def _receive(self, node_id: int, pipe: _Pipe) -> None:
        try:
            reply = pipe.next_reply()
        except OSError:
            self._lost(node_id, ())
        else:
            self._take(node_id, reply)

    def _take(self, node_id: int, reply: Replied[list[NewBatch]]) -> None:
        batches = reply.request.tag
        try:
            message: ProduceResponse = reply.message()
        except MalformedMessage:
            self._lost(node_id, batches)
            return
        outcome = outcome_of(batches, message, follows_failure=bool(self._unsure))
        self._written += outcome.records_written
        self._unsure += outcome.again
        if outcome.refused is not None:
            raise _refusal(*outcome.refused)

    def _lost(self, node_id: int, batches: Iterable[NewBatch]) -> None:
        """The connection is gone. These batches, and those that were on the way, are unsure."""
        pipe = self._pipes.pop(node_id, None)
        ended = [] if pipe is None else pipe.close()
        unanswered = [batch for each in ended if not isinstance(each, Replied) for batch in each.request.tag]
        # Those that could not be sent may be in both.
        self._unsure += {id(batch): batch for batch in (*unanswered, *batches)}.values()
        for each in ended:
            if isinstance(each, Replied):
                self._take(node_id, each)

    def _recover(self) -> None:
        """Send again what has no answer, batch by batch in the order of sequences."""
        self._receive_all()
        # In each partition the order of arrival here is not that of sequences: pipes fail one by one.
        unsure, self._unsure = self._sequences.in_order(self._unsure), []
        self._leaders.clear()
        self.cluster.invalidate()
        for batch in unsure:
            self._write_again(batch)

    def _write_again(self, batch: NewBatch) -> None:
        request = self._request_alone(batch)

        def attempt() -> int:
            answer: ProduceResponse = self.cluster.ask_leader(
                batch.topic, batch.partition, ApiKey.PRODUCE, request, version_max=self._version_max
            )
            return answer.responses[0].partition_responses[0].error_code

        try:
            self.cluster.retrying(
                attempt,
                lambda code: ErrorCode.NONE if is_written(code) else code,
                doing=f"write to {batch.topic}-{batch.partition}",
                wait_for_topic=True,
            )
        except BrokerRefused as refusal:
            raise _refusal(batch, refusal.code) from refusal
        self._written += batch.record_count

    def _pipe(self, node_id: int) -> _Pipe:
        if node_id not in self._pipes:
            settings = self.cluster.settings
            address = self.cluster.address_of(node_id)
            self._pipes[node_id] = _Pipe(
                address, timeout_s=settings.request_timeout_s, client_id=settings.client_id
            )
        return self._pipes[node_id]

    @property
    def _version_max(self) -> int:
        is_older = self.transactional is not None and not self.transactional.dialect.bumps_epoch
        return _ADDED_BEFORE_UNTIL if is_older else _NAMES_UNTIL

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


def _refusal(batch: NewBatch, code: int) -> RiverlogError:
    doing = f"write to partition {batch.partition} of topic {batch.topic}"
    refusal = BrokerRefused(doing, code)
    return WriterFenced(str(refusal)) if is_fenced(code) else refusal
