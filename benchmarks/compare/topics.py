"""Topics on any broker, over plain requests that every target answers: make, fill, alter, drop."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks import load
from benchmarks.asking import ask, receive
from benchmarks.compare.failing import CompareError
from riverlog.model.errors import ErrorCode
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

WAIT_S = 30.0
_CREATE, _DELETE, _ALTER, _METADATA, _PRODUCE = 5, 5, 1, 9, 9
_OF_TOPICS = 2


class BrokerRefusedError(CompareError):
    """A request was answered with an error that does not pass with time."""


@contextmanager
def client(address: load.Address) -> Iterator[Any]:
    with load.connect(address) as connection:
        connection.settimeout(WAIT_S)
        yield connection


def create(
    address: load.Address,
    name: str,
    partitions: int,
    configs: Mapping[str, str] | None = None,
    *,
    replicas: int = 1,
) -> None:
    """Returns when every partition has a leader."""
    wanted = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=wanted)
    with client(address) as connection:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        reply = ask(connection, ApiKey.CREATE_TOPICS, _CREATE, request)
        _check(reply.topics[0].error_code, f"create {name}")
        deadline_s = time.monotonic() + WAIT_S
        while not _is_led(connection, name, partitions):
            if time.monotonic() > deadline_s:
                raise BrokerRefusedError(f"{name} has partitions without a leader after {WAIT_S:g} s")
            time.sleep(0.01)


def _is_led(connection: Any, name: str, partitions: int) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    [topic] = ask(connection, ApiKey.METADATA, _METADATA, request).topics
    led = [each for each in topic.partitions if each.error_code == ErrorCode.NONE and each.leader_id >= 0]
    return topic.error_code == ErrorCode.NONE and len(led) == partitions


def delete(address: load.Address, name: str) -> None:
    with client(address) as connection:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        reply = ask(connection, ApiKey.DELETE_TOPICS, _DELETE, request)
    _check(reply.responses[0].error_code, f"delete {name}")


def alter(address: load.Address, name: str, configs: Mapping[str, str]) -> None:
    wanted = [AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs.items()]
    resource = AlterConfigsResource(resource_type=_OF_TOPICS, resource_name=name, configs=wanted)
    with client(address) as connection:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        reply = ask(connection, ApiKey.INCREMENTAL_ALTER_CONFIGS, _ALTER, request)
    _check(reply.responses[0].error_code, f"alter {name}")


def batch(records: int, value_bytes: int, codec: Codec, *, keys: Sequence[bytes] | None = None) -> bytes:
    """Values that compress about as well as lines of JSON do."""
    now_ms = time.time_ns() // 1_000_000
    made = [
        (now_ms, keys[number] if keys else None, value(number, value_bytes), ()) for number in range(records)
    ]
    return build_batch(made, codec=codec)


def value(number: int, size: int) -> bytes:
    parts, length = [], 0
    seed = number * 2_654_435_761 + 1
    while length < size:
        seed = (seed * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        part = b'{"order":%d,"sku":"%x","status":"paid","region":"eu-central"},' % (seed >> 44, seed >> 36)
        parts.append(part)
        length += len(part)
    return b"".join(parts)[:size]


def produce_frame(topic: str, partitions: Sequence[int], records: bytes, *, acks: int = 1) -> bytes:
    """One request with the same batch for each of the partitions."""
    data = [PartitionProduceData(index=number, records=records) for number in partitions]
    wanted = TopicProduceData(name=topic, partition_data=data)
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[wanted])
    return load.frame(ApiKey.PRODUCE, _PRODUCE, request)


def send_frame(connection: Any, frame: bytes) -> None:
    """Once, with its reply read: what is sent over and over must not be an error each time."""
    connection.sendall(frame)
    reply = receive(connection, ApiKey.PRODUCE, _PRODUCE)
    for answer in reply.responses[0].partition_responses:
        _check(answer.error_code, "produce")


def send_until_taken(connection: Any, frame: bytes) -> None:
    """The first batch of a topic: Apache Kafka names a leader before that leader takes anything."""
    deadline_s = time.monotonic() + WAIT_S
    while True:
        try:
            send_frame(connection, frame)
        except BrokerRefusedError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.002)
        else:
            return


def _check(error_code: int, what: str) -> None:
    if error_code != ErrorCode.NONE:
        raise BrokerRefusedError(f"{what}: the broker answered {ErrorCode(error_code).name}")
