"""Connections that begin here: never blocking, told of once, or not at all when they are given up."""

import asyncio
import contextlib
import errno
import socket as sockets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from riverlog.broker.net.network import AsyncNetwork
from riverlog.model.network import Address, Socket
from riverlog.node.processes.event_loop import loop_factory
from tests.waiting import loop_turns, until

Outcome = Socket | OSError


@contextmanager
def listener(backlog: int = 5) -> Iterator[tuple[sockets.socket, Address]]:
    with sockets.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        yield server, Address("127.0.0.1", server.getsockname()[1])


@pytest.fixture(params=[asyncio.new_event_loop, loop_factory()], ids=["asyncio", "as served"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[None]]], None]:
    def on_loop(main: Callable[[], Awaitable[None]]) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(20):
                await main()

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(bounded())

    return on_loop


Run = Callable[[Callable[[], Awaitable[None]]], None]


async def connected(address: Address) -> Outcome:
    done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    AsyncNetwork().connect(address, done.set_result)
    assert not done.done(), "it is told of later, never at once"
    return await done


async def read(socket: Socket) -> bytes:
    readable = asyncio.Event()
    socket.on_readable(readable.set)
    await readable.wait()
    buffer = bytearray(100)
    return bytes(buffer[: socket.recv_into(memoryview(buffer))])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_both_sides_talk_when_it_is_there(run: Run, host: str) -> None:
    async def main() -> None:
        with listener() as (server, (_, port)):
            socket = await connected(Address(host, port))
            assert not isinstance(socket, OSError)
            assert socket.peer == Address("127.0.0.1", port)
            accepted, _ = server.accept()
            with accepted:
                assert socket.send(b"hello") == 5
                assert accepted.recv(100) == b"hello"
                accepted.sendall(b"welcome")
                assert await read(socket) == b"welcome"
            assert await read(socket) == b"", "the other side has closed"
            socket.close()

    run(main)


def test_a_refusal_is_the_outcome(run: Run) -> None:
    with listener() as (_, address):
        pass

    async def main() -> None:
        outcome = await connected(address)
        assert isinstance(outcome, OSError)
        assert outcome.errno == errno.ECONNREFUSED

    run(main)


def test_a_name_that_nobody_has_is_the_outcome_and_the_loop_goes_on_meanwhile(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        loop, asked = asyncio.get_running_loop(), asyncio.Event()

        async def look_up(*_: object, **__: object) -> list[object]:
            asked.set()
            await loop_turns()
            raise sockets.gaierror(sockets.EAI_NONAME, "not known")

        class Names:
            """The loop, but for the names."""

            getaddrinfo = staticmethod(look_up)

            def __getattr__(self, name: str) -> object:
                return getattr(loop, name)

        monkeypatch.setattr(asyncio, "get_running_loop", Names)
        done: list[Outcome] = []
        AsyncNetwork().connect(Address("nobody.invalid", 9092), done.append)
        monkeypatch.undo()
        await asked.wait()
        assert not done
        await until(lambda: done)
        assert isinstance(done[0], sockets.gaierror)

    run(main)


@pytest.mark.parametrize("turns", range(8))
def test_nobody_hears_of_one_that_was_given_up_however_far_it_was(run: Run, turns: int) -> None:
    async def main() -> None:
        done: list[Outcome] = []
        with listener() as (server, address):
            connecting = AsyncNetwork().connect(address, done.append)
            await loop_turns(turns)
            had_come = bool(done)
            connecting.cancel()
            connecting.cancel()
            for each in done:
                assert not isinstance(each, OSError)
                each.close()
            await loop_turns(10)
            assert bool(done) == had_come
            server.settimeout(0)
            # What had reached the listener was closed again, so that nothing is left over on either side.
            with contextlib.suppress(BlockingIOError):
                accepted, _ = server.accept()
                with accepted:
                    accepted.settimeout(10)
                    assert accepted.recv(1) == b""

    run(main)
