"""Who leads instead, told with the refusal, so that a client need not ask for it first (KIP-951).

Produce tells it since version 10, Fetch since 16: the leader with its epoch, and once for the whole reply
where each of these leaders is to be found. Only where there are other brokers: a node that is alone has
nobody else to name. Not here: the refusal itself.
"""

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from riverlog.metadata.image import BrokerImage, ClusterImage
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.model.network import Address
from riverlog.model.pieces import Pieces
from riverlog.wire.messages import fetch, produce

PRODUCE_SINCE: Final = 10
FETCH_SINCE: Final = 16
_OF_PRODUCE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER})
_OF_FETCH: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_UNKNOWN: Final = (-1, -1)
_AT_ONCE: Final = 100


class LeaderHints:
    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image

    def on_produce(self, response: produce.ProduceResponse, listener_name: str) -> None:
        """Complete a reply with what it lacks."""
        leaders: set[int] = set()
        for topic in response.responses:
            self._name_leaders_of_produce(topic, topic.partition_responses, leaders)
        self._name_endpoints_of_produce(response, leaders, listener_name)

    def on_produce_in_pieces(self, response: produce.ProduceResponse, listener_name: str) -> Pieces[None]:
        leaders: set[int] = set()
        for topic in response.responses:
            for start in range(0, len(topic.partition_responses), _AT_ONCE):
                some = topic.partition_responses[start : start + _AT_ONCE]
                self._name_leaders_of_produce(topic, some, leaders)
                yield None
        self._name_endpoints_of_produce(response, leaders, listener_name)

    def _name_leaders_of_produce(
        self,
        topic: produce.TopicProduceResponse,
        replies: Iterable[produce.PartitionProduceResponse],
        leaders: set[int],
    ) -> None:
        for reply in replies:
            if reply.error_code in _OF_PRODUCE:
                leader_id, epoch = self._leader(topic.name, topic.topic_id, reply.index)
                reply.current_leader = produce.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                leaders.add(leader_id)

    def _name_endpoints_of_produce(
        self, response: produce.ProduceResponse, leaders: set[int], listener_name: str
    ) -> None:
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
            self._name_leaders_of_fetch(topic, topic.partitions, leaders)
        if with_addresses:
            self._name_endpoints_of_fetch(response, leaders, listener_name)

    def on_fetch_in_pieces(
        self, response: fetch.FetchResponse, listener_name: str, *, with_addresses: bool
    ) -> Pieces[None]:
        leaders: set[int] = set()
        for topic in response.responses:
            for start in range(0, len(topic.partitions), _AT_ONCE):
                self._name_leaders_of_fetch(topic, topic.partitions[start : start + _AT_ONCE], leaders)
                yield None
        if with_addresses:
            self._name_endpoints_of_fetch(response, leaders, listener_name)

    def _name_leaders_of_fetch(
        self, topic: fetch.FetchableTopicResponse, read: Iterable[fetch.PartitionData], leaders: set[int]
    ) -> None:
        for data in read:
            if data.error_code in _OF_FETCH:
                leader_id, epoch = self._leader(topic.topic, topic.topic_id, data.partition_index)
                data.current_leader = fetch.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                leaders.add(leader_id)

    def _name_endpoints_of_fetch(
        self, response: fetch.FetchResponse, leaders: set[int], listener_name: str
    ) -> None:
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
