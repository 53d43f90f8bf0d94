"""Which partitions need another state: who leads them, now that brokers have come and gone. Pure.

A leader leads under the registration it had when it was elected (`leader_broker_epoch`). One that has come
back since is elected again under the next leader epoch, so that it never leads on under the old one. Where no
in-sync replica is alive there is no leader, and the ISR stays as it was: who was in it may come back. The
state that a half-made topic lacks is made here as well.

A node that has its store to itself is the only broker there can be: it leads as it did before a restart.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from riverlog.controller.assignments import Replicas
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import LeaderEpoch, NodeId

Brokers = Mapping[NodeId, BrokerImage]


class NewState(NamedTuple):
    topic: str
    partition: int
    expected_version: int | None
    """Of the state that is replaced; `None` where there is none yet."""
    node: PartitionNode


class Leadership(NamedTuple):
    """What an election is decided by beside the partition itself."""

    brokers: Brokers
    controller_epoch: int
    is_alone: bool = False

    def first_state(self, replicas: Replicas) -> PartitionNode:
        """Of a partition that is new: its first replica that is alive leads those that are."""
        isr = tuple(node_id for node_id in replicas if node_id in self.brokers)
        leader = isr[0] if isr else None
        return PartitionNode(
            leader, LeaderEpoch(0), isr or replicas, self.controller_epoch, self._registration(leader)
        )

    def next_state(self, partition: PartitionImage) -> PartitionNode | None:
        """The state that it should have; `None` when that is the one it has."""
        if self._is_led(partition):
            return None
        in_sync = (node_id for node_id in partition.replicas if node_id in partition.isr)
        leader = next((node_id for node_id in in_sync if node_id in self.brokers), None)
        if leader is None and partition.leader is None:
            return None
        return PartitionNode(
            leader,
            LeaderEpoch(partition.leader_epoch + 1),
            partition.isr,
            self.controller_epoch,
            self._registration(leader),
        )

    def _is_led(self, partition: PartitionImage) -> bool:
        leader = partition.leader
        if leader is None or leader not in self.brokers:
            return False
        return self.is_alone or partition.leader_broker_epoch == self.brokers[leader].epoch

    def _registration(self, leader: NodeId | None) -> int | None:
        return None if leader is None or self.is_alone else self.brokers[leader].epoch


def decide_states(image: ClusterImage, leadership: Leadership, topics: Iterable[str]) -> Iterator[NewState]:
    """The states to be written, of these topics as far as there are such."""
    for name in topics:
        topic = image.topics.get(name)
        for index, partition in enumerate(topic.partitions if topic is not None else ()):
            if partition.partition_epoch < 0:
                yield NewState(name, index, None, leadership.first_state(partition.replicas))
            elif (node := leadership.next_state(partition)) is not None:
                yield NewState(name, index, partition.partition_epoch, node)
