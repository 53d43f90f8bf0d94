"""What every simulated client is: a process with a name, a connection when it can have one, and patience.

A client counts its operations, and tells the run when one of them was answered in a way that breaks a
promise. It goes on until it is told to stop, through whatever happens to the broker.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address, Network
from riverlog.testing.simulation.checks.ledger import Ledger
from riverlog.testing.simulation.clients.connection import ClientConnection, Disconnected
from riverlog.testing.simulation.clients.routing import METADATA_VERSION, Routes
from riverlog.testing.simulation.trace import Trace
from riverlog.testing.simulation.violations import Violation
from riverlog.wire.apis import ApiKey
from riverlog.wire.schema import Message

_CONNECT_TIMEOUT_S = 3.0
_PAUSE_S = 0.05
ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
    }
)
"""Another broker may be the one to ask."""


class Surroundings:
    """What a client has to do with: the network, the ledger that its answers are held against."""

    def __init__(
        self,
        name: str,
        network: Network,
        brokers: Sequence[Address],
        ledger: Ledger,
        trace: Trace,
        counts: "Counter[str]",
        chance: random.Random,
    ) -> None:
        self.name, self.network, self.brokers = name, network, brokers
        self.ledger, self.trace, self.counts, self.chance = ledger, trace, counts, chance


class SimulatedClient:
    kind = "client"

    def __init__(self, around: Surroundings) -> None:
        self.name = around.name
        self._around = around
        self._chance = around.chance
        self._ledger = around.ledger
        self._counts = around.counts
        self._routes = Routes(around.brokers, around.chance)
        self._connections: dict[Address, ClientConnection] = {}
        self.request_timeout_s = 5.0
        self.is_stopping = False
        self.completed = 0
        """Operations that had an answer."""
        self.completed_since_heal = 0

    async def run(self) -> None:
        """Until `is_stopping`."""
        try:
            while not self.is_stopping:
                try:
                    await self.operate()
                except Disconnected as gone:
                    self._counts[f"{self.kind} disconnected"] += 1
                    self._around.trace.note(self.name, "disconnected", why=str(gone))
                    self._routes.go_anywhere()
                    await self.pause(_PAUSE_S)
        finally:
            self.disconnect()

    async def operate(self) -> None:
        """One step of what this client does. Raises `Disconnected`."""
        raise NotImplementedError

    def disconnect(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def connected(self) -> ClientConnection:
        """With the broker that the client has gone to."""
        address = self._routes.present
        connection = self._connections.get(address)
        if connection is None or connection.is_closed:
            connection = self._connections[address] = await ClientConnection.open(
                self._around.network, address, self.name, _CONNECT_TIMEOUT_S
            )
        return connection

    async def go_to_leader(self, topic: str, index: int) -> bool:
        """Whether a leader is known; the next requests go to it."""
        routes = self._routes
        leader = routes.leader_of(topic, index)
        if leader is None:
            routes.go_anywhere()
            routes.learn(await self.ask(ApiKey.METADATA, METADATA_VERSION, routes.request_for(topic)))
            leader = routes.leader_of(topic, index)
        if leader is None:
            self._counts["no leader"] += 1
            return False
        routes.present = leader
        return True

    async def ask(
        self, key: ApiKey, version: int, message: Message, *, timeout_s: float | None = None
    ) -> Any:
        connection = await self.connected()
        return await connection.ask(key, version, message, timeout_s or self.request_timeout_s)

    async def pause(self, mean_s: float) -> None:
        await asyncio.sleep(mean_s * (0.5 + self._chance.random()))

    def done(self, what: str, **facts: object) -> None:
        """An operation has its answer."""
        self.completed += 1
        self.completed_since_heal += 1
        self._counts[f"{self.kind} {what}"] += 1
        self._around.trace.note(self.name, what, **facts)

    def refused(self, what: str, code: int, **facts: object) -> None:
        """An operation was answered with an error."""
        error = ErrorCode.of(code).name
        if code in ELSEWHERE:
            self._routes.go_anywhere()
        self._counts[f"{what} {error}"] += 1
        self._around.trace.note(self.name, what, error=error, **facts)

    def violated(self, invariant: str, what: str) -> Violation:
        return Violation(invariant, f"{self.name}: {what}")
