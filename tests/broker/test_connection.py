"""Connections on real sockets: framing, order, limits, backpressure, and slow or vanished peers."""

import asyncio
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from riverlog.broker import cold_reads, outbound
from riverlog.broker.connection import Answer, Later
from riverlog.broker.connections import ConnectionLimits
from riverlog.broker.context import HangUp
from riverlog.model.disk import FileSlice
from riverlog.storage.local_disk import LocalDisk
from tests.broker.sockets import Scripted, frame, read_frame, served, until


def echo(request: bytes) -> Answer:
    return [frame(request)]


def run(main: Callable[[], Any]) -> None:
    asyncio.run(main())


@pytest.mark.parametrize("size", [0, 1, 3, 65_531, 65_532, 65_533, 1_048_576, 3_000_000])
def test_a_request_of_any_size_arrives_whole(size: int) -> None:
    async def main() -> None:
        async with served(
            Scripted(lambda request: [frame(struct.pack(">iI", len(request), sum(request)))])
        ) as server:
            reader, writer = await server.connect()
            body = os.urandom(size)
            writer.write(frame(body))
            assert await read_frame(reader) == struct.pack(">iI", size, sum(body))
            writer.close()
            await until(lambda: len(server.connections) == 0)
            assert server.memory.reserved_bytes == 0

    run(main)


def test_a_request_that_comes_byte_by_byte_arrives_whole() -> None:
    async def main() -> None:
        async with served(Scripted(echo)) as server:
            reader, writer = await server.connect()
            for byte in frame(b"drip") + frame(b"drop"):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0)
            assert [await read_frame(reader), await read_frame(reader)] == [b"drip", b"drop"]
            writer.close()

    run(main)


def test_pipelined_requests_are_answered_in_order_even_if_a_later_one_is_ready_first() -> None:
    async def main() -> None:
        waiting: list[asyncio.Future[Answer]] = []

        def answer(request: bytes) -> Answer | Later:
            if request != b"slow":
                return echo(request)
            waiting.append(asyncio.get_running_loop().create_future())
            return Later(waiting[-1], may_be_overtaken=True)

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            writer.write(frame(b"1") + frame(b"slow") + frame(b"2") + frame(b"slow") + frame(b"3"))
            assert await read_frame(reader) == b"1"
            await until(lambda: len(waiting) == 2)
            waiting[1].set_result([frame(b"second slow")])
            await asyncio.sleep(0.01)
            waiting[0].set_result([frame(b"first slow")])
            replies = [await read_frame(reader) for _ in range(4)]
            assert replies == [b"first slow", b"2", b"second slow", b"3"]
            writer.close()

    run(main)


def test_a_request_that_must_not_be_overtaken_holds_back_the_next_one() -> None:
    async def main() -> None:
        seen: list[bytes] = []
        first: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(request: bytes) -> Answer | Later:
            seen.append(request)
            return Later(first, may_be_overtaken=False) if request == b"create" else echo(request)

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            writer.write(frame(b"create") + frame(b"list") + frame(b"x" * 100_000))
            await until(lambda: bool(seen))
            await asyncio.sleep(0.02)
            assert seen == [b"create"]
            first.set_result([frame(b"created")])
            assert [await read_frame(reader), await read_frame(reader)] == [b"created", b"list"]
            assert await read_frame(reader) == b"x" * 100_000
            writer.close()

    run(main)


def test_no_more_than_a_bounded_number_of_requests_is_in_progress() -> None:
    async def main() -> None:
        waiting: list[asyncio.Future[Answer]] = []

        def answer(request: bytes) -> Later:
            waiting.append(asyncio.get_running_loop().create_future())
            return Later(waiting[-1], may_be_overtaken=True)

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            writer.write(b"".join(frame(b"%d" % number) for number in range(500)))
            await until(lambda: len(waiting) == 100)
            await asyncio.sleep(0.02)
            assert len(waiting) == 100
            for number in range(500):
                await until(lambda number=number: len(waiting) > number)  # type: ignore[misc]
                waiting[number].set_result([frame(b"%d" % number)])
                assert await read_frame(reader) == b"%d" % number
            writer.close()

    run(main)


