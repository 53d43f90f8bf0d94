"""Whole record batches of one partition, from one offset to another.

A `PartitionReader` fetches as much at once as it may and gives the batches as they came, without looking
inside: the caller decodes. Control batches are left out, and so are batches of aborted transactions when
committed records only are wanted; both leave gaps, as compaction does, and a gap is nothing to complain
about. `OffsetGone` is: an offset that the log does not have any more, or not yet.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from riverlog.client.broker_connection import BrokerConnection
from riverlog.client.cluster import BrokerRefused, Cluster
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.records.batch import BatchHeader, CorruptBatch, crc_is_valid, walk
from riverlog.records.record import records_of
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

_TOPIC_ID_VERSION: Final = 13
_NAMES_VERSION: Final = 12
_ABORT: Final = b"\0\0"
_GONE_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class OffsetGone(RiverlogError):  # noqa: N818 - named for what it is
    """The log does not hold the offset: it begins behind it, or ends before it."""

    def __init__(self, at: TopicPartition, offset: int, log_start: int | None) -> None:
        super().__init__(f"offset {offset} of partition {at.partition} of topic {at.topic} is not there")
        self.offset = offset
        self.log_start = log_start


class TopicGone(RiverlogError):  # noqa: N818 - named for what it is
    """The topic does not exist any more, or another one has taken its name."""


class CorruptData(RiverlogError):  # noqa: N818 - named for what it is
    """A batch whose checksum is wrong."""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    read_committed: bool = False
    partition_bytes: int = 8 * 1024 * 1024
    """Asked for at once. One batch comes whole, even when it is larger."""
    wait_ms: int = 500
    check_crcs: bool = True


class FetchedBatch(NamedTuple):
    buffer: memoryview
    """What was fetched, with other batches and padding behind this one."""
    position: int
    header: BatchHeader


class Fetched(NamedTuple):
    first_offset: int
    """What was asked for. The first batch may hold records before it."""
    batches: list[FetchedBatch]
    next_offset: int
    """Where the next fetch begins."""
    is_at_end: bool
    """Nothing more is to come up to the end that was asked for."""


class PartitionReader:
    """Reads forward; one fetch at a time. `topic_id` None reads any topic of that name."""

    def __init__(
        self, cluster: Cluster, at: TopicPartition, settings: ReadSettings, *, topic_id: UUID | None = None
    ) -> None:
        self._cluster = cluster
        self._at = at
        self._settings = settings
        self._topic_id = topic_id
        self._idle = 0

    def fetch(self, offset: int, end_offset: int) -> Fetched:
        """The batches that hold `offset` and what follows; the first may begin before it."""
        records, data, is_throttled = self._asked(offset)
        view = memoryview(records if records is not None else b"")
        next_offset = offset
        batches: list[FetchedBatch] = []
        wanted = CommittedOnly(data.aborted_transactions or []) if self._settings.read_committed else None
        for position, header in self._walk(view):
            if header.base_offset >= end_offset:
                return Fetched(offset, batches, max(next_offset, end_offset), True)
            if self._settings.check_crcs and not crc_is_valid(view, position, header):
                raise CorruptData(f"the batch at offset {header.base_offset} of {self._at} is damaged")
            next_offset = header.next_offset
            if header.is_control:
                if wanted is not None:
                    wanted.marker(view, position, header)
            elif wanted is None or wanted.takes(header):
                batches.append(FetchedBatch(view, position, header))
        if next_offset > offset:
            self._idle = 0
            return Fetched(offset, batches, next_offset, next_offset >= end_offset)
        return Fetched(offset, [], offset, not is_throttled and self._is_exhausted(data, end_offset))

    def _walk(self, view: memoryview) -> Iterator[tuple[int, BatchHeader]]:
        try:
            yield from walk(view)
        except CorruptBatch as error:
            raise CorruptData(f"{self._at} cannot be read: {error}") from error

    def _is_exhausted(self, data: PartitionData, end_offset: int) -> bool:
        """Nothing came. Twice, though the end is there, means that the rest was compacted away."""
        limit = data.last_stable_offset if self._settings.read_committed else data.high_watermark
        self._idle += 1
        if limit >= end_offset:
            return self._idle > 1
        if self._idle * self._settings.wait_ms > self._cluster.settings.retry_deadline_s * 1000:
            raise OffsetGone(self._at, end_offset - 1, data.log_start_offset)
        return False

    def _asked(self, offset: int) -> tuple[memoryview | bytes | None, PartitionData, bool]:
        def attempt() -> tuple[PartitionData, bool]:
            return self._cluster.use_leader(*self._at, self._question(offset))

        try:
            data, is_throttled = self._cluster.retrying(
                attempt,
                lambda outcome: _code_to_retry(outcome[0]),
                doing=f"fetch from partition {self._at.partition} of topic {self._at.topic}",
            )
        except BrokerRefused as refused:
            if refused.code not in _GONE_TOPIC:
                raise
            raise TopicGone(f"topic {self._at.topic} is not there any more") from refused
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = data.log_start_offset if data.log_start_offset >= 0 else None
            raise OffsetGone(self._at, offset, start)
        if data.error_code in _GONE_TOPIC:
            raise TopicGone(f"topic {self._at.topic} is not there any more")
        assert data.records is None or isinstance(data.records, bytes | memoryview)
        return data.records, data, is_throttled

    def _question(self, offset: int) -> Callable[[BrokerConnection], tuple[PartitionData, bool]]:
        def ask(broker: BrokerConnection) -> tuple[PartitionData, bool]:
            version = broker.version(ApiKey.FETCH, None if self._topic_id is not None else _NAMES_VERSION)
            reply: FetchResponse = broker.ask_in_version(
                ApiKey.FETCH, version, self._request(offset, version)
            )
            if reply.error_code != ErrorCode.NONE or not reply.responses:
                raise BrokerRefused(f"fetch from {self._at}", reply.error_code)
            return reply.responses[0].partitions[0], reply.throttle_time_ms > 0

        return ask

    def _request(self, offset: int, version: int) -> FetchRequest:
        partition = FetchPartition(
            partition=self._at.partition,
            fetch_offset=offset,
            partition_max_bytes=self._settings.partition_bytes,
        )
        by_id = version >= _TOPIC_ID_VERSION
        topic = FetchTopic(
            topic="" if by_id else self._at.topic,
            topic_id=self._topic_id if by_id else None,
            partitions=[partition],
        )
        return FetchRequest(
            max_wait_ms=self._settings.wait_ms,
            min_bytes=1,
            max_bytes=self._settings.partition_bytes,
            isolation_level=int(self._settings.read_committed),
            topics=[topic],
        )


class CommittedOnly:
    """Which batches of one answer to take, from the aborted transactions that it names."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._coming = sorted(((each.first_offset, each.producer_id) for each in aborted), reverse=True)
        self._aborting: set[int] = set()

    def takes(self, header: BatchHeader) -> bool:
        if not header.is_transactional:
            return True
        self._pass(header.last_offset)
        return header.producer_id not in self._aborting

    def marker(self, view: memoryview, position: int, header: BatchHeader) -> None:
        self._pass(header.last_offset)
        if _is_abort(view, position):
            self._aborting.discard(header.producer_id)

    def _pass(self, offset: int) -> None:
        while self._coming and self._coming[-1][0] <= offset:
            self._aborting.add(self._coming.pop()[1])


def _is_abort(view: memoryview, position: int) -> bool:
    for record in records_of(view, position):
        # The key of a marker: a version and the kind, two bytes each.
        return record.key is not None and record.key[2:4] == _ABORT
    return False


def _code_to_retry(data: PartitionData) -> int:
    """Codes that the reader understands itself count as an answer."""
    is_understood = data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE or data.error_code in _GONE_TOPIC
    return ErrorCode.NONE if is_understood else data.error_code
