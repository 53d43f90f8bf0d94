"""What drivers have decided: for each query or named write, the transactions that are its newest epoch.

They stand in a compacted topic of the cluster that is written to, under the identity of the query, and each
is written in a transaction under the query's own transactional id. A driver first takes that id over: from
then on no other driver can decide, and what others have decided is in the log, with its marker. The log is
read without regard to the last stable offset, which another query's open transaction may hold back, and
records count by the markers behind them: that is exact for whoever has taken the id over. Somebody who has
not, a task, may miss a decision that is just being taken, and never sees one that was not.

Only the newest epoch is kept: Spark repeats an epoch only until it is in its commit log, and begins the next
one after that.
"""

import json
import os
import struct
import time
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from riverlog.client.cluster import BrokerRefused, ClientSettings, Cluster
from riverlog.client.core.new_batch import NewBatch
from riverlog.client.open_transactions import describe
from riverlog.client.transaction_dialect import Dialect
from riverlog.client.transactions import TransactionEndedOtherwise, end, take_over
from riverlog.client.writing import BatchWriter, Transactional, WriterFenced
from riverlog.model.disk import FileSlice, ReadableBuffer
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.records.batch import HEADER_BYTES, BatchHeader, walk
from riverlog.records.builder import ControlType, build_batch
from riverlog.records.compression import Codec
from riverlog.records.murmur2 import partition_for_key
from riverlog.records.record import records_of
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

TOPIC: Final = "__riverlog_spark_decisions"
PARTITIONS: Final = 8
"""Part of the format: a query's partition follows from it, however many the topic has later."""
PREFIX: Final = "riverlog-spark"
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # A driver reads its partition from the beginning, so that is kept short.
    "segment.bytes": str(1024 * 1024),
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(16 * 1024 * 1024),
}
_IF_REPLICATED: Final = {"min.insync.replicas": "2"}
_FORMAT: Final = 1
_TIMEOUT_MS: Final = 60_000
_FETCH_BYTES: Final = 8 * 1024 * 1024
_FETCH_VERSION_MAX: Final = 12
"""Later ones name topics by id."""
_DEFAULT_FACTOR: Final = -1
_CONTROL_KEY: Final = struct.Struct(">hh")
_CREATED: Final = frozenset({ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})


@dataclass(frozen=True, slots=True)
class Written:
    """A transaction that a task has left open: all that it takes to end it."""

    transactional_id: str
    producer: ProducerIdAndEpoch


@dataclass(frozen=True, slots=True)
class Contents:
    record_count: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Decision:
    identity: str
    epoch: int
    run: str
    """Which run of the query decided; its later epochs begin only when all of this is ended."""
    transactions: tuple[Written, ...]
    contents: Contents | None = None
    """Of a named write, to tell whether somebody has used its name for another one."""
    is_begun: bool = False
    """Nothing is decided yet, but a write has begun: see `write_lanes`."""


class DriverFenced(RiverlogError):  # noqa: N818 - named for what it is
    """Another driver of the same query has taken over."""


class UnknownDecision(RiverlogError):  # noqa: N818 - named for what it is
    """A decision in a form that this version does not know."""


def task_prefix(identity: str) -> str:
    """What the transactional ids of a query's tasks begin with."""
    return f"{PREFIX}/{identity}/"


def driver_id(identity: str) -> str:
    return f"{PREFIX}-driver/{identity}"