def test_a_client_that_does_not_read_its_replies_is_not_read_from_either() -> None:
    async def main() -> None:
        answered = 0

        def answer(request: bytes) -> Answer:
            nonlocal answered
            answered += 1
            return [frame(b"r" * 100_000)]

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            writer.write(b"".join(frame(b"q") for _ in range(2000)))
            await until(lambda: answered > 20)
            await asyncio.sleep(0.05)
            stuck_at = answered
            assert stuck_at < 1000, "replies to a client that does not read pile up in memory"
            for _ in range(2000):
                assert len(await read_frame(reader)) == 100_000
            assert answered == 2000
            writer.close()

    run(main)


def test_requests_left_over_while_replies_pile_up_are_answered_before_more_are_read() -> None:
    async def main() -> None:
        async with served(Scripted(lambda request: [frame(request * 7000)])) as server:
            reader, writer = await server.connect()
            for _ in range(3):
                writer.write(b"".join(frame(b"%0100d" % number) for number in range(300)))
                await writer.drain()
            for _ in range(3):
                for number in range(300):
                    reply = await read_frame(reader)
                    assert (len(reply), reply[:100]) == (700_000, b"%0100d" % number)

    run(main)


def test_many_small_requests_at_once_let_others_in_between() -> None:
    async def main() -> None:
        seen: list[bytes] = []

        def answer(request: bytes) -> Answer:
            seen.append(request)
            return echo(request)

        async with served(Scripted(answer)) as server:
            _, greedy = await server.connect()
            reader, writer = await server.connect()
            greedy.write(b"".join(frame(b"greedy") for _ in range(6000)))
            writer.write(frame(b"modest"))
            assert await read_frame(reader) == b"modest"
            assert seen.index(b"modest") < 1000
            await until(lambda: len(seen) == 6001)

    run(main)


def test_an_answer_to_hang_up_comes_after_the_replies_before_it() -> None:
    async def main() -> None:
        first: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(request: bytes) -> Answer | Later:
            return Later(first, may_be_overtaken=True) if request == b"good" else HangUp("bad")

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            writer.write(frame(b"good") + frame(b"bad") + frame(b"never looked at"))
            await asyncio.sleep(0.02)
            first.set_result([frame(b"fine")])
            assert await read_frame(reader) == b"fine"
            assert await reader.read() == b""
            writer.close()

    run(main)


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
            await asyncio.sleep(0.02)
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


def test_waiting_answers_are_cancelled_when_the_client_goes() -> None:
    async def main() -> None:
        waiting: list[asyncio.Future[Answer]] = []

        def answer(request: bytes) -> Later:
            waiting.append(asyncio.get_running_loop().create_future())
            return Later(waiting[-1], may_be_overtaken=True)

        async with served(Scripted(answer)) as server:
            _, writer = await server.connect()
            writer.write(frame(b"poll"))
            await until(lambda: bool(waiting))
            writer.close()
            await until(lambda: waiting[0].cancelled())
            assert len(server.connections) == 0

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


def test_only_connections_that_are_silent_for_too_long_are_closed_as_idle() -> None:
    async def main() -> None:
        polling: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(request: bytes) -> Answer | Later:
            return Later(polling, may_be_overtaken=True) if request == b"poll" else echo(request)

        async with served(Scripted(answer), ConnectionLimits(idle_ms_max=1000)) as server:
            idle, idle_writer = await server.connect()
            waiting, waiting_writer = await server.connect()
            waiting_writer.write(frame(b"poll"))
            await until(lambda: len(server.connections) == 2)
            await asyncio.sleep(0.02)
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


