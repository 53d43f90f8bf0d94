"""Random traffic on a real connection: whatever the sizes, chunks and delays, replies are whole and in order.

A failure names its seed: `pytest tests/broker/test_connection_stress.py -k "<seed>"`.
"""

import asyncio
import random
import struct
import zlib

import pytest

from riverlog.broker.exchange.context import Answer
from riverlog.broker.net.connection import Connection, Later
from tests.broker.sockets import Scripted, frame, read_frame, served
from tests.waiting import loop_turns, until

_REQUESTS = 300


def expected_reply(request: bytes) -> bytes:
    """Depends on every byte, and is sometimes large."""
    checksum = zlib.crc32(request)
    return struct.pack(">II", len(request), checksum) * (1 + checksum % 40_000 if checksum % 7 == 0 else 1)


@pytest.mark.parametrize("seed", range(12))
def test_replies_are_whole_and_in_order(seed: int) -> None:
    dice = random.Random(seed)
    requests = [dice.randbytes(_size(dice)) for _ in range(_REQUESTS)]

    async def main() -> None:
        tasks: set[asyncio.Task[Answer]] = set()

        async def later(request: bytes, delay_s: float) -> Answer:
            await asyncio.sleep(delay_s)
            return [frame(expected_reply(request))]

        def answer(request: bytes) -> Answer | Later:
            kind = dice.random()
            if kind < 0.6:
                reply = expected_reply(request)
                return [struct.pack(">i", len(reply)), reply]
            task = asyncio.get_running_loop().create_task(later(request, dice.choice((0, 0, 0.001, 0.003))))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            return Later(task, may_be_overtaken=kind < 0.9)

        async with served(Scripted(answer), budget_bytes=300_000) as server:
            reader, writer = await server.connect()

            async def send() -> None:
                stream = b"".join(frame(request) for request in requests)
                position = 0
                while position < len(stream):
                    size = dice.choice((1, 3, 50, 4000, 65_536, 500_000))
                    writer.write(stream[position : position + size])
                    position += size
                    if dice.random() < 0.3:
                        await writer.drain()
                        await loop_turns()

            sending = asyncio.create_task(send())
            for request in requests:
                assert await read_frame(reader) == expected_reply(request)
                if dice.random() < 0.02:
                    await asyncio.sleep(0.005)
            await sending
            assert server.memory.reserved_bytes == 0
            writer.close()
            await until(lambda: len(server.connections) == 0)

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(8))
def test_requests_of_all_kinds_in_turn_on_several_connections(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole and alone, in pieces, several at once, long ones; all connections receive into one scratch."""
    dice = random.Random(seed)
    receive, received = Connection._receive, list[Connection]()

    def counting(self: Connection) -> None:
        received.append(self)
        receive(self)

    monkeypatch.setattr(Connection, "_receive", counting)

    def answer(request: bytes) -> Answer:
        return [frame(expected_reply(request))]

    async def main() -> None:
        async with served(Scripted(answer)) as server:
            clients = [await server.connect() for _ in range(4)]
            alone = 0
            for _ in range(150):
                asked = []
                for reader, writer in dice.sample(clients, dice.randint(1, 4)):
                    requests = [dice.randbytes(_size(dice)) for _ in range(dice.choice((1, 1, 1, 1, 2, 3)))]
                    stream = b"".join(frame(request) for request in requests)
                    cut = dice.choice((len(stream), len(stream), len(stream), 3, len(stream) // 2))
                    writer.write(stream[:cut])
                    alone += len(requests) == 1 and cut == len(stream) <= 65_536
                    asked.append((reader, writer, requests, stream[cut:]))
                await loop_turns()
                for reader, writer, requests, rest in asked:
                    writer.write(rest)
                    for request in requests:
                        assert await read_frame(reader) == expected_reply(request)
            assert received
            assert alone > 50
            assert server.memory.reserved_bytes == 0

    asyncio.run(main())


def test_requests_that_come_alone_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    longer: list[Connection] = []
    monkeypatch.setattr(Connection, "_receive", longer.append)

    async def main() -> None:
        async with served(Scripted(lambda request: [frame(request)])) as server:
            reader, writer = await server.connect()
            for _ in range(20):
                writer.write(frame(b"request"))
                assert await asyncio.wait_for(read_frame(reader), 10) == b"request"
            assert not longer

    asyncio.run(main())


def _size(dice: random.Random) -> int:
    return dice.choice((0, 1, 20, 20, 20, 300, 300, 5000, 65_531, 65_532, 65_533, 200_000))
