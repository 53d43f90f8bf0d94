"""A served socket for tests: real connections on a real loop, with answers that a test scripts."""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from riverlog.broker.exchange.context import Answer
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.connection import Answering, Later
from riverlog.broker.net.connections import ConnectionLimits, Connections
from riverlog.broker.net.network import AsyncNetwork
from riverlog.broker.net.receive_memory import ReceiveMemory
from riverlog.model.metrics import NoMetrics
from riverlog.model.network import Address
from tests.waiting import until

_PROBE = b"\0what a test asks to see turns of the loop"
_ROUNDS = 20


class LoopClock:
    """The event loop's time, moved forward by hand where a test wants time to pass."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def wall_ms(self) -> int:
        return int(self.monotonic_s() * 1000)

    def monotonic_s(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead_s


@dataclass
class Scripted:
    """Answers each frame by a function."""

    answer: Callable[[bytes], Answer | Later]

    def dispatch(self, frame: memoryview, origin: Origin) -> Answer | Later:
        request = bytes(frame)
        return echo(request) if request == _PROBE else self.answer(request)


@dataclass
class Served:
    address: Address
    connections: Connections
    memory: ReceiveMemory
    clock: LoopClock
    clients: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, host: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect from the given address."""
        reader, writer = await asyncio.open_connection(*self.address, local_addr=(host, 0))
        self.clients.append(writer)
        return reader, writer

    async def have_its_turn(self, rounds: int = _ROUNDS) -> None:
        """Return when the server had every chance to do what it could do now.

        It answers so many requests on a connection of their own. What was sent to it before this call has
        arrived, as both ends are on this machine, so that it is read with the first of them at the latest, if
        at all. It is counted, not timed: on a slow machine it takes longer and shows as much.
        """
        others = len(self.connections)
        reader, writer = await self.connect()
        for _ in range(rounds):
            writer.write(frame(_PROBE))
            assert await read_frame(reader) == _PROBE
        writer.close()
        await until(lambda: len(self.connections) == others)


@asynccontextmanager
async def served(
    answering: Answering, limits: ConnectionLimits | None = None, *, budget_bytes: int = 2**28
) -> AsyncIterator[Served]:
    memory, cold_reader, clock = ReceiveMemory(budget_bytes), ColdReader(ThreadPoolExecutor(2)), LoopClock()
    connections = Connections(
        answering,
        limits or ConnectionLimits(),
        memory=memory,
        cold_reader=cold_reader,
        turn=LoopTurn(),
        clock=clock,
        metrics=NoMetrics(),
    )
    listening = AsyncNetwork().listen(
        Address("127.0.0.1", 0), lambda socket: connections.accept(socket, "PLAINTEXT")
    )
    server = Served(listening.address, connections, memory, clock)
    try:
        yield server
    finally:
        for client in server.clients:
            client.transport.abort()
            with suppress(OSError):
                await client.wait_closed()
        listening.close()
        connections.close()


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await asyncio.wait_for(reader.readexactly(4), 10))
    return await asyncio.wait_for(reader.readexactly(size), 10)


def echo(request: bytes) -> Answer:
    return [frame(request)]


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())
