"""A cluster as its metadata shows it: brokers, controller, and partitions that lack something. Plain values.

Only what every Kafka cluster answers. A broker that is away is known by the partitions that name it.
"""

from dataclasses import dataclass, field

from riverlog.cli.asking.cluster import Place
from riverlog.cli.asking.connection import Connection
from riverlog.cli.asking.silent_brokers import silent_brokers
from riverlog.cli.asking.without_controller import racks
from riverlog.model.internal_topics import INTERNAL_TOPICS


@dataclass(slots=True)
class BrokerView:
    node_id: int
    address: str | None
    """None: partitions are on it, and the cluster does not tell of it."""
    rack: str | None = None
    is_controller: bool = False
    leads: int = 0
    replicas: int = 0
    in_sync: int = 0


@dataclass(frozen=True, slots=True)
class PartitionView:
    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def place(self) -> Place:
        return self.topic, self.partition

    @property
    def is_under_replicated(self) -> bool:
        return set(self.replicas) - set(self.in_sync) != set()


@dataclass(slots=True)
class Overview:
    cluster_id: str | None
    controller: int | None
    brokers: dict[int, BrokerView]
    partitions: list[PartitionView] = field(default_factory=list)
    silent: frozenset[int] = frozenset()
    """Brokers that the cluster tells of, and that do not answer."""

    @property
    def topics(self) -> set[str]:
        return {each.topic for each in self.partitions}

    @property
    def internal_topics(self) -> set[str]:
        return self.topics & INTERNAL_TOPICS

    @property
    def without_leader(self) -> list[PartitionView]:
        return [each for each in self.partitions if each.leader is None]

    @property
    def under_replicated(self) -> list[PartitionView]:
        return [each for each in self.partitions if each.is_under_replicated]

    @property
    def lacking(self) -> list[PartitionView]:
        """Without a leader, or with one that does not answer, or not in sync everywhere."""
        return [
            each
            for each in self.partitions
            if each.leader is None or each.leader in self.silent or each.is_under_replicated
        ]

    @property
    def with_silent_leader(self) -> list[PartitionView]:
        return [each for each in self.partitions if each.leader in self.silent]

    @property
    def away(self) -> list[int]:
        return sorted(each.node_id for each in self.brokers.values() if each.address is None)


def overview(connection: Connection) -> Overview:
    metadata = connection.metadata()
    found = Overview(
        cluster_id=getattr(metadata, "cluster_id", None) or None,
        controller=metadata.controller_id if metadata.controller_id >= 0 else None,
        brokers={
            each.id: BrokerView(each.id, f"{each.host}:{each.port}") for each in metadata.brokers.values()
        },
    )
    for name, topic in metadata.topics.items():
        for each in topic.partitions.values():
            leader = each.leader if each.leader >= 0 else None
            place = PartitionView(name, each.id, leader, tuple(each.replicas), tuple(each.isrs))
            found.partitions.append(place)
            _count(found, place)
    found.partitions.sort(key=lambda each: (each.topic, each.partition))
    if found.controller in found.brokers:
        found.brokers[found.controller].is_controller = True
    return found


def add_racks(connection: Connection, found: Overview) -> None:
    found.silent = silent_brokers(connection)
    for node_id, rack in racks(connection, found.silent).items():
        if node_id in found.brokers:
            found.brokers[node_id].rack = rack


def _count(found: Overview, place: PartitionView) -> None:
    for node_id in place.replicas:
        broker = found.brokers.setdefault(node_id, BrokerView(node_id, None))
        broker.replicas += 1
        broker.in_sync += node_id in place.in_sync
        broker.leads += node_id == place.leader
