"""Random traffic on a real connection: whatever the sizes, chunks and delays, replies are whole and in order.

A failure names its seed: `pytest tests/broker/test_connection_stress.py -k "<seed>"`.
"""

import asyncio
import random
import struct
import zlib

import pytest

from riverlog.broker.connection import Later
from riverlog.broker.context import Answer
from tests.broker.sockets import Scripted, frame, read_frame, served, until

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
                        await asyncio.sleep(0)

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


def _size(dice: random.Random) -> int:
    return dice.choice((0, 1, 20, 20, 20, 300, 300, 5000, 65_531, 65_532, 65_533, 200_000))
