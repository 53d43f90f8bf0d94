"""What every simulated client is: a process with a name, a connection when it can have one, and patience.

A client counts its operations, and tells the run when one of them was answered in a way that breaks a
promise. It goes on until it is told to stop, through whatever happens to the broker.
"""

import asyncio
import random
from collections import Counter
from typing import Any

from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address, Network
from riverlog.testing.simulation.checks.ledger import Ledger
from riverlog.testing.simulation.clients.connection import ClientConnection, Disconnected
from riverlog.testing.simulation.trace import Trace
from riverlog.testing.simulation.violations import Violation
from riverlog.wire.apis import ApiKey
from riverlog.wire.schema import Message

_CONNECT_TIMEOUT_S = 3.0
_PAUSE_S = 0.05


class Surroundings:
    """What a client has to do with: the network, the ledger that its answers are held against."""

    def __init__(
        self,
        name: str,
        network: Network,
        broker: Address,
        ledger: Ledger,
        trace: Trace,
        counts: "Counter[str]",
        chance: random.Random,
    ) -> None:
        self.name, self.network, self.broker = name, network, broker
        self.ledger, self.trace, self.counts, self.chance = ledger, trace, counts, chance


class SimulatedClient:
    kind = "client"

    def __init__(self, around: Surroundings) -> None:
        self.name = around.name
        self._around = around
        self._chance = around.chance
        self._ledger = around.ledger
        self._counts = around.counts
        self._connection: ClientConnection | None = None
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
                    await self.pause(_PAUSE_S)
        finally:
            self.disconnect()

    async def operate(self) -> None:
        """One step of what this client does. Raises `Disconnected`."""
        raise NotImplementedError

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def connected(self) -> ClientConnection:
        if self._connection is None or self._connection.is_closed:
            self._connection = await ClientConnection.open(
                self._around.network, self._around.broker, self.name, _CONNECT_TIMEOUT_S
            )
        return self._connection

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
        self._counts[f"{what} {error}"] += 1
        self._around.trace.note(self.name, what, error=error, **facts)

    def violated(self, invariant: str, what: str) -> Violation:
        return Violation(invariant, f"{self.name}: {what}")
