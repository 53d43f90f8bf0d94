"""Questions about topics, asked of the brokers and answered in plain values.

No printing and no options here: `topic`, `produce` and `consume` build on it. Errors of the cluster come out
as `CommandError`.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from riverlog.cli.connection import Connection

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition, TopicPartitionInfo

    from riverlog.cli.kafka_admin import ConfigEntry, OffsetSpec, TopicDescription

LEADER_POLL_S = 0.1
_NO_LEADER_YET = ("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE")


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets that a partition holds: from `start` up to, not including, `end`."""

    start: int
    end: int


def outcome(connection: Connection, future: "Future[Any]", doing: str = "") -> Any:
    """The result of an admin call, or the failure that it stands for."""
    from confluent_kafka import KafkaException

    try:
        return future.result(timeout=connection.timeout_s + 5)
    except KafkaException as error:
        raise connection.failure(error.args[0], doing) from None


def describe_topics(connection: Connection, names: Sequence[str]) -> "list[TopicDescription]":
    """The topics as the cluster sees them. Asking does not create them, unlike a plain metadata request."""
    from confluent_kafka import TopicCollection

    connection.metadata()
    futures = connection.admin().describe_topics(
        TopicCollection(list(names)), request_timeout=connection.timeout_s
    )
    return [outcome(connection, futures[name], f"topic {name}") for name in names]


def partitions_of(connection: Connection, topic: str) -> list[int]:
    [description] = describe_topics(connection, [topic])
    return sorted(partition.id for partition in description.partitions)


def has_leader(partition: "TopicPartitionInfo") -> bool:
    return partition.leader is not None and partition.leader.id >= 0


def offset_ranges(connection: Connection, topic: str, partitions: Sequence[int]) -> dict[int, OffsetRange]:
    from riverlog.cli.kafka_admin import EARLIEST, LATEST

    starts = offsets_at(connection, topic, partitions, EARLIEST)
    ends = offsets_at(connection, topic, partitions, LATEST)
    return {partition: OffsetRange(starts[partition], ends[partition]) for partition in partitions}


def offsets_at_time(
    connection: Connection, topic: str, partitions: Sequence[int], timestamp_ms: int
) -> dict[int, int | None]:
    """Per partition the first offset whose timestamp is at or after the given one, if there is any."""
    from riverlog.cli.kafka_admin import OffsetSpec

    found = offsets_at(connection, topic, partitions, OffsetSpec.for_timestamp(timestamp_ms))
    return {partition: offset if offset >= 0 else None for partition, offset in found.items()}


def offsets_at(
    connection: Connection, topic: str, partitions: Sequence[int], spec: "OffsetSpec"
) -> dict[int, int]:
    """Per partition the offset that `spec` means. Waits for a leader: a new topic has none for a moment."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + connection.timeout_s
    while True:
        futures = connection.admin().list_offsets(
            dict.fromkeys(_pairs(topic, partitions), spec), request_timeout=connection.timeout_s
        )
        try:
            return {partition.partition: future.result().offset for partition, future in futures.items()}
        except KafkaException as error:
            if error.args[0].name() not in _NO_LEADER_YET or time.monotonic() > deadline:
                raise connection.failure(error.args[0], f"offsets of {topic}") from None
            time.sleep(LEADER_POLL_S)


def topic_configs(connection: Connection, topic: str) -> "list[ConfigEntry]":
    """Every setting of a topic with where its value comes from, by name."""
    from riverlog.cli.kafka_admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, topic)
    futures = connection.admin().describe_configs([resource], request_timeout=connection.timeout_s)
    entries: Mapping[str, ConfigEntry] = outcome(connection, futures[resource], f"configs of {topic}")
    return [entries[name] for name in sorted(entries)]


def _pairs(topic: str, partitions: Sequence[int]) -> "list[TopicPartition]":
    from confluent_kafka import TopicPartition

    return [TopicPartition(topic, partition) for partition in partitions]
