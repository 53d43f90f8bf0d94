"""Which broker a client asks: the leader of a partition, the coordinator of a group or an id, or any.

Where there is one broker it is that one, and nothing is asked to find it. Otherwise what the brokers tell is
believed until one of them refuses, or a connection is lost.
"""

import random
from collections.abc import Sequence
from typing import Final

from riverlog.model.network import Address
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

METADATA_VERSION: Final = 9


class Routes:
    def __init__(self, brokers: Sequence[Address], chance: random.Random) -> None:
        self._brokers, self._chance = tuple(brokers), chance
        self._leaders: dict[tuple[str, int], Address] = {}
        self._replicas: dict[tuple[str, int], list[Address]] = {}
        self.present = self._brokers[0]
        """Whom the next request goes to."""

    @property
    def is_sole(self) -> bool:
        return len(self._brokers) == 1

    def go_anywhere(self) -> None:
        """What was known may be wrong."""
        if not self.is_sole:
            self._leaders.clear()
            self._replicas.clear()
            self.present = self._chance.choice(self._brokers)

    def go_to(self, host: str, port: int) -> None:
        """A coordinator, as it was told."""
        if not self.is_sole:
            self.present = Address(host, port)

    def leader_of(self, topic: str, index: int) -> Address | None:
        """None: the metadata has to be asked for."""
        return self.present if self.is_sole else self._leaders.get((topic, index))

    def go_to_replica(self, topic: str, index: int) -> None:
        """Any of them, as consumers near a follower do (KIP-392)."""
        if replicas := self._replicas.get((topic, index)):
            self.present = self._chance.choice(replicas)

    def request_for(self, topic: str) -> MetadataRequest:
        return MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)

    def learn(self, told: MetadataResponse) -> None:
        brokers = {each.node_id: Address(each.host, each.port) for each in told.brokers}
        for topic in told.topics:
            for partition in topic.partitions:
                address = brokers.get(partition.leader_id)
                if topic.name is not None and address is not None:
                    self._leaders[topic.name, partition.partition_index] = address
                    self._replicas[topic.name, partition.partition_index] = [
                        brokers[each] for each in partition.replica_nodes if each in brokers
                    ]
