"""What a node serves with: the dispatcher over the routes, connections with their limits, and the listeners.

Bound first, so that the ports are known that the cluster is told; opened last, when all is ready.
Not here: what the routes are made with (`collaborators`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from riverlog.broker.dispatch.dispatcher import Dispatcher
from riverlog.broker.dispatch.door import Door
from riverlog.broker.dispatch.route import AnyRoute
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.connections import ConnectionLimits, Connections
from riverlog.broker.net.interception import Interception
from riverlog.broker.net.receive_memory import ReceiveMemory
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage
from riverlog.model.metrics import Metrics
from riverlog.model.network import Address
from riverlog.node.descriptors import DescriptorShares
from riverlog.node.listeners import Listeners
from riverlog.node.peer_brokers import connections_of_peers
from riverlog.node.surroundings import Surroundings

_RECEIVE_BUDGET_BYTES: Final = 256 * 1024**2
_IDLE_SCAN_MS: Final = 5_000

MakeDoor = Callable[[Iterable[AnyRoute], Metrics], Door]


class Serving:
    def __init__(
        self,
        given: Surroundings,
        routes: Mapping[int, AnyRoute],
        make_door: MakeDoor,
        interception: Interception,
        shares: DescriptorShares,
        image: ClusterImage,
        *,
        turn: LoopTurn,
        cold_reader: ColdReader,
    ) -> None:
        self._given = given
        self._shares = shares
        door = make_door(routes.values(), given.metrics)
        self.dispatcher = Dispatcher(routes, door, given.clock, given.metrics)
        self.connections = Connections(
            interception.over(self.dispatcher),
            self._limits(image),
            memory=ReceiveMemory(given.config.queued_request_bytes_max or _RECEIVE_BUDGET_BYTES),
            cold_reader=cold_reader,
            turn=turn,
            clock=given.clock,
            metrics=given.metrics,
            refuses=interception.refuses,
        )
        self.listeners = Listeners(given.network, self.connections)

    def bind(self) -> Mapping[str, Address]:
        """What clients are told, by listener name."""
        config = self._given.config
        self.listeners.bind(config.listeners, config.advertised_listeners)
        return self.listeners.advertised

    def close(self) -> None:
        self.listeners.close()
        self.connections.close()

    @property
    def idle_scan_ms(self) -> int:
        """How often to look for connections that nobody uses."""
        idle_ms = self._given.config.connections_max_idle_ms
        return _IDLE_SCAN_MS if idle_ms is None else max(min(idle_ms // 4, _IDLE_SCAN_MS), 100)

    def apply(self, delta: ImageDelta) -> None:
        if delta.configs or delta.brokers_added or delta.brokers_removed:
            self.connections.limits = self._limits(delta.new)

    def _limits(self, image: ClusterImage) -> ConnectionLimits:
        config = self._given.live_config.server_config(image)
        return ConnectionLimits(
            request_bytes_max=config.socket_request_bytes_max,
            connections_max=self._shares.connections_under(config.max_connections),
            per_address_max=config.max_connections_per_ip,
            per_address_overrides=config.max_connections_per_ip_overrides,
            brokers_at=connections_of_peers(config, image),
            idle_ms_max=config.connections_max_idle_ms,
        )
