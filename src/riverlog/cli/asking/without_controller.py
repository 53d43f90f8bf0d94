"""What the admin client asks the controller for, asked of another broker: topics, their settings, racks.

Every broker answers these, but librdkafka waits for the controller, which may be registered and not answer.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from riverlog.cli.asking.brokers import Brokers, refused
from riverlog.cli.asking.cluster import describe_topics, outcome, settings_of
from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CHECK_ADDRESS, CommandError, ExitCode

if TYPE_CHECKING:
    from uuid import UUID

    from confluent_kafka import Uuid

    from riverlog.cli.asking.kafka_admin import ConfigEntry, TopicDescription
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.schema import Message

_TOPIC: Final = 2
"""The kind of a resource in DescribeConfigs."""
_HALF: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63


def topics_described(
    connection: Connection, names: Sequence[str], silent: Collection[int]
) -> "list[TopicDescription]":
    """As `describe_topics`, also where the controller is silent."""
    if connection.metadata().controller_id not in silent:
        return describe_topics(connection, names)
    from confluent_kafka import Node, TopicPartitionInfo

    from riverlog.cli.asking.kafka_admin import TopicDescription
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=each) for each in names], allow_auto_topic_creation=False
    )
    answer = _ask(connection, silent, ApiKey.METADATA, request)
    nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers}

    def node(node_id: int) -> Node:
        return nodes.get(node_id) or Node(node_id, "", 0)

    found = {}
    for topic in answer.topics:
        if topic.error_code:
            raise refused(topic.error_code, f"topic {topic.name}")
        partitions = [
            TopicPartitionInfo(
                each.partition_index,
                node(each.leader_id),
                list(map(node, each.replica_nodes)),
                list(map(node, each.isr_nodes)),
            )
            for each in topic.partitions
        ]
        found[topic.name] = TopicDescription(topic.name, _uuid(topic.topic_id), topic.is_internal, partitions)
    return [found[name] for name in names]


def settings_of_topics(
    connection: Connection, names: Iterable[str], silent: Collection[int]
) -> "dict[str, list[ConfigEntry]]":
    """As `settings_of`, also where the controller is silent."""
    names = list(names)
    if not names:
        return {}
    if connection.metadata().controller_id not in silent:
        return settings_of(connection, names)
    from riverlog.cli.asking.kafka_admin import ConfigEntry, ConfigSource
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    resources = [
        DescribeConfigsResource(resource_type=_TOPIC, resource_name=each, configuration_keys=None)
        for each in names
    ]
    found = {}
    answer = _ask(connection, silent, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
    for topic in answer.results:
        if topic.error_code:
            raise refused(topic.error_code, f"configs of {topic.resource_name}")
        found[topic.resource_name] = [
            ConfigEntry(
                each.name,
                each.value,
                ConfigSource(each.config_source),
                is_read_only=each.read_only,
                is_sensitive=each.is_sensitive,
            )
            for each in sorted(topic.configs, key=lambda each: str(each.name))
        ]
    return found


def racks(connection: Connection, silent: Collection[int]) -> dict[int, str | None]:
    """Of all brokers, by their number."""
    if connection.metadata().controller_id not in silent:
        admin = connection.admin()
        described = outcome(
            connection, admin.describe_cluster(request_timeout=connection.timeout_s), "the cluster"
        )
        return {each.id: each.rack for each in described.nodes}
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.metadata import MetadataRequest

    answer = _ask(connection, silent, ApiKey.METADATA, MetadataRequest(topics=[]))
    return {each.node_id: each.rack for each in answer.brokers}


def _ask(connection: Connection, silent: Collection[int], key: "ApiKey", request: "Message") -> Any:
    with Brokers(connection) as brokers:
        answering = {node: each for node, each in brokers.addresses().items() if node not in silent}
        if not answering:
            raise CommandError("no broker answers", remedy=CHECK_ADDRESS, code=ExitCode.CONNECTION)
        return brokers.ask(min(answering.items())[1], key, request)


def _uuid(topic_id: "UUID | None") -> "Uuid":
    """It takes two signed halves."""
    from confluent_kafka import Uuid

    number = 0 if topic_id is None else topic_id.int
    high, low = number >> 64, number & _HALF
    return Uuid(*(each - (each & _SIGN) * 2 for each in (high, low)))
