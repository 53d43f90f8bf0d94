"""Connections on real sockets: framing, order, backpressure, and clients that vanish."""

import asyncio
import os
import struct

import pytest

from riverlog.broker.exchange.context import Answer, HangUp
from riverlog.broker.net.connection import Later
from tests.broker.sockets import Scripted, echo, frame, read_frame, run, served
from tests.waiting import loop_turns, until


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
                await loop_turns()
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
            await server.have_its_turn()
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
            await server.have_its_turn()
            assert seen == [b"create"]
            first.set_result([frame(b"created")])
            assert [await read_frame(reader), await read_frame(reader)] == [b"created", b"list"]
            assert await read_frame(reader) == b"x" * 100_000
            writer.close()

    run(main)


def test_a_client_that_leaves_during_a_wait_is_noticed_and_the_wait_given_up() -> None:
    async def main() -> None:
        waiting: list[asyncio.Future[Answer]] = []

        def answer(request: bytes) -> Later:
            waiting.append(asyncio.get_running_loop().create_future())
            return Later(waiting[-1], may_be_overtaken=request == b"fetch")

        async with served(Scripted(answer)) as server:
            for request in (b"fetch", b"join", b"join and a part of the next"):
                _, writer = await server.connect()
                writer.write(frame(request) + frame(b"x" * 100_000)[: 50_000 * request.endswith(b"next")])
                await until(lambda: len(waiting) == 1)
                writer.close()
                await until(lambda: len(server.connections) == 0)
                assert waiting.pop().cancelled(), request
                assert server.memory.reserved_bytes == 0

    run(main)


def test_while_a_request_holds_back_the_others_one_more_is_read_and_none_begun() -> None:
    async def main() -> None:
        seen: list[bytes] = []
        first: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def answer(request: bytes) -> Answer | Later:
            seen.append(request)
            return Later(first, may_be_overtaken=False) if request == b"join" else echo(request[:4])

        async with served(Scripted(answer)) as server:
            reader, writer = await server.connect()
            writer.write(frame(b"join"))
            await until(lambda: len(seen) == 1)
            sent = 0
            while sent < 200 and writer.transport.get_write_buffer_size() == 0:
                writer.write(frame(b"%04d" % sent + b"x" * 1_000_000))
                sent += 1
                await server.have_its_turn(rounds=1)
            assert 0 < sent < 200, "the client feels that it is not read"
            assert seen == [b"join"]
            first.set_result([frame(b"joined")])
            replies = [await read_frame(reader) for _ in range(sent + 1)]
            assert replies == [b"joined", *(b"%04d" % number for number in range(sent))]
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
            await server.have_its_turn()
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
            await server.have_its_turn(rounds=1000)
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
            await server.have_its_turn()
            first.set_result([frame(b"fine")])
            assert await read_frame(reader) == b"fine"
            assert await reader.read() == b""
            writer.close()

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
