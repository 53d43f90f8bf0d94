"""Questions about topics, asked of the brokers and answered in plain values.

No printing and no options here: `topic`, `produce` and `consume` build on it. Errors of the cluster come out
as `CommandError`.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError, ExitCode

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition, TopicPartitionInfo

    from riverlog.cli.asking.kafka_admin import ConfigEntry, OffsetSpec, TopicDescription

LEADER_POLL_S = 0.1
_NO_LEADER_YET = (
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "OFFSET_NOT_AVAILABLE",
    # One of the two, the broker or the client, has not heard yet of the leader that the other knows.
    "UNKNOWN_LEADER_EPOCH",
    "FENCED_LEADER_EPOCH",
)


Place = tuple[str, int]
"""A topic and the number of a partition."""


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
    connection.metadata()
    futures = begin_describing(connection, names)
    return [outcome(connection, futures[name], f"topic {name}") for name in names]


def begin_describing(
    connection: Connection, names: Sequence[str]
) -> "Mapping[str, Future[TopicDescription]]":
    """The descriptions, when they come."""
    from confluent_kafka import TopicCollection

    return connection.admin().describe_topics(
        TopicCollection(list(names)), request_timeout=connection.timeout_s
    )


def partitions_of(connection: Connection, topic: str) -> list[int]:
    [description] = describe_topics(connection, [topic])
    return sorted(partition.id for partition in description.partitions)


def has_leader(partition: "TopicPartitionInfo") -> bool:
    return partition.leader is not None and partition.leader.id >= 0


def offset_ranges(connection: Connection, topic: str, partitions: Sequence[int]) -> dict[int, OffsetRange]:
    from riverlog.cli.asking.kafka_admin import EARLIEST, LATEST

    starts = offsets_at(connection, topic, partitions, EARLIEST)
    ends = offsets_at(connection, topic, partitions, LATEST)
    return {partition: OffsetRange(starts[partition], ends[partition]) for partition in partitions}


def ranges_of_topics(connection: Connection, names: Collection[str]) -> dict[Place, OffsetRange]:
    """Of all partitions of those topics that are there."""
    topics = connection.metadata().topics
    return {
        (name, partition): held
        for name in sorted(names)
        if name in topics
        for partition, held in offset_ranges(connection, name, sorted(topics[name].partitions)).items()
    }


def end_offsets(connection: Connection, places: Iterable[Place]) -> dict[Place, int]:
    """Of those that are there; a topic may have been deleted since somebody read it."""
    from riverlog.cli.asking.kafka_admin import LATEST

    topics = connection.metadata().topics
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        if topic in topics and partition in topics[topic].partitions:
            by_topic.setdefault(topic, []).append(partition)
    return {
        (topic, partition): end
        for topic, partitions in by_topic.items()
        for partition, end in offsets_at(connection, topic, partitions, LATEST).items()
    }


def offsets_at_time(
    connection: Connection, topic: str, partitions: Sequence[int], timestamp_ms: int
) -> dict[int, int | None]:
    """Per partition the first offset whose timestamp is at or after the given one, if there is any."""
    from riverlog.cli.asking.kafka_admin import OffsetSpec

    found = offsets_at(connection, topic, partitions, OffsetSpec.for_timestamp(timestamp_ms))
    return {partition: offset if offset >= 0 else None for partition, offset in found.items()}


def last_stable_offsets(connection: Connection, topic: str, partitions: Sequence[int]) -> dict[int, int]:
    """Per partition where readers of committed records stop."""
    from riverlog.cli.asking.kafka_admin import LATEST

    return offsets_at(connection, topic, partitions, LATEST, committed_only=True)


def offsets_at(
    connection: Connection,
    topic: str,
    partitions: Sequence[int],
    spec: "OffsetSpec",
    *,
    committed_only: bool = False,
) -> dict[int, int]:
    """Per partition the offset that `spec` means. Waits for a leader: a new topic has none for a moment,
    and a topic whose leader moves neither."""
    from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaException

    isolation = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
    deadline = time.monotonic() + connection.timeout_s
    while True:
        futures = connection.admin().list_offsets(
            dict.fromkeys(_pairs(topic, partitions), spec),
            isolation_level=isolation,
            request_timeout=connection.timeout_s,
        )
        try:
            found = {each.partition: future.result().offset for each, future in futures.items()}
        except KafkaException as error:
            if error.args[0].name() not in _NO_LEADER_YET or time.monotonic() > deadline:
                raise connection.failure(error.args[0], f"offsets of {topic}") from None
            time.sleep(LEADER_POLL_S)
            continue
        if silent := sorted(each for each, offset in found.items() if offset == OFFSET_INVALID):
            # librdkafka gives no error where a leader is there and does not answer.
            raise CommandError(
                f"offsets of {topic}: no answer from the leader of {', '.join(map(str, silent))}",
                remedy="see who does not answer with `riverlog cluster status`",
                code=ExitCode.CONNECTION,
            )
        return found


def topic_configs(connection: Connection, topic: str) -> "list[ConfigEntry]":
    """Every setting of a topic with where its value comes from, by name."""
    return settings_of(connection, [topic])[topic]


def settings_of(connection: Connection, topics: Iterable[str]) -> "dict[str, list[ConfigEntry]]":
    """As `topic_configs`, of several that are asked for at once."""
    from riverlog.cli.asking.kafka_admin import ConfigResource, ResourceType

    resources = {topic: ConfigResource(ResourceType.TOPIC, topic) for topic in topics}
    futures = connection.admin().describe_configs(
        list(resources.values()), request_timeout=connection.timeout_s
    )
    found = {}
    for topic, resource in resources.items():
        entries: Mapping[str, ConfigEntry] = outcome(connection, futures[resource], f"configs of {topic}")
        found[topic] = [entries[name] for name in sorted(entries)]
    return found


def is_own(entry: "ConfigEntry") -> bool:
    """Whether the topic itself sets it."""
    from riverlog.cli.asking.kafka_admin import ConfigSource

    return ConfigSource(entry.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG


def _pairs(topic: str, partitions: Sequence[int]) -> "list[TopicPartition]":
    from confluent_kafka import TopicPartition

    return [TopicPartition(topic, partition) for partition in partitions]
