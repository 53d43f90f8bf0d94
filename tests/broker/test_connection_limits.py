"""Bounds on connections: sizes before memory is taken, numbers, silence, descriptors."""

import asyncio
import os
import struct

import pytest

from riverlog.broker.exchange.context import Answer
from riverlog.broker.net.connection import Later
from riverlog.broker.net.connections import ConnectionLimits
from tests.broker.sockets import Scripted, echo, frame, read_frame, run, served
from tests.waiting import until


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 1001])
def test_an_impossible_size_closes_the_connection_before_memory_is_taken(size: int) -> None:
    async def main() -> None:
        async with served(Scripted(echo), ConnectionLimits(request_bytes_max=1000)) as server:
            reader, writer = await server.connect()
            writer.write(struct.pack(">i", size))
            assert await reader.read() == b""
            assert server.memory.reserved_bytes == 0
            writer.close()

    run(main)


def test_a_request_above_the_limit_is_refused_even_if_it_is_all_there() -> None:
    async def main() -> None:
        async with served(Scripted(echo), ConnectionLimits(request_bytes_max=1000)) as server:
            reader, writer = await server.connect()
            writer.write(frame(b"x" * 1000))
            assert await read_frame(reader) == b"x" * 1000
            writer.write(frame(b"x" * 1001))
            assert await reader.read() == b""

    run(main)


def test_announced_but_unsent_requests_take_no_more_than_the_budget_and_one_request() -> None:
    async def main() -> None:
        size = 1_000_000
        async with served(
            Scripted(lambda request: [frame(b"%d" % len(request))]), budget_bytes=3 * size
        ) as server:
            clients = [await server.connect() for _ in range(10)]
            for _, writer in clients:
                writer.write(struct.pack(">i", size) + b"x" * 100)
            await until(lambda: server.memory.is_short)
            await server.have_its_turn()
            assert server.memory.reserved_bytes <= 3 * size
            for _, writer in clients:
                writer.write(b"x" * (size - 100))
            for reader, writer in clients:
                assert await read_frame(reader) == b"%d" % size
                writer.close()
            await until(lambda: server.memory.reserved_bytes == 0)

    run(main)


def test_a_stalled_request_gives_way_when_others_wait_for_its_memory() -> None:
    async def main() -> None:
        size = 200_000
        async with served(Scripted(lambda request: [frame(b"ok")]), budget_bytes=size) as server:
            stalled, stalled_writer = await server.connect()
            stalled_writer.write(struct.pack(">i", size) + b"x")
            await until(lambda: server.memory.reserved_bytes > 0)
            reader, writer = await server.connect()
            writer.write(frame(b"y" * size))
            await until(lambda: server.memory.is_short)
            server.clock.ahead_s = 60
            server.connections.close_idle()
            assert await stalled.read() == b""
            assert await read_frame(reader) == b"ok"
            writer.close()
            stalled_writer.close()

    run(main)


def test_connections_above_the_limits_are_closed_at_once() -> None:
    async def main() -> None:
        limits = ConnectionLimits(
            connections_max=3, per_address_max=9, per_address_overrides={"127.0.0.2": 1}
        )
        async with served(Scripted(echo), limits) as server:
            kept = [await server.connect() for _ in range(3)]
            reader, refused = await server.connect()
            assert await reader.read() == b""
            refused.close()
            kept[0][1].close()
            await until(lambda: len(server.connections) == 2)
            reader, writer = await server.connect("127.0.0.2")
            writer.write(frame(b"hello"))
            assert await read_frame(reader) == b"hello"
            kept[1][1].close()
            await until(lambda: len(server.connections) == 2)
            second, second_writer = await asyncio.open_connection(
                *server.address, local_addr=("127.0.0.2", 0)
            )
            assert await second.read() == b""
            for each in (writer, second_writer, kept[2][1]):
                each.close()

    run(main)


def test_brokers_of_a_cluster_have_room_beside_the_share_of_their_address() -> None:
    async def main() -> None:
        limits = ConnectionLimits(per_address_max=1, brokers_at={"127.0.0.2": 1})
        async with served(Scripted(echo), limits) as server:
            kept = [await server.connect("127.0.0.2") for _ in range(2)]
            reader, refused = await asyncio.open_connection(*server.address, local_addr=("127.0.0.2", 0))
            assert await reader.read() == b""
            for _, writer in [*kept, (reader, refused)]:
                writer.close()

    run(main)


def test_only_connections_that_are_silent_for_too_long_are_closed_as_idle() -> None:
    async def main() -> None:
        polling: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        seen: list[bytes] = []

        def answer(request: bytes) -> Answer | Later:
            seen.append(request)
            return Later(polling, may_be_overtaken=True) if request == b"poll" else echo(request)

        async with served(Scripted(answer), ConnectionLimits(idle_ms_max=1000)) as server:
            idle, idle_writer = await server.connect()
            waiting, waiting_writer = await server.connect()
            waiting_writer.write(frame(b"poll"))
            await until(lambda: len(server.connections) == 2 and seen == [b"poll"])
            server.connections.close_idle()
            assert len(server.connections) == 2
            server.clock.ahead_s = 2
            server.connections.close_idle()
            assert await idle.read() == b""
            assert len(server.connections) == 1, "a connection that waits for its answer is not idle"
            polling.set_result([frame(b"late")])
            assert await read_frame(waiting) == b"late"
            idle_writer.close()
            waiting_writer.close()

    run(main)


def test_a_thousand_connections_leave_no_descriptor_behind() -> None:
    async def main() -> None:
        async with served(Scripted(echo)) as server:
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(5):
                clients = [await server.connect() for _ in range(200)]
                for reader, writer in clients:
                    writer.write(frame(b"hi"))
                    assert await read_frame(reader) == b"hi"
                assert len(server.connections) == 200
                for _, writer in clients:
                    writer.close()
                    await writer.wait_closed()
                await until(lambda: len(server.connections) == 0)
            assert len(os.listdir("/proc/self/fd")) <= before

    run(main)
