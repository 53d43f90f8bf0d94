"""Records of a broker for plain asserts: a few written, all or so many read, what a group has committed.

Asked in process, so neither a client is needed nor does a fault get in between. Topics are meant as tests
have them: some thousands of records, not millions.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from riverlog.client.reading import CommittedOnly
from riverlog.metadata.image import TopicImage
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.node.node import Node
from riverlog.records.batch import walk
from riverlog.records.builder import build_batch
from riverlog.records.murmur2 import partition_for_key
from riverlog.records.record import records_of
from riverlog.testing.in_process import ask
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from riverlog.wire.schema import Message

EARLIEST: Final = -2
LATEST: Final = -1
_NAMED_GROUPS_VERSION: Final = 9
"""Of OffsetFetch: later ones name topics by id."""
_FETCH_BYTES: Final = 8 * 1024 * 1024
_LOOK_S: Final = 0.01
_POLL_S: Final = 0.5
_PRODUCE_TIMEOUT_MS: Final = 30_000
_PASSING: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)

R = TypeVar("R", bound=Message)

Content = bytes | str | None
"""Text stands for its UTF-8."""


class Record(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class NodeRecords:
    """What one running node holds. Everything runs on its event loop."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._listener_name = next(iter(node.advertised))
        self._creates_topics = node.config.auto_create_topics
        """In the course of an answer that says, as Kafka does, that there is none."""

    async def ask(self, request: Message, reply: type[R], version: int | None = None) -> R:
        return await ask(self._node.dispatcher, self._listener_name, request, reply, version)

    async def produce(
        self,
        topic: str,
        values: Sequence[Content],
        *,
        key: Content,
        partition: int | None,
        headers: Mapping[str, Content],
        timestamp_ms: int,
        timeout_s: float,
    ) -> list[Record]:
        image = await self._existing(topic, timeout_s)
        packed, named = encoded(key), tuple((name, encoded(value)) for name, value in headers.items())
        places = places_of(len(values), packed, partition, len(image.partitions))
        waiting: dict[int, list[Content]] = {}
        for place, value in zip(places, values, strict=True):
            waiting.setdefault(place, []).append(value)
        written: list[Record] = []
        for place, some in waiting.items():
            batch = build_batch([(timestamp_ms, packed, encoded(value), named) for value in some])
            first, stamped_ms = await self._append(image, place, batch, timestamp_ms)
            written += (
                Record(topic, place, offset, stamped_ms, packed, encoded(value), named)
                for offset, value in enumerate(some, first)
            )
        return written

    async def consume(
        self, topic: str, count: int | None, timeout_s: float, *, committed_only: bool
    ) -> list[Record]:
        """So many, waited for; or all that are there."""
        deadline_s = _now_s() + timeout_s
        image = await self._found(topic, timeout_s if count else 0)
        offsets = await self.offsets(topic, EARLIEST)
        ends = await self.offsets(topic, LATEST, committed_only=committed_only) if count is None else None
        found: list[Record] = []
        while ends is None or any(offsets[each] < end for each, end in ends.items()):
            left_s = deadline_s - _now_s()
            if left_s <= 0:
                raise TimeoutError(too_few(topic, count, found, timeout_s))
            wait_s = min(left_s, _POLL_S)
            for data in await self._fetch(image, offsets, wait_s, committed_only=committed_only):
                offsets[data.partition_index] = _take(data, topic, offsets, found, committed_only)
            if count is not None and len(found) >= count:
                return found[:count]
        return [each for each in found if ends is None or each.offset < ends[each.partition]]

    async def committed(self, group: str, timeout_s: float) -> dict[TopicPartition, int]:
        if OFFSETS_TOPIC not in self._node.image.topics:
            return {}
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
        deadline_s = _now_s() + timeout_s
        while True:
            reply = await self.ask(request, OffsetFetchResponse, _NAMED_GROUPS_VERSION)
            [answer] = reply.groups
            if answer.error_code not in _PASSING or _now_s() > deadline_s:
                break
            await asyncio.sleep(_LOOK_S)
        _check(answer.error_code, f"The offsets of the group {group} could not be had")
        return {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in answer.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def offsets(self, topic: str, which: int, *, committed_only: bool = False) -> dict[int, int]:
        """By partition: the first, or the one after the last."""
        listed = await self._listed(topic, which, committed_only=committed_only)
        for each in listed:
            _check(each.error_code, f"The offsets of {topic}-{each.partition_index} could not be had")
        return {each.partition_index: each.offset for each in listed}

    async def known_offsets(self, topic: str, which: int) -> dict[int, int]:
        """As `offsets`, of those partitions that this broker can tell of: of a cluster, what it leads."""
        listed = await self._listed(topic, which, committed_only=False)
        return {each.partition_index: each.offset for each in listed if each.error_code == ErrorCode.NONE}

    async def _listed(
        self, topic: str, which: int, *, committed_only: bool
    ) -> Sequence[ListOffsetsPartitionResponse]:
        partitions = [
            ListOffsetsPartition(partition_index=index, timestamp=which)
            for index in range(len(self._node.image.topics[topic].partitions))
        ]
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(committed_only),
            topics=[ListOffsetsTopic(name=topic, partitions=partitions)],
        )
        reply = await self.ask(request, ListOffsetsResponse)
        return reply.topics[0].partitions

    async def _existing(self, topic: str, timeout_s: float) -> TopicImage:
        """The topic, made by asking for it where the broker allows that."""
        if topic not in self._node.image.topics:
            wanted = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
            )
            [answer] = (await self.ask(wanted, MetadataResponse)).topics
            if answer.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not self._creates_topics:
                _check(answer.error_code, f"Nothing was written to {topic}")
        return await self._found(topic, timeout_s)

    async def _found(self, topic: str, timeout_s: float) -> TopicImage:
        deadline_s = _now_s() + timeout_s
        while (image := self._node.image.topics.get(topic)) is None:
            if _now_s() >= deadline_s:
                known = ", ".join(sorted(self._node.image.topics)) or "no topic at all"
                raise RiverlogError(f"There is no topic {topic}; there is {known}.")
            await asyncio.sleep(_LOOK_S)
        return image

    async def _append(
        self, image: TopicImage, partition: int, batch: bytes, timestamp_ms: int
    ) -> tuple[int, int]:
        """The offset of the first record, and when they are said to be written."""
        data = PartitionProduceData(index=partition, records=batch)
        topic = TopicProduceData(name=image.name, topic_id=image.topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=_PRODUCE_TIMEOUT_MS, topic_data=[topic])
        [answer] = (await self.ask(request, ProduceResponse)).responses[0].partition_responses
        _check(answer.error_code, f"Nothing was written to {image.name}-{partition}")
        stamped_ms = answer.log_append_time_ms if answer.log_append_time_ms >= 0 else timestamp_ms
        return answer.base_offset, stamped_ms

    async def _fetch(
        self, image: TopicImage, offsets: Mapping[int, int], wait_s: float, *, committed_only: bool
    ) -> list[PartitionData]:
        partitions = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
            for index, offset in offsets.items()
        ]
        request = FetchRequest(
            max_wait_ms=int(wait_s * 1000),
            min_bytes=1,
            max_bytes=_FETCH_BYTES,
            isolation_level=int(committed_only),
            session_epoch=-1,
            topics=[FetchTopic(topic_id=image.topic_id, partitions=partitions)],
        )
        reply = await self.ask(request, FetchResponse)
        _check(reply.error_code, f"{image.name} could not be read")
        fetched = [data for topic in reply.responses for data in topic.partitions]
        for data in fetched:
            _check(data.error_code, f"{image.name}-{data.partition_index} could not be read")
        return fetched


