"""A client that sends exactly what a test says: one request and its decoded reply at a time, or raw bytes."""

import select
import socket
import struct
from typing import Any, Protocol, Self

from riverlog.model.errors import ErrorCode
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.records.builder import build_batch
from riverlog.testing import Broker
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from riverlog.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from riverlog.wire.schema import Message
from tests.waiting import eventually


class ConnectionClosedError(Exception):
    """The broker hung up."""


class Served(Protocol):
    @property
    def bootstrap_servers(self) -> str: ...


class RawClient:
    def __init__(self, broker: Served, timeout_s: float = 10) -> None:
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self._broker = broker
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, key: ApiKey, version: int, request: Message) -> Any:
        self.send(key, version, request)
        return self.receive(key, version)

    def send(self, key: ApiKey, version: int, request: Message) -> None:
        self._sent += 1
        self.socket.sendall(encode_request(RequestHeader(key, version, self._sent, "raw"), request))

    def receive(self, key: ApiKey, version: int) -> Any:
        _, message = self.receive_with_id(key, version)
        return message

    def receive_with_id(self, key: ApiKey, version: int) -> tuple[int, Any]:
        frame = self.receive_frame()
        (correlation_id,) = struct.unpack_from(">i", frame)
        api = APIS[key]
        message, end = decode(api.response, version, frame, 4 + api.response_header_version(version))
        assert end == len(frame), "the reply has bytes left over"
        return correlation_id, message

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def hears_nothing(self, rounds: int = 20) -> bool:
        """Whether there is no reply, although the broker had every chance to send one.

        It answers so many requests on a connection of their own, which it reads no sooner than ours. It is
        counted, not timed: on a slow machine it takes longer and shows as much.
        """
        with RawClient(self._broker) as other:
            for _ in range(rounds):
                other.ask(ApiKey.API_VERSIONS, 2, ApiVersionsRequest())
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)

    def is_closed(self) -> bool:
        """Whether the broker closes the connection without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, or find it there already."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        reply = self.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
        assert reply.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    def delete_topic(self, topic: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
        assert self.ask(ApiKey.DELETE_TOPICS, 6, request).responses[0].error_code == ErrorCode.NONE

    def produce_to_new_topic(self, topic: str) -> None:
        self.create_topic(topic)
        reply = self.produce(topic)
        assert (reply.error_code, reply.base_offset) == (ErrorCode.NONE, 0)

    def send_long_poll(self, topic: str, offset: int = 0) -> None:
        """Returns once the fetch waits, if the broker is one that can be asked."""
        before = fetches_waiting(self._broker)
        self.send(ApiKey.FETCH, 12, fetch_request(topic, offset, max_wait_ms=60_000))
        eventually(lambda: before is None or fetches_waiting(self._broker) == before + 1)

    def produce(
        self,
        topic: str,
        records: bytes | None = None,
        *,
        partition: int = 0,
        version: int = 12,
        acks: int = -1,
        timeout_ms: int = 5000,
    ) -> PartitionProduceResponse:
        request = produce_request(topic, records, partition=partition, acks=acks, timeout_ms=timeout_ms)
        reply = self.ask(ApiKey.PRODUCE, version, request)
        answer: PartitionProduceResponse = reply.responses[0].partition_responses[0]
        return answer

    def fetch(self, topic: str, offset: int, *, version: int = 12, **options: Any) -> PartitionData:
        reply: FetchResponse = self.ask(ApiKey.FETCH, version, fetch_request(topic, offset, **options))
        return reply.responses[0].partitions[0]

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionClosedError
            data += part
        return bytes(data)


def fetches_waiting(broker: Served) -> int | None:
    metrics = broker.node.metrics if isinstance(broker, Broker) else None
    return int(metrics.value("riverlog_fetches_waiting")) if isinstance(metrics, InMemoryMetrics) else None


def one_record(
    value: bytes = b"value", key: bytes | None = b"key", timestamp_ms: int = 1_700_000_000_000, **options: Any
) -> bytes:
    return build_batch([(timestamp_ms, key, value, ())], **options)


def produce_request(
    topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 5000
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=one_record() if records is None else records)
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**20,
    partition_max_bytes: int = 2**20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    **options: Any,
) -> FetchRequest:
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
        **options,
    )
