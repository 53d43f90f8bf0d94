"""Which replicas outside of the ISR may lead a partition (KIP-966), which confluent-kafka does not tell.

Where the connection is not plain, or the broker is too old to be asked, it is simply not known.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError


class Eligible(NamedTuple):
    elr: list[int]
    """Alive or not, they have everything that is committed."""
    last_known: list[int]
    """Those that were the last, and may have lost some of it since."""


def eligible_leaders(
    connection: Connection, topics: Iterable[str], silent: Collection[int] = ()
) -> dict[Place, Eligible]:
    """Of every partition of these topics; empty where it is not known."""
    from riverlog.wire.apis import ApiKey
    from riverlog.wire.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsRequestCursor,
        TopicRequest,
    )

    found: dict[Place, Eligible] = {}
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=each) for each in sorted(set(topics))])
    if not request.topics:
        return {}
    try:
        with Brokers(connection) as brokers:
            known = brokers.addresses().items()
            address = min((each for each in known if each[0] not in silent), default=min(known))[1]
            while True:
                reply = brokers.ask(address, ApiKey.DESCRIBE_TOPIC_PARTITIONS, request)
                for topic in reply.topics:
                    for each in topic.partitions:
                        elr, last_known = each.eligible_leader_replicas or [], each.last_known_elr or []
                        found[topic.name, each.partition_index] = Eligible(list(elr), list(last_known))
                if reply.next_cursor is None:
                    return found
                request.cursor = DescribeTopicPartitionsRequestCursor(
                    topic_name=reply.next_cursor.topic_name, partition_index=reply.next_cursor.partition_index
                )
    except CommandError:
        return {}
