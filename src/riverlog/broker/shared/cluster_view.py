"""The cluster as clients of one listener see it: brokers that have the listener, leaders that can be reached.

Shared by the handlers that describe brokers and partitions. Pure: from an image to plain values.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, PartitionKey, TopicImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.network import Address


class DescribedPartition(NamedTuple):
    error: ErrorCode
    leader_id: int
    replicas: list[int]
    isr: list[int]
    offline: list[int]


class ClusterView:
    def __init__(self, image: ClusterImage, listener_name: str) -> None:
        self.image = image
        self._listener_name = listener_name
        self.reachable = {
            node_id: address
            for node_id, broker in image.brokers.items()
            if (address := broker.endpoints.get(listener_name)) is not None
        }
        self._seen: dict[PartitionImage, DescribedPartition] = {}
        self._failed: dict[PartitionKey, set[NodeId]] = {}
        """Who has lost the directory of a partition, and serves others."""
        for node_id, broker in image.brokers.items():
            for key in broker.offline:
                self._failed.setdefault(key, set()).add(node_id)
        self._failed_topics = {topic_id for topic_id, _ in self._failed}

    def has_failed(self, topic: TopicImage) -> bool:
        """Whether replicas of it are in a directory that has failed, so that it is told otherwise."""
        return topic.topic_id in self._failed_topics

    def brokers(self) -> list[tuple[BrokerImage, Address]]:
        return [(self.image.brokers[node_id], address) for node_id, address in self.reachable.items()]

    def fenced(self) -> list[tuple[BrokerImage, Address]]:
        """Those that are registered, but away: where they were to be found last."""
        return [
            (broker, broker.endpoints[self._listener_name])
            for node_id, broker in self.image.registered.items()
            if node_id not in self.image.brokers and self._listener_name in broker.endpoints
        ]

    def controller_id(self) -> int:
        """-1 also while the store still names a broker that is gone."""
        controller = self.image.controller_id
        return -1 if controller is None or controller not in self.image.brokers else controller

    def partition(self, topic: TopicImage, index: int, version: int) -> DescribedPartition:
        """`version` is that of a Metadata request: what is out of reach is told differently by age."""
        partition = topic.partitions[index]
        failed = self._failed.get((topic.topic_id, index)) if self._failed else None
        if failed is not None:
            return self._describe(partition, version, failed)
        view = self._seen.get(partition)
        if view is None:
            view = self._seen[partition] = self._describe(partition, version)
        return view

    def _describe(
        self, partition: PartitionImage, version: int, failed: Collection[NodeId] = ()
    ) -> DescribedPartition:
        leader = partition.leader
        replicas = self._shown(partition.replicas, version)
        isr = self._shown(partition.isr, version)
        offline: list[int] = [
            node_id for node_id in partition.replicas if node_id not in self.reachable or node_id in failed
        ]
        if leader is not None and leader in self.reachable:
            is_short = len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr)
            error = ErrorCode.REPLICA_NOT_AVAILABLE if is_short else ErrorCode.NONE
            return DescribedPartition(error, leader, replicas, isr, offline)
        lacks_listener = leader is not None and leader in self.image.brokers
        error = (
            ErrorCode.LISTENER_NOT_FOUND
            if lacks_listener and version >= 6
            else ErrorCode.LEADER_NOT_AVAILABLE
        )
        return DescribedPartition(error, -1, replicas, isr, offline)

    def _shown(self, node_ids: Sequence[NodeId], version: int) -> list[int]:
        if version > 0:
            return list(node_ids)
        return [node_id for node_id in node_ids if node_id in self.reachable]
