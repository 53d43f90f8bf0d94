"""What a node needs to copy partitions from the other brokers of its cluster, put together."""

from collections.abc import Awaitable, Callable
from typing import Final

from riverlog.client.core.connection import ClientLimits
from riverlog.client.peer_connection import PeerConnection
from riverlog.metadata.image import ClusterImage
from riverlog.model.config.replica_fetch_config import ReplicaFetchConfig
from riverlog.model.config.server_config import ServerConfig
from riverlog.model.config.settings import Settings
from riverlog.model.ids import BrokerEpoch, NodeId, client_id_of_broker
from riverlog.model.metrics import Metrics
from riverlog.model.network import Network
from riverlog.replication.following.following import Following
from riverlog.replication.replica_set import ReplicaSet

_BEYOND_RECORDS_BYTES: Final = 64 * 1024**2
"""What a reply may have beyond the records that were asked for: a first batch that is larger, and heads."""

_REUSED_BYTES: Final = 4 * 1024**2
"""Of the memory for replies that is kept for each leader: more than the most of a busy one's are."""


def following_of(
    settings: Settings,
    config: ServerConfig,
    replicas: ReplicaSet,
    network: Network,
    image: Callable[[], ClusterImage],
    *,
    broker_epoch: Callable[[], BrokerEpoch | None],
    write_checkpoints: Callable[[], Awaitable[None]],
    chance: Callable[[], float],
    metrics: Metrics,
) -> Following:
    """Start it, have it follow the image after the replicas, and close it."""
    fetching = ReplicaFetchConfig.from_settings(settings)
    # What a leader sends is stored, or dropped, before more of it is received.
    limits = ClientLimits(
        reply_bytes_max=fetching.response_bytes_max + _BEYOND_RECORDS_BYTES, reused_bytes_max=_REUSED_BYTES
    )

    def connect(leader: NodeId, on_closed: Callable[[str], None]) -> PeerConnection | None:
        broker = image().brokers.get(leader)
        address = None if broker is None else broker.endpoints.get(config.inter_broker_listener)
        if address is None:
            return None
        return PeerConnection(
            network,
            address,
            client_id=client_id_of_broker(config.node_id),
            timeout_s=fetching.socket_timeout_ms / 1000,
            limits=limits,
            on_closed=on_closed,
        )

    return Following(
        config.node_id,
        replicas,
        fetching,
        connect=connect,
        broker_epoch=broker_epoch,
        write_checkpoints=write_checkpoints,
        chance=chance,
        metrics=metrics,
    )
