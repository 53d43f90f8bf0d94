"""The network between simulated processes: who listens where, who is connected to whom.

`join` gives a life the network port. When a process ends, its machine tells the peers (`leave`); when the
power goes, nobody does, and a peer learns of it by its own silence or by what it sends after the machine is
back. Faults of links are in `links`.
"""

import errno
import os
from collections.abc import Callable
from typing import Final

from riverlog.model.network import Address, Connecting, Listening, Socket
from riverlog.testing.simulation.machine.links import Links
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.machine.loop import VirtualLoop
from riverlog.testing.simulation.machine.sockets import Attempt, SimulatedSocket

_FIRST_PORT: Final = 40_000
_CONNECT_AGAIN_S: Final = 1.0
_CONNECT_TRIES: Final = 10


class SimulatedListening:
    def __init__(
        self, wires: "SimulatedWires", life: Life, address: Address, on_accept: Callable[[Socket], None]
    ) -> None:
        self._wires, self._life = wires, life
        self._address = address
        self._on_accept = on_accept

    @property
    def address(self) -> Address:
        return self._address

    @property
    def life(self) -> Life:
        return self._life

    def accept(self, socket: SimulatedSocket) -> None:
        if socket.is_gone:
            return
        if self._wires.is_listening(self):
            self._on_accept(socket)
        else:
            socket.close()

    def close(self) -> None:
        self._wires.forget(self)


class HostNetwork:
    """The network port of one life."""

    def __init__(self, wires: "SimulatedWires", life: Life, host: str) -> None:
        self._wires, self._life, self._host = wires, life, host

    def listen(self, address: Address, on_accept: Callable[[Socket], None]) -> Listening:
        return self._wires.listen(self._life, address._replace(host=self._host), on_accept)

    def connect(self, address: Address, on_done: Callable[[Socket | OSError], None]) -> Connecting:
        return self._wires.connect(self._life, self._host, address, on_done)

    def own_host(self, *, is_ipv6: bool) -> str:
        return self._host


class SimulatedWires:
    def __init__(self, loop: VirtualLoop, links: Links) -> None:
        self._loop = loop
        self.links = links
        self._listening: dict[Address, SimulatedListening] = {}
        self._sockets: dict[SimulatedSocket, Life] = {}
        self._next_port = _FIRST_PORT

    def join(self, life: Life, host: str) -> HostNetwork:
        self.links.bring_up(host)
        return HostNetwork(self, life, host)

    def leave(self, life: Life, host: str, *, silently: bool) -> None:
        """The life has ended: its machine closes its sockets, or the machine is gone as well."""
        for address in [each.address for each in self._listening.values() if each.life is life]:
            del self._listening[address]
        if silently:
            self.links.take_down(host)
        for socket in self.sockets_of(life):
            if silently:
                socket.vanish()
            else:
                socket.close()

    def sockets_of(self, life: Life) -> list[SimulatedSocket]:
        return [socket for socket, owner in self._sockets.items() if owner is life]

    def sockets(self) -> list[SimulatedSocket]:
        return list(self._sockets)

    def break_connection(self, socket: SimulatedSocket, *, tell_peer: bool) -> None:
        """Reset as this end sees it; the other end hears of it, or goes on waiting (half-open)."""
        peer = socket.other
        socket.fail(errno.ECONNRESET)
        if tell_peer:
            peer.fail(errno.ECONNRESET)
        else:
            socket.vanish()

    # For `HostNetwork` and the listeners.

    def listen(self, life: Life, address: Address, on_accept: Callable[[Socket], None]) -> SimulatedListening:
        if not address.port:
            address = address._replace(port=self._new_port())
        if address in self._listening:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listening = SimulatedListening(self, life, address, on_accept)
        self.remember(listening)
        return listening

    def is_listening(self, listening: SimulatedListening) -> bool:
        return self._listening.get(listening.address) is listening

    def remember(self, listening: SimulatedListening) -> None:
        self._listening[listening.address] = listening

    def forget(self, listening: SimulatedListening) -> None:
        if self.is_listening(listening):
            del self._listening[listening.address]

    def connect(
        self, life: Life, host: str, address: Address, on_done: Callable[[Socket | OSError], None]
    ) -> Attempt:
        attempt = Attempt()
        self._try(attempt, life, host, address, on_done, _CONNECT_TRIES)
        return attempt

    def _try(
        self,
        attempt: Attempt,
        life: Life,
        host: str,
        address: Address,
        on_done: Callable[[Socket | OSError], None],
        tries: int,
    ) -> None:
        loop, links = self._loop, self.links
        when_s = loop.now_s + links.delay_s(host, address.host, 0)
        target = address.host

        def arrive() -> None:
            if attempt.is_over or not life.is_alive:
                return
            if links.is_cut(host, target) or links.is_cut(target, host) or links.is_down(target):
                if tries > 1:
                    again_s = loop.now_s + _CONNECT_AGAIN_S
                    attempt.wait(
                        loop.at(
                            again_s, loop.world, self._try, attempt, life, host, address, on_done, tries - 1
                        )
                    )
                else:
                    done(OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
                return
            listening = self._listening.get(address)
            if listening is None:
                done(ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)))
            else:
                attempt.made = self._connected(life, host, address, listening)
                done(attempt.made)

        def done(outcome: SimulatedSocket | OSError) -> None:
            attempt.wait(loop.at(loop.now_s + links.delay_s(target, host, 0), life, finish, outcome))

        def finish(outcome: SimulatedSocket | OSError) -> None:
            if not attempt.is_over:
                attempt.is_over, attempt.made = True, None
                on_done(outcome)

        attempt.wait(loop.at(when_s, loop.world, arrive))

    def _connected(
        self, life: Life, host: str, address: Address, listening: SimulatedListening
    ) -> SimulatedSocket:
        here = SimulatedSocket(self._loop, self.links, life, host, address)
        caller = Address(host, self._new_port())
        there = SimulatedSocket(self._loop, self.links, listening.life, address.host, caller)
        here.join(there)
        for socket, owner in ((here, life), (there, listening.life)):
            self._sockets[socket] = owner
            socket.on_closed = self._forget_socket
        self._loop.call_soon(listening.accept, there, context=listening.life.context)
        return here

    def _forget_socket(self, socket: SimulatedSocket) -> None:
        self._sockets.pop(socket, None)

    def _new_port(self) -> int:
        self._next_port += 1
        return self._next_port
