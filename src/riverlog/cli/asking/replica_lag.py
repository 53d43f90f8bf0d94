"""How many records each replica of a partition lacks of those that its leader has.

Each broker is asked where its own logs end (ListOffsets by a client that says it looks closer, which any
replica answers), as confluent-kafka asks leaders only. So it works on Apache Kafka too. Where the connection
is not plain, or a broker does not answer, it is not known.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from riverlog.cli.asking.brokers import Brokers
from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.failures import CommandError

if TYPE_CHECKING:
    from riverlog.wire.messages.list_offsets import ListOffsetsRequest

_LATEST: Final = -1
_LOOKS_CLOSER: Final = -2
"""The number of a replica that is none, and is answered by followers."""


class Replicated(NamedTuple):
    place: Place
    leader: int | None
    replicas: tuple[int, ...]


Lags = Mapping[int, int | None]
"""Records by broker; None where it is not known."""


def replica_lags(
    connection: Connection, partitions: Iterable[Replicated], silent: Collection[int] = ()
) -> dict[Place, Lags]:
    """Of all of these; silent brokers are not asked. Without a leader it is counted from the replica that has
    come furthest."""
    partitions = list(partitions)
    places: dict[int, list[Place]] = {}
    for each in partitions:
        for node_id in set(each.replicas).difference(silent):
            places.setdefault(node_id, []).append(each.place)
    ends = _log_ends(connection, places)
    return {each.place: lags_of(each, ends) for each in partitions}


def lags_of(partition: Replicated, ends: Mapping[tuple[int, Place], int]) -> Lags:
    """From where the logs of brokers end. They are asked one after the other, so that a follower may have
    records that its leader had not when it was asked."""
    known = {each: ends.get((each, partition.place)) for each in partition.replicas}
    told = [end for end in known.values() if end is not None]
    furthest = max(told, default=None) if partition.leader is None else known.get(partition.leader)
    if furthest is None:
        return dict.fromkeys(partition.replicas)
    return {each: None if end is None else max(furthest - end, 0) for each, end in known.items()}


def _log_ends(connection: Connection, places: Mapping[int, Iterable[Place]]) -> dict[tuple[int, Place], int]:
    """By broker and partition; missing where it is not known."""
    from riverlog.wire.apis import ApiKey

    ends: dict[tuple[int, Place], int] = {}
    try:
        with Brokers(connection) as brokers:
            for node_id, address in brokers.addresses().items():
                if node_id not in places:
                    continue
                try:
                    reply = brokers.ask(address, ApiKey.LIST_OFFSETS, _question(places[node_id]))
                except CommandError:
                    continue  # It went away since, and is shown as such the next time.
                for topic in reply.topics:
                    for each in topic.partitions:
                        if not each.error_code:
                            ends[node_id, (topic.name, each.partition_index)] = each.offset
    except CommandError:
        return {}
    return ends


def _question(places: Iterable[Place]) -> "ListOffsetsRequest":
    from riverlog.wire.messages.list_offsets import (
        ListOffsetsPartition,
        ListOffsetsRequest,
        ListOffsetsTopic,
    )

    topics: dict[str, ListOffsetsTopic] = {}
    for topic, index in places:
        topics.setdefault(topic, ListOffsetsTopic(name=topic)).partitions.append(
            ListOffsetsPartition(partition_index=index, timestamp=_LATEST)
        )
    return ListOffsetsRequest(replica_id=_LOOKS_CLOSER, topics=list(topics.values()))
