"""The cluster as one immutable value: brokers, topics with ids, partitions, configs.

Handlers read it and nothing else; a change makes a new image that shares what stayed the same. Not here:
building it from the store (`image_builder`), what differs between two (`delta`), following the store
(`follower`). Compact on purpose: partitions in the same state
are the same object, so an idle partition costs the pointer to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from riverlog.model.features import HIGHEST_LEVELS
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId, TopicPartition
from riverlog.model.log_end import NO_LOG_ENDS, LogEnds
from riverlog.model.network import Address


class ResourceType(IntEnum):
    """What a set of configs belongs to, by its number on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


PartitionKey = tuple[TopicId, int]
"""Topic id and number: a topic that was made anew under its name is another one."""


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str
    """For `BROKER` the node id, or the empty string for all brokers."""


class PartitionImage(NamedTuple):
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId | None
    leader_epoch: LeaderEpoch
    partition_epoch: int
    leader_broker_epoch: BrokerEpoch | None = None
    """The epoch under which the leader was registered when it was elected; it leads under no other."""
    elr: tuple[NodeId, ...] = ()
    """Eligible leader replicas (KIP-966): out of sync by now, but with all that is committed. There are some
    only while the ISR is smaller than the topic's minimum, when nothing more is committed."""
    last_known_elr: tuple[NodeId, ...] = ()
    """Who was the last in sync, where the ISR is empty: it has come back and may have lost its tail."""
    unclean_epoch: LeaderEpoch | None = None
    """The leader epoch of the last election that may have lost committed data."""
    controller_epoch: int = 0
    """Of the controller that made the state, or the latest decision in it."""
    log_epoch: LeaderEpoch | None = None
    """A leader epoch that a replica has records of and the metadata does not know: it is older than the logs.
    Nobody leads until it is known how far all replicas are."""


class TopicImage(NamedTuple):
    name: str
    topic_id: TopicId
    partitions: tuple[PartitionImage, ...]
    made_at: int | None = None
    """The transaction that made it: one of the same name that is made anew has another."""


class BrokerImage(NamedTuple):
    node_id: NodeId
    endpoints: Mapping[str, Address]
    """Advertised address by listener name."""
    rack: str | None = None
    epoch: BrokerEpoch = BrokerEpoch(0)
    """Rises with each registration."""
    host: str | None = None
    """The machine it runs on; None where nobody knows."""
    is_shutting_down: bool = False
    offline: frozenset[PartitionKey] = frozenset()
    """Partitions that it has replicas of and cannot serve, because their directory has failed."""
    registration_version: int = 0
    """Rises with what it tells of itself under one epoch: that it is about to go, that a directory failed."""
    log_ends: LogEnds = NO_LOG_ENDS
    """How far its logs go, of partitions whose state is older than some replica's log."""


NO_CONFIG: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class ClusterImage:
    cluster_id: str = ""
    version: int = 0
    """Rises by one with each change on this node; says nothing about other nodes."""
    controller_id: NodeId | None = None
    brokers: Mapping[NodeId, BrokerImage] = field(default_factory=dict)
    """Those that have a session."""
    registered: Mapping[NodeId, BrokerImage] = field(default_factory=dict)
    """Also those that are away, as they registered last."""
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[UUID, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=lambda: HIGHEST_LEVELS)
    """Levels in force; a feature that is not named is at 0."""
    features_epoch: int = 1
    """Rises with each change of a level."""

    def topic_config(self, topic: str) -> Mapping[str, str]:
        """The topic's own settings; empty when it has none."""
        return self.configs.get(ConfigResource(ResourceType.TOPIC, topic), NO_CONFIG)

    def broker_config(self, node_id: int | None) -> Mapping[str, str]:
        """The dynamic settings of one broker, or with `None` those of all brokers."""
        name = "" if node_id is None else str(node_id)
        return self.configs.get(ConfigResource(ResourceType.BROKER, name), NO_CONFIG)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics.get(name)

    def topic_id(self, topic: str) -> TopicId | None:
        image = self.topics.get(topic)
        return None if image is None else image.topic_id

    def hosted(self, node_id: NodeId) -> Iterator[tuple[TopicPartition, TopicId]]:
        """The partitions of which a broker has a replica, with their topic ids."""
        for name, topic in self.topics.items():
            for index, partition in enumerate(topic.partitions):
                if node_id in partition.replicas:
                    yield TopicPartition(name, index), topic.topic_id

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        image = self.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        return image.partitions[index]