def test_a_reply_of_files_and_bytes_arrives_byte_for_byte(tmp_path: Path) -> None:
    content = os.urandom(5_000_000)
    (tmp_path / "log").write_bytes(content)
    file = LocalDisk().open(str(tmp_path / "log"))

    async def main() -> None:
        cuts = [(0, 1), (1, 8192), (9000, 8193), (20_000, 3_000_000), (4_999_999, 1)]
        expected = b"".join(b"head" + content[at : at + length] for at, length in cuts)

        def answer(request: bytes) -> Answer:
            parts: list[Any] = [struct.pack(">i", len(expected))]
            for at, length in cuts:
                parts += [b"head", FileSlice(file, at, length)]
            return parts

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            for _ in range(3):
                writer.write(frame(b"a") + frame(b"b"))
                assert await read_frame(reader) == expected
                assert await read_frame(reader) == expected
            writer.close()

    run(main)


def test_a_bulk_reader_and_a_stuck_reader_do_not_hold_up_a_small_request(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(50_000_000))
    file = LocalDisk().open(str(tmp_path / "log"))

    async def main() -> None:
        def answer(request: bytes) -> Answer:
            if request == b"bulk":
                return [struct.pack(">i", 50_000_000), FileSlice(file, 0, 50_000_000)]
            return echo(request)

        async with served(Scripted(answer)) as server:
            _, stuck = await server.connect()
            stuck.write(frame(b"bulk"))
            bulk_reader, bulk = await server.connect()
            bulk.write(frame(b"bulk"))
            reader, writer = await server.connect()
            received = 0
            for number in range(50):
                writer.write(frame(b"%d" % number))
                assert await read_frame(reader) == b"%d" % number
                received += len(await bulk_reader.read(2**20))
            assert received < 50_000_004, "the small requests were answered only after the bulk reply"
            while received < 50_000_004:
                received += len(await bulk_reader.read(2**20))
            for each in (stuck, bulk, writer):
                each.transport.abort()

    run(main)


def test_cold_records_are_read_by_a_thread_while_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(300_000)
    (tmp_path / "log").write_bytes(content)
    file = LocalDisk().open(str(tmp_path / "log"))
    monkeypatch.setattr(outbound, "is_warm", lambda *_: False)
    monkeypatch.setattr(outbound, "read_if_warm", lambda *_: None)
    release = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    read_through = cold_reads._read_through

    def slow_disk(*where: int) -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loops[0]).result(10)
        read_through(*where)

    monkeypatch.setattr(cold_reads, "_read_through", slow_disk)

    async def main() -> None:
        loops.append(asyncio.get_running_loop())

        def answer(request: bytes) -> Answer:
            if request == b"cold":
                cut = FileSlice(file, 0, 200_000), FileSlice(file, 200_000, 5000)
                return [struct.pack(">i", 205_000), *cut]
            return echo(request)

        async with served(Scripted(answer)) as server:
            cold_reader, cold = await server.connect()
            cold.write(frame(b"cold"))
            reader, writer = await server.connect()
            for _ in range(10):
                writer.write(frame(b"hot"))
                assert await read_frame(reader) == b"hot"
            release.set()
            assert await read_frame(cold_reader) == content[:205_000]
            for each in (cold, writer):
                each.close()

    run(main)


def test_a_file_cut_short_under_a_promised_reply_closes_the_connection(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bytes(20_000))
    file = LocalDisk().open(str(tmp_path / "log"))

    async def main() -> None:
        promised = iter([FileSlice(file, 0, 30_000), FileSlice(file, 19_990, 20)])

        def answer(request: bytes) -> Answer:
            part = next(promised)
            return [struct.pack(">i", part.length), part]

        async with served(Scripted(answer)) as server:
            for _ in range(2):
                reader, writer = await server.connect()
                writer.write(frame(b"read"))
                await asyncio.wait_for(reader.read(), 10)

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