def _take(
    data: PartitionData, topic: str, offsets: Mapping[int, int], found: list[Record], committed_only: bool
) -> int:
    """Add the records that count; gives the offset after them all."""
    partition = data.partition_index
    first = next_offset = offsets[partition]
    assert data.records is None or isinstance(data.records, bytes | memoryview)
    view = memoryview(data.records if data.records is not None else b"")
    wanted = CommittedOnly(data.aborted_transactions or [] if committed_only else [])
    for position, header in walk(view):
        next_offset = header.next_offset
        if header.is_control:
            wanted.marker(view, position, header)
        elif wanted.takes(header):
            found += (
                Record(topic, partition, *each[:4], tuple(each.headers))
                for each in records_of(view, position)
                if each.offset >= first
            )
    return next_offset


def places_of(count: int, key: bytes | None, partition: int | None, partitions: int) -> list[int]:
    if partition is not None:
        return [partition] * count
    if key is not None:
        return [partition_for_key(key, partitions)] * count
    return [number % partitions for number in range(count)]


def encoded(content: Content) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        raise RiverlogError(f"{what}: {ErrorCode.of(code).name}.")


def too_few(topic: str, count: int | None, found: Sequence[Record], timeout_s: float) -> str:
    wanted = "all records" if count is None else f"{count} records"
    had = f", the last was {found[-1]}" if found else ""
    return f"{topic} did not have {wanted} within {timeout_s:g} s; {len(found)} came{had}."


def _now_s() -> float:
    return asyncio.get_running_loop().time()
