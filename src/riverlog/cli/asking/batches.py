"""Record batches as a broker sends them, with what consumers are never shown: markers and aborted records."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from riverlog.cli.asking.brokers import Brokers, refused
from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address

if TYPE_CHECKING:
    from riverlog.records.batch import BatchHeader
    from riverlog.records.record import Record
    from riverlog.wire.messages.fetch import PartitionData

_BY_NAME_VERSION: Final = 12
_PARTITION_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundRecord:
    offset: int
    key: bytes | None
    timestamp_ms: int
    producer_id: int | None
    is_aborted: bool


@dataclass(frozen=True, slots=True)
class FoundMarker:
    is_commit: bool
    producer_id: int


@dataclass(frozen=True, slots=True)
class Gap:
    """No record has this offset; the next that is there, if any is."""

    next_offset: int | None


Found = FoundRecord | FoundMarker | Gap


def what_is_at(brokers: Brokers, connection: Connection, place: Place, offset: int) -> Found:
    """What has the offset, which is to be one that the partition holds."""
    for header, record in _records(fetch(brokers, connection, place, offset)):
        if record.offset < offset:
            continue
        if record.offset > offset:
            return Gap(record.offset)
        if header.is_control:
            return FoundMarker(record.key is not None and record.key[3] == 1, header.producer_id)
        aborted = header.is_transactional and _is_aborted(
            fetch(brokers, connection, place, offset, committed_only=True), header.producer_id, offset
        )
        producer_id = header.producer_id if header.has_producer_id else None
        return FoundRecord(offset, record.key, record.timestamp_ms, producer_id, aborted)
    return Gap(None)


def records_between(
    brokers: Brokers, connection: Connection, place: Place, start: int, end: int, deadline: float
) -> Iterator["Record"]:
    """All that are there, also aborted ones; ends early at the deadline."""
    offset = start
    while offset < end and time.monotonic() < deadline:
        data = fetch(brokers, connection, place, offset)
        before = offset
        for header, record in _records(data):
            offset = max(offset, record.offset + 1, header.next_offset)
            if start <= record.offset < end and not header.is_control:
                yield record
        if offset == before:
            return


def headers_from(
    brokers: Brokers, connection: Connection, place: Place, offset: int
) -> "list[tuple[BatchHeader, memoryview, int]]":
    """The batch that holds the offset and some that follow: header, what was fetched, the place in it."""
    from riverlog.records.batch import walk

    data = fetch(brokers, connection, place, offset)
    assert data.records is None or isinstance(data.records, bytes | memoryview)
    buffer = memoryview(data.records or b"")
    return [(header, buffer, position) for position, header in walk(buffer)]


def fetch(
    brokers: Brokers,
    connection: Connection,
    place: Place,
    offset: int,
    *,
    committed_only: bool = False,
    replica: Address | None = None,
) -> "PartitionData":
    """From the leader, or from the broker that holds the replica."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    topic, index = place
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_PARTITION_BYTES)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_PARTITION_BYTES,
        isolation_level=int(committed_only),
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    if replica is None:
        replica = brokers.addresses()[connection.metadata().topics[topic].partitions[index].leader]
    answer = brokers.ask(replica, ApiKey.FETCH, request, version_max=_BY_NAME_VERSION)
    if answer.error_code:
        raise refused(answer.error_code, f"fetch from {topic}-{index}")
    data: PartitionData = answer.responses[0].partitions[0]
    if data.error_code != ErrorCode.NONE:
        raise refused(data.error_code, f"fetch from {topic}-{index} at offset {offset}")
    return data


def _records(data: "PartitionData") -> "Iterator[tuple[BatchHeader, Record]]":
    from riverlog.records.batch import walk
    from riverlog.records.record import records_of

    assert data.records is None or isinstance(data.records, bytes | memoryview)
    buffer = memoryview(data.records or b"")
    for position, header in walk(buffer):
        for record in records_of(buffer, position):
            yield header, record


def _is_aborted(data: "PartitionData", producer_id: int, offset: int) -> bool:
    """Those named overlap what is fetched, which begins at the offset."""
    return any(
        each.producer_id == producer_id and each.first_offset <= offset
        for each in data.aborted_transactions or ()
    )
