"""How a node asks the other brokers of its cluster: at the inter-broker listener that they advertise."""

import ipaddress
from collections import Counter
from typing import Final

from riverlog.client.peers import PeerLimits, Peers
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.server_config import ServerConfig
from riverlog.model.ids import NodeId, client_id_of_broker
from riverlog.model.network import Address
from riverlog.node.surroundings import Surroundings

_CONNECT_TIMEOUT_S: Final = 10.0
_CONNECTIONS_EACH: Final = 3
"""For requests, for replicas, and one that takes the place of another."""


def peers_of(given: Surroundings, follower: MetadataFollower) -> Peers:
    """They are closed with the node. A broker that is not in the image cannot be asked, nor waited for."""
    config = given.config

    def address_of(node_id: NodeId) -> Address | None:
        broker = follower.image.brokers.get(node_id)
        return None if broker is None else broker.endpoints.get(config.inter_broker_listener)

    timeout_s = config.request_timeout_ms / 1000
    peers = Peers(
        given.network,
        address_of,
        client_id=client_id_of_broker(config.node_id),
        chance=given.random.random,
        limits=PeerLimits(timeout_s=timeout_s, connect_timeout_s=min(timeout_s, _CONNECT_TIMEOUT_S)),
    )

    def give_up_removed(delta: ImageDelta) -> None:
        for node_id in delta.brokers_removed:
            peers.give_up(node_id)

    given.stack.callback(peers.close)
    follower.subscribe(give_up_removed)
    return peers


def connections_of_peers(config: ServerConfig, image: ClusterImage) -> Counter[str]:
    """How many connections the other brokers may need to this one, by address; "" stands for those whose
    address is a name."""
    room: Counter[str] = Counter()
    for broker in image.brokers.values():
        address = broker.endpoints.get(config.inter_broker_listener)
        if broker.node_id != config.node_id and address is not None:
            room[_as_seen(address.host)] += _CONNECTIONS_EACH
    return room


def _as_seen(host: str) -> str:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return ""
