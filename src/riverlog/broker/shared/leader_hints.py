"""Who leads instead, told with the refusal, so that a client need not ask for it first (KIP-951).

Produce tells it since version 10, Fetch since 16: the leader with its epoch, and once for the whole reply
where each of these leaders is to be found. Only where there are other brokers: a node that is alone has
nobody else to name. Not here: the refusal itself.
"""

from collections.abc import Callable
from typing import Final
from uuid import UUID

from riverlog.metadata.image import BrokerImage, ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.network import Address
from riverlog.wire.messages import fetch, produce

PRODUCE_SINCE: Final = 10
FETCH_SINCE: Final = 16
_OF_PRODUCE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER})
_OF_FETCH: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_UNKNOWN: Final = (-1, -1)


class LeaderHints:
    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image

    def on_produce(self, response: produce.ProduceResponse, listener_name: str) -> None:
        """Complete a reply with what it lacks."""
        leaders: set[int] = set()
        for topic in response.responses:
            for reply in topic.partition_responses:
                if reply.error_code in _OF_PRODUCE:
                    leader_id, epoch = self._leader(topic.name, topic.topic_id, reply.index)
                    reply.current_leader = produce.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                    leaders.add(leader_id)
        response.node_endpoints = [
            produce.NodeEndpoint(
                node_id=broker.node_id, host=address.host, port=address.port, rack=broker.rack
            )
            for broker, address in self._reachable(leaders, listener_name)
        ]

    def on_fetch(
        self, response: fetch.FetchResponse, listener_name: str, *, with_addresses: bool = True
    ) -> None:
        """Complete a reply with what it lacks; without addresses for one that claims to be a broker and knows
        where the others are."""
        leaders: set[int] = set()
        for topic in response.responses:
            for data in topic.partitions:
                if data.error_code in _OF_FETCH:
                    leader_id, epoch = self._leader(topic.topic, topic.topic_id, data.partition_index)
                    data.current_leader = fetch.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                    leaders.add(leader_id)
        if not with_addresses:
            return
        response.node_endpoints = [
            fetch.NodeEndpoint(node_id=broker.node_id, host=address.host, port=address.port, rack=broker.rack)
            for broker, address in self._reachable(leaders, listener_name)
        ]

    def _leader(self, name: str, topic_id: UUID | None, index: int) -> tuple[int, int]:
        image = self._image()
        topic = name if topic_id is None else image.topic_names.get(topic_id, "")
        partition = image.partition(topic, index)
        if partition is None:
            return _UNKNOWN
        return -1 if partition.leader is None else partition.leader, partition.leader_epoch

    def _reachable(self, leaders: set[int], listener_name: str) -> list[tuple[BrokerImage, Address]]:
        brokers = self._image().brokers
        found = [brokers[NodeId(leader)] for leader in sorted(leaders) if leader in brokers]
        return [
            (broker, broker.endpoints[listener_name]) for broker in found if listener_name in broker.endpoints
        ]
