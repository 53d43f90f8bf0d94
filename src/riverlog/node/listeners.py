"""The listeners of a node: bound first, so that ports are known, and opened last, when all is ready.

A client that connects in between waits a moment instead of being refused or told half the truth.
"""

import logging
from collections.abc import Mapping, Sequence

from riverlog.broker.net.connections import Connections
from riverlog.model.config.slices import Listener
from riverlog.model.errors import RiverlogError
from riverlog.model.network import Address, Listening, Network, Socket

_logger = logging.getLogger(__name__)
_EVERY_INTERFACE = ("", "0.0.0.0", "::")
_WAITING_MAX = 1000


class Listeners:
    def __init__(self, network: Network, connections: Connections) -> None:
        self._network = network
        self._connections = connections
        self._listening: dict[str, Listening] = {}
        self._waiting: list[tuple[Socket, str]] | None = []
        self.advertised: Mapping[str, Address] = {}

    @property
    def bound(self) -> Mapping[str, Address]:
        return {name: listening.address for name, listening in self._listening.items()}

    def bind(self, listeners: Sequence[Listener], advertised: Sequence[Listener]) -> None:
        for listener in listeners:
            self._listening[listener.name] = self._listen(listener)
        told = {listener.name: listener.address for listener in advertised}
        self.advertised = {
            listener.name: self._advertised(listener, told.get(listener.name)) for listener in listeners
        }

    def open(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for socket, name in waiting:
            self._connections.accept(socket, name)

    def close(self) -> None:
        for listening in self._listening.values():
            listening.close()
        for socket, _ in self._waiting or ():
            socket.close()
        self._waiting = None

    def _listen(self, listener: Listener) -> Listening:
        try:
            return self._network.listen(listener.address, lambda socket: self._accept(socket, listener.name))
        except OSError as error:
            raise RiverlogError(
                f"cannot listen on {listener.address}: {(error.strerror or str(error)).lower()}. "
                "Stop what uses the address, or choose another one with --listen (port 0 picks a free one)."
            ) from error

    def _accept(self, socket: Socket, listener_name: str) -> None:
        if self._waiting is None:
            self._connections.accept(socket, listener_name)
        elif len(self._waiting) < _WAITING_MAX:
            self._waiting.append((socket, listener_name))
        else:
            socket.close()

    def _advertised(self, listener: Listener, told: Address | None) -> Address:
        """The advertised address; port 0 there, too, means the port that was taken."""
        bound = self._listening[listener.name].address
        if told is not None:
            return told._replace(port=told.port or bound.port)
        if listener.address.host not in _EVERY_INTERFACE:
            return Address(listener.address.host, bound.port)
        found = Address(self._network.own_host(is_ipv6=":" in bound.host), bound.port)
        _logger.info(
            "clients of %s are told %s; set advertised.listeners if they reach this machine by another name",
            listener.name,
            found,
        )
        return found
