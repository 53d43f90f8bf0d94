"""A client that costs next to nothing: frames made once, sent again and again over a blocking socket.

The figure of interest is the server's processor time, so the client must neither encode nor decode.
"""

import resource
import socket
from dataclasses import dataclass

from riverlog.records.builder import build_batch
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from riverlog.wire.schema import Message

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Frames:
    """The three requests of the data path, for one topic."""

    topic: str

    def create(self, partitions: int = 1) -> bytes:
        topic = CreatableTopic(name=self.topic, num_partitions=partitions, replication_factor=1)
        return frame(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))

    def produce(self, records: int, value_bytes: int, partition: int = 0) -> bytes:
        batch = build_batch([(1_700_000_000_000, None, bytes(value_bytes), ())] * records)
        data = PartitionProduceData(index=partition, records=batch)
        topic = TopicProduceData(name=self.topic, partition_data=[data])
        return frame(ApiKey.PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic]))

    def fetch(self, max_bytes: int) -> bytes:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
        topic = FetchTopic(topic=self.topic, partitions=[partition])
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=max_bytes, topics=[topic])
        return frame(ApiKey.FETCH, 11, request)


def frame(api_key: ApiKey, version: int, message: Message) -> bytes:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="bench")
    return encode_request(header, message)


def allow_descriptors(count: int) -> None:
    """For this process and for the servers that it starts from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def connect(address: Address) -> socket.socket:
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def call(connection: socket.socket, frame: bytes) -> bytes:
    connection.sendall(frame)
    return read_reply(connection)


def read_reply(connection: socket.socket) -> bytes:
    size = int.from_bytes(_read(connection, 4), "big")
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes:
    data = connection.recv(size, socket.MSG_WAITALL)
    while len(data) < size:  # A socket with a time-out hands over what there is.
        more = connection.recv(size - len(data), socket.MSG_WAITALL)
        if not more:
            raise ConnectionError("the server closed the connection")
        data += more
    return data


def exchange(connection: socket.socket, frame: bytes, times: int, *, window: int = 1) -> int:
    """Send a frame `times` times with up to `window` of them unanswered; returns the bytes received."""
    received = sent = 0
    scratch = bytearray(4 * 1024 * 1024)
    while sent < min(window, times):
        connection.sendall(frame)
        sent += 1
    for _ in range(times):
        received += _skip_reply(connection, scratch)
        if sent < times:
            connection.sendall(frame)
            sent += 1
    return received


def _skip_reply(connection: socket.socket, scratch: bytearray) -> int:
    size = int.from_bytes(_read(connection, 4), "big")
    left = size
    while left:
        count = connection.recv_into(scratch, min(left, len(scratch)))
        if count == 0:
            raise ConnectionError("the server closed the connection in the middle of a reply")
        left -= count
    return size


def echo(connection: socket.socket, payload: bytes, times: int) -> None:
    for _ in range(times):
        connection.sendall(payload)
        _read(connection, len(payload))
