"""Topics, records and committed offsets of a cluster for plain asserts, over sockets as clients have them.

The same calls as `Broker` has. Each opens its connections anew, since brokers come and go between two calls
of a test; within one, a leader that is away is waited for.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from riverlog.client.cluster import BrokerRefused, ClientSettings, Cluster
from riverlog.client.core.metadata import CoordinatorKind, KnownTopic
from riverlog.client.offsets import EARLIEST, LATEST, list_offsets
from riverlog.client.reading import PartitionReader, ReadSettings
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.model.ids import TopicPartition
from riverlog.model.network import Address
from riverlog.records.builder import build_batch
from riverlog.records.record import records_of
from riverlog.testing.records import Content, Record, encoded, places_of, too_few
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_CLIENT_ID: Final = "riverlog.testing"
_TIMEOUT_MS: Final = 30_000
_PRODUCE_BY_NAME: Final = 12
"""Of Produce: later ones name topics by id."""
_ONE_GROUP_FETCH: Final = 7
_LOOK_S: Final = 0.02
_FETCH_WAIT_MS: Final = 100


class ClusterRecords:
    """What a cluster holds, asked at any of its brokers."""

    def __init__(self, bootstrap_servers: str, timeout_s: float) -> None:
        bootstrap = tuple(address_of(each) for each in bootstrap_servers.split(","))
        self._settings = ClientSettings(bootstrap, _CLIENT_ID, timeout_s, timeout_s)
        self._timeout_s = timeout_s

    def topics(self) -> list[str]:
        with self._connected() as cluster:
            return sorted(name for name, topic in cluster.topics().items() if not topic.is_internal)

    def leaders(self, topic: str) -> dict[int, int | None]:
        with self._connected() as cluster:
            partitions = cluster.topics([topic])[topic].partitions
        return {index: partitions[index].leader for index in sorted(partitions)}

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str], replication_factor: int = -1
    ) -> None:
        """Return when the topic can be used at every broker."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
        )
        with self._connected() as cluster:
            request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
            result = self._created(cluster, request)
            if result.error_code != ErrorCode.NONE:
                code = ErrorCode.of(result.error_code).name
                raise RiverlogError(f"The topic {name} was not created: {code}: {result.error_message}")
            for node_id in cluster.brokers():
                self._wait_until_led(cluster, node_id, name, result.num_partitions)

    def produce(
        self,
        topic: str,
        values: Sequence[Content],
        *,
        key: Content,
        partition: int | None,
        headers: Mapping[str, Content],
        timestamp_ms: int,
    ) -> list[Record]:
        with self._connected() as cluster:
            known = self._existing(cluster, topic)
            key_bytes, named = encoded(key), tuple((name, encoded(value)) for name, value in headers.items())
            waiting: dict[int, list[bytes | None]] = {}
            for place, value in zip(
                places_of(len(values), key_bytes, partition, len(known.partitions)), values, strict=True
            ):
                waiting.setdefault(place, []).append(encoded(value))
            written: list[Record] = []
            for place, some in waiting.items():
                batch = build_batch([(timestamp_ms, key_bytes, value, named) for value in some])
                first, stamped_ms = self._append(cluster, TopicPartition(topic, place), batch, timestamp_ms)
                written += (
                    Record(topic, place, offset, stamped_ms, key_bytes, value, named)
                    for offset, value in enumerate(some, first)
                )
            return written

    def consume(
        self, topic: str, count: int | None, timeout_s: float, *, committed_only: bool
    ) -> list[Record]:
        """So many, waited for; or all that are there now."""
        deadline_s = time.monotonic() + timeout_s
        with self._connected() as cluster:
            places = [TopicPartition(topic, index) for index in self._existing(cluster, topic).partitions]
            offsets = list_offsets(cluster, dict.fromkeys(places, EARLIEST))
            ends = list_offsets(cluster, dict.fromkeys(places, LATEST), read_committed=committed_only)
            settings = ReadSettings(read_committed=committed_only, wait_ms=_FETCH_WAIT_MS)
            readers = {at: PartitionReader(cluster, at, settings) for at in places}
            found: list[Record] = []
            while True:
                for at, reader in readers.items():
                    first, end = offsets[at] or 0, ends[at] or 0
                    if first < end:
                        offsets[at] = _read(reader, at, first, end, found)
                if count is not None and len(found) >= count:
                    return found[:count]
                if all((offsets[at] or 0) >= (ends[at] or 0) for at in places):
                    if count is None:
                        return found
                    time.sleep(_LOOK_S)
                    ends = list_offsets(cluster, dict.fromkeys(places, LATEST), read_committed=committed_only)
                if time.monotonic() >= deadline_s:
                    raise TimeoutError(too_few(topic, count, found, timeout_s))

    def committed(self, group: str) -> dict[TopicPartition, int]:
        request = OffsetFetchRequest(group_id=group, topics=None)
        with self._connected() as cluster:
            reply: OffsetFetchResponse = cluster.retrying(
                lambda: cluster.ask_coordinator(
                    CoordinatorKind.GROUP, group, ApiKey.OFFSET_FETCH, request, version_max=_ONE_GROUP_FETCH
                ),
                lambda answer: int(answer.error_code),
                doing=f"offsets of the group {group}",
            )
        return {
            TopicPartition(topic.name, each.partition_index): each.committed_offset
            for topic in reply.topics
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    @contextmanager
    def _connected(self) -> Iterator[Cluster]:
        with Cluster(self._settings) as cluster:
            yield cluster

    def _existing(self, cluster: Cluster, topic: str) -> KnownTopic:
        """The topic, made by asking for it where the brokers allow that."""
        deadline_s = time.monotonic() + self._timeout_s
        while (known := cluster.topics([topic])[topic]).error != ErrorCode.NONE or not known.partitions:
            wanted = MetadataRequest(
                topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True
            )
            cluster.ask_any(ApiKey.METADATA, wanted)
            if time.monotonic() >= deadline_s:
                raise BrokerRefused(f"the topic {topic}", known.error)
            time.sleep(_LOOK_S)
        return known

    def _created(self, cluster: Cluster, request: CreateTopicsRequest) -> CreatableTopicResult:
        """What the controller says, once there is one."""
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            told: MetadataResponse = cluster.ask_any(ApiKey.METADATA, MetadataRequest(topics=[]))
            if told.controller_id >= 0:
                reply: CreateTopicsResponse = cluster.ask_broker(
                    told.controller_id, ApiKey.CREATE_TOPICS, request
                )
                if reply.topics[0].error_code != ErrorCode.NOT_CONTROLLER:
                    return reply.topics[0]
            if time.monotonic() >= deadline_s:
                raise TimeoutError("There is no controller.")
            time.sleep(_LOOK_S)

    def _wait_until_led(self, cluster: Cluster, node_id: int, topic: str, partitions: int) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            reply: MetadataResponse = cluster.ask_broker(node_id, ApiKey.METADATA, request)
            [known] = reply.topics
            if sum(each.error_code == ErrorCode.NONE for each in known.partitions) == partitions:
                return
            if time.monotonic() >= deadline_s:
                raise TimeoutError(f"Broker {node_id} does not know all leaders of {topic}.")
            time.sleep(_LOOK_S)

    def _append(
        self, cluster: Cluster, at: TopicPartition, batch: bytes, timestamp_ms: int
    ) -> tuple[int, int]:
        """The offset of the first record, and when they are said to be written."""
        data = PartitionProduceData(index=at.partition, records=batch)
        topic = TopicProduceData(name=at.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=[topic])

        def attempt() -> Any:
            reply: ProduceResponse = cluster.ask_leader(
                at.topic, at.partition, ApiKey.PRODUCE, request, version_max=_PRODUCE_BY_NAME
            )
            return reply.responses[0].partition_responses[0]

        answer = cluster.retrying(attempt, lambda one: int(one.error_code), doing=f"a write to {at}")
        stamped_ms = answer.log_append_time_ms if answer.log_append_time_ms >= 0 else timestamp_ms
        return answer.base_offset, stamped_ms


def _read(reader: PartitionReader, at: TopicPartition, first: int, end: int, found: list[Record]) -> int:
    """Add what one fetch brings; gives the offset after it."""
    fetched = reader.fetch(first, end)
    for buffer, position, _ in fetched.batches:
        found += (
            Record(at.topic, at.partition, *each[:4], tuple(each.headers))
            for each in records_of(buffer, position)
            if first <= each.offset < end
        )
    return end if fetched.is_at_end else fetched.next_offset


def address_of(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))


def brokers_known_to(bootstrap_server: str, timeout_s: float) -> tuple[set[int], int | None]:
    """The brokers and the controller that one broker tells of."""
    settings = ClientSettings((address_of(bootstrap_server),), _CLIENT_ID, timeout_s, timeout_s)
    with Cluster(settings) as cluster:
        reply: MetadataResponse = cluster.ask_any(ApiKey.METADATA, MetadataRequest(topics=[]))
    controller = reply.controller_id if reply.controller_id >= 0 else None
    return {each.node_id for each in reply.brokers}, controller
