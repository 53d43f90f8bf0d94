"""How many bytes each partition takes on the disk of its leader.

confluent-kafka has no DescribeLogDirs, so this one request is made on a plain connection. Where the
connection is not plain (TLS, SASL) or the answer does not come, sizes are simply not known: a size is worth
showing, but not worth failing for.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from riverlog.cli.asking.cluster import has_leader
from riverlog.cli.asking.connection import Connection
from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address

if TYPE_CHECKING:
    from riverlog.cli.asking.kafka_admin import TopicDescription


def partition_sizes(
    connection: Connection, topic: "TopicDescription", silent: Collection[int] = ()
) -> dict[int, int]:
    """Bytes by partition number; a partition is missing where its size is not known."""
    if connection.properties.get("security.protocol", "plaintext").lower() != "plaintext":
        return {}
    sizes: dict[int, int] = {}
    led = [each for each in topic.partitions if has_leader(each) and each.leader.id not in silent]
    for leader in {each.leader.id: each.leader for each in led}.values():
        partitions = [each.id for each in led if each.leader.id == leader.id]
        try:
            sizes |= _ask(Address(leader.host, leader.port), topic.name, partitions, connection.timeout_s)
        except (OSError, ValueError, RiverlogError):
            continue
    return sizes


def _ask(address: Address, topic: str, partitions: list[int], timeout_s: float) -> dict[int, int]:
    from riverlog.client.broker_connection import BrokerConnection
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

    asked = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=topic, partitions=partitions)])
    with BrokerConnection(address, timeout_s=timeout_s, client_id="riverlog-cli") as broker:
        answer = broker.ask(ApiKey.DESCRIBE_LOG_DIRS, asked)
    return {
        each.partition_index: each.partition_size
        for directory in answer.results
        for found in directory.topics
        for each in found.partitions
        if not each.is_future_key
    }