def create_topic(cluster: Cluster) -> None:
    """Create the topic of decisions where it is missing."""
    view = cluster.topics([TOPIC])[TOPIC]
    if view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        topic = CreatableTopic(
            name=TOPIC,
            num_partitions=PARTITIONS,
            replication_factor=(factor := _replicas_of_transactions(cluster)),
            configs=[
                CreatableTopicConfig(name=name, value=value)
                for name, value in {**_CONFIGS, **(_IF_REPLICATED if factor > 2 else {})}.items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
        answer = cluster.ask_any(ApiKey.CREATE_TOPICS, request).topics[0]
        if answer.error_code not in _CREATED:
            raise BrokerRefused(f"creation of topic {TOPIC}", answer.error_code, answer.error_message)
        cluster.invalidate()
    elif len(view.partitions) < PARTITIONS:
        raise RiverlogError(f"topic {TOPIC} has {len(view.partitions)} partitions; it needs {PARTITIONS}")


def _replicas_of_transactions(cluster: Cluster) -> int:
    """A decision is worth nothing without the transactions that it decides about, and they nothing without
    it: both go on while the same brokers are away."""
    describe(cluster, [PREFIX])  # Whose coordinator there is then, and so its log.
    partitions = cluster.topics([TRANSACTIONS_TOPIC])[TRANSACTIONS_TOPIC].partitions
    return min((len(each.replicas) for each in partitions.values()), default=_DEFAULT_FACTOR)


@dataclass(slots=True)
class DecisionLog:
    """What has been decided for one identity, read as far as the log reached at the last `refresh`."""

    cluster: Cluster
    identity: str
    position: int = 0
    newest: Decision | None = None
    _undecided: dict[int, bytes | None] = field(default_factory=dict)
    """By producer id, what is written and has no marker yet."""

    def refresh(self) -> Decision | None:
        """The newest decision there is now."""
        end_offset: int | None = None
        while end_offset is None or self.position < end_offset:
            data = self._fetch()
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                # Deleted before, or created anew: from the beginning of what there is.
                self.position = max(0, data.log_start_offset)
                self.newest = None
                continue
            end_offset = data.high_watermark if end_offset is None else end_offset
            before = self.position
            records = data.records or b""
            assert not isinstance(records, FileSlice), "what comes over the network is in memory"
            for position, header in walk(records):
                self._apply(records, position, header)
            if self.position == before:
                break
        return self.newest

    def _fetch(self) -> PartitionData:
        partition = FetchPartition(
            partition=self._partition, fetch_offset=self.position, partition_max_bytes=_FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_FETCH_BYTES,
            topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
        )

        def attempt() -> PartitionData:
            answer = self.cluster.ask_leader(
                TOPIC, self._partition, ApiKey.FETCH, request, version_max=_FETCH_VERSION_MAX
            )
            data = answer.responses[0].partitions[0]
            assert isinstance(data, PartitionData)
            return data

        def code_of(data: PartitionData) -> int:
            return 0 if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE else data.error_code

        return self.cluster.retrying(attempt, code_of, doing="decisions of Spark queries")

    @property
    def _partition(self) -> int:
        return partition_of(self.identity)

    def _apply(self, buffer: ReadableBuffer, position: int, header: BatchHeader) -> None:
        self.position = header.next_offset
        raw = bytes(buffer[position : position + header.size_bytes])
        if header.is_control:
            if header.producer_id in self._undecided:
                value = self._undecided.pop(header.producer_id)
                [record] = records_of(raw)
                _, control = _CONTROL_KEY.unpack(record.key or b"")
                if control == ControlType.COMMIT:
                    self.newest = None if value is None else decode(self.identity, value)
            return
        # Most are of other queries, or older: only what may be of this one is decoded.
        key = self.identity.encode()
        if header.codec is Codec.NONE and key not in raw:
            return
        for record in records_of(raw):
            if record.key == key:
                self._undecided[header.producer_id] = record.value


_known: dict[tuple[int, ClientSettings, str], tuple[UUID | None, DecisionLog]] = {}
_KNOWN_MAX: Final = 256


def decision_log(cluster: Cluster, identity: str, *, is_same_topic: bool = False) -> DecisionLog | None:
    """The log as far as this process has read it before; None while there is no topic of decisions.

    `is_same_topic`: nobody has deleted the topic since the last call, so that it need not be looked at.
    """
    # The process is part of the key because workers are forked.
    key = (os.getpid(), cluster.settings, identity)
    topic_id, log = _known.pop(key, (None, None))
    if log is None or not is_same_topic:
        view = cluster.topics([TOPIC])[TOPIC]
        if view.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        if log is None or topic_id != view.topic_id:
            topic_id, log = view.topic_id, DecisionLog(cluster, identity)
    log.cluster = cluster
    _known[key] = topic_id, log
    while len(_known) > _KNOWN_MAX:
        del _known[next(iter(_known))]
    return log


def partition_of(identity: str) -> int:
    return partition_for_key(identity.encode(), PARTITIONS)


@dataclass(slots=True)
class Decider:
    """The one driver that may decide for an identity, until another takes over."""

    cluster: Cluster
    dialect: Dialect
    log: DecisionLog
    producer: ProducerIdAndEpoch

    @classmethod
    def take(cls, cluster: Cluster, dialect: Dialect, log: DecisionLog) -> "Decider":
        """Fence every other driver, then see what was decided so far."""
        producer = take_over(cluster, driver_id(log.identity), timeout_ms=_TIMEOUT_MS)
        log.refresh()
        return cls(cluster, dialect, log, producer)

    def decide(self, decision: Decision) -> None:
        """Write the decision; it is taken when this returns."""
        self.put(encode(decision))
        self.conclude()
        self.log.newest = decision

    def forget(self) -> None:
        """Nobody will ask for what was decided any more."""
        if not self.dialect.bumps_epoch:
            # Otherwise this would have to go on with the sequence of the decision.
            self.producer = take_over(self.cluster, driver_id(self.log.identity), timeout_ms=_TIMEOUT_MS)
        self.put(None)
        self.conclude()
        self.log.newest = None

    def put(self, value: bytes | None) -> None:
        """Write the record; it counts when it is concluded."""
        transactional = Transactional(driver_id(self.log.identity), self.dialect)
        try:
            BatchWriter(self.cluster, self.producer, transactional).write_alone(self._batch(value))
        except WriterFenced as error:
            raise self._fenced() from error

    def conclude(self) -> None:
        try:
            self.producer = end(
                self.cluster, driver_id(self.log.identity), self.producer, self.dialect, commit=True
            )
        except TransactionEndedOtherwise as error:
            raise self._fenced() from error

    def _fenced(self) -> DriverFenced:
        return DriverFenced(
            f"another driver runs query {self.log.identity} and has taken over; this one stops"
        )

    def _batch(self, value: bytes | None) -> NewBatch:
        now_ms = time.time_ns() // 1_000_000
        built = build_batch([(now_ms, self.log.identity.encode(), value, ())])
        return NewBatch(TOPIC, partition_of(self.log.identity), [memoryview(built)[HEADER_BYTES:]], 1, now_ms)


def encode(decision: Decision) -> bytes:
    prefix = task_prefix(decision.identity)
    contents = decision.contents
    described = (
        {} if contents is None else {"records": contents.record_count, "topics": sorted(contents.topics)}
    )
    return json.dumps(
        {
            "format": _FORMAT,
            "epoch": decision.epoch,
            "run": decision.run,
            "transactions": [
                [
                    each.transactional_id.removeprefix(prefix),
                    each.producer.producer_id,
                    each.producer.producer_epoch,
                ]
                for each in decision.transactions
            ],
            **described,
            **({"begun": True} if decision.is_begun else {}),
        },
        separators=(",", ":"),
    ).encode()


def decode(identity: str, value: bytes) -> Decision:
    fields = json.loads(value)
    if fields["format"] != _FORMAT:
        raise UnknownDecision(
            f"a decision for {identity} has format {fields['format']}, which a newer riverlog wrote; update"
        )
    prefix = task_prefix(identity)
    return Decision(
        identity,
        fields["epoch"],
        fields["run"],
        tuple(
            Written(prefix + name, ProducerIdAndEpoch(producer_id, epoch))
            for name, producer_id, epoch in fields["transactions"]
        ),
        Contents(fields["records"], frozenset(fields["topics"])) if "records" in fields else None,
        is_begun=fields.get("begun", False),
    )
