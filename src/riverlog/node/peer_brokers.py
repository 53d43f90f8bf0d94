"""How a node asks the other brokers of its cluster: at the inter-broker listener that they advertise."""

from collections.abc import Callable
from typing import Final

from riverlog.client.peers import PeerLimits, Peers
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.server_config import ServerConfig
from riverlog.model.ids import NodeId, client_id_of_broker
from riverlog.model.network import Address, Network

_CONNECT_TIMEOUT_S: Final = 10.0


def peers_of(
    config: ServerConfig, network: Network, image: Callable[[], ClusterImage], chance: Callable[[], float]
) -> Peers:
    """Close what is returned. A broker that is not in the image cannot be asked."""

    def address_of(node_id: NodeId) -> Address | None:
        broker = image().brokers.get(node_id)
        return None if broker is None else broker.endpoints.get(config.inter_broker_listener)

    timeout_s = config.request_timeout_ms / 1000
    return Peers(
        network,
        address_of,
        client_id=client_id_of_broker(config.node_id),
        chance=chance,
        limits=PeerLimits(timeout_s=timeout_s, connect_timeout_s=min(timeout_s, _CONNECT_TIMEOUT_S)),
    )
