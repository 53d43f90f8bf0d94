"""Where the coordinator of a group or transaction is: the leader of its partition of an internal topic.

Makes the internal topic when it is first asked for, and waits for it, so that a first client need not ask
twice; Apache Kafka answers COORDINATOR_NOT_AVAILABLE meanwhile.
"""

from typing import NamedTuple

from riverlog.broker.shared.topic_making import TopicMaking
from riverlog.controller.internal_topics import AutomaticTopics
from riverlog.coordinator.runtime.hashing import partition_for
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.model.network import Address


class CoordinatorAddress(NamedTuple):
    node_id: NodeId
    address: Address


class CoordinatorLocator:
    def __init__(
        self, follower: MetadataFollower, making: TopicMaking, automatic_topics: AutomaticTopics
    ) -> None:
        self._follower = follower
        self._making = making
        self._automatic_topics = automatic_topics

    def is_ready(self, topic: str) -> bool:
        return topic in self._follower.image.topics

    async def make_ready(self, topic: str) -> None:
        """Make the internal topic; when that fails, `find` tells."""
        await self._making.make([self._automatic_topics.new_topic(topic)])

    def partition_of(self, topic: str, key: str) -> TopicPartition | None:
        """Which partition keeps the state of a group or transaction; None while there is no such topic."""
        internal = self._follower.image.topics.get(topic)
        return (
            None if internal is None else TopicPartition(topic, partition_for(key, len(internal.partitions)))
        )

    def find(self, topic: str, key: str, listener_name: str) -> CoordinatorAddress | ErrorCode:
        image = self._follower.image
        internal = image.topics.get(topic)
        if internal is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        leader = internal.partitions[partition_for(key, len(internal.partitions))].leader
        broker = None if leader is None else image.brokers.get(leader)
        address = None if broker is None else broker.endpoints.get(listener_name)
        if leader is None or address is None:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return CoordinatorAddress(leader, address)
