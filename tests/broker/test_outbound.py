"""Sending to a socket that takes what it likes: every byte once, nothing asked in vain, bounded turns."""

import asyncio
import os
import socket as sockets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.network import AsyncSocket
from riverlog.broker.net.outbound import Outbound
from riverlog.model.disk import DiskFile, FileSlice, ReadableBuffer
from riverlog.model.network import Address
from riverlog.storage.disk.local import LocalDisk, LocalFile
from riverlog.testing import Broker
from riverlog.wire.schema import RecordData
from tests.broker.raw_client import RawClient, one_record
from tests.waiting import loop_turns

MEGABYTE = 1024**2
FILE_BYTES = 6 * MEGABYTE


class Narrow:
    """A socket with room for so many bytes, and for the next number of them each time it is emptied."""

    def __init__(self, rooms: list[int]) -> None:
        self.peer = Address("127.0.0.1", 1)
        self.received = bytearray()
        self.asked_in_vain = 0
        self.expects_long_replies = 0
        self.turn_bytes = 0
        self.turn_bytes_max: int | None = None
        self._rooms = rooms
        self._room = rooms[0]
        self._emptied = 1
        self.writable: Callable[[], None] | None = None

    def empty(self) -> None:
        """Room again, as the kernel tells whoever watches."""
        self._room = self._rooms[self._emptied % len(self._rooms)]
        self._emptied += 1
        self.turn_bytes = 0
        assert self.writable is not None
        self.writable()

    def send(self, data: ReadableBuffer) -> int:
        return self._take(bytes(data))

    def send_more(self, data: ReadableBuffer) -> int:
        return self._take(bytes(data))

    def sendfile(self, file: DiskFile, position: int, length: int) -> int:
        assert length <= MEGABYTE
        return self._take(file.pread(length, position))

    def expect_long_replies(self) -> None:
        self.expects_long_replies += 1

    def _take(self, data: bytes) -> int:
        if self._room == 0:
            self.asked_in_vain += 1
            raise BlockingIOError
        count = min(len(data), self._room)
        self._room -= count
        self.received += data[:count]
        self.turn_bytes += count
        assert self.turn_bytes_max is None or self.turn_bytes <= self.turn_bytes_max
        return count

    def recv_into(self, buffer: memoryview) -> int:
        raise BlockingIOError

    def on_readable(self, callback: Callable[[], None] | None) -> None: ...

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self.writable = callback

    def close(self) -> None: ...

    def reset(self) -> None: ...


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "log"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


cuts = st.tuples(
    st.integers(0, 3 * MEGABYTE),
    st.sampled_from([1, 5_000, 33_000, 200_000, MEGABYTE, MEGABYTE + 1, 2_900_000]),
)


class Turned(Outbound):
    """Begins to count anew with every turn in which it sends."""

    __slots__ = ()

    def _resume(self) -> None:
        assert isinstance(self._socket, Narrow)
        self._socket.turn_bytes = 0
        super()._resume()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    replies=st.lists(st.lists(cuts, min_size=1, max_size=5), min_size=1, max_size=3),
    rooms=st.lists(st.sampled_from([1, 39, 4_000, 60_000, 261_932, 5_000_000]), min_size=2, max_size=6),
    has_tail=st.booleans(),
    colds=st.lists(st.booleans(), max_size=8),
)
def test_whatever_the_socket_takes_every_byte_goes_once_in_bounded_turns(
    content: Path, replies: list[list[tuple[int, int]]], rooms: list[int], has_tail: bool, colds: list[bool]
) -> None:
    data = content.read_bytes()
    rooms = [*rooms, 5_000_000]  # So that it comes to an end.
    asked = iter(colds)

    def told(_: LocalFile, position: int, length: int) -> bool:
        return not next(asked, False)

    def read(file: LocalFile, length: int, position: int) -> bytes | None:
        return None if next(asked, False) else file.pread(length, position)

    async def main() -> None:
        file, socket, reader = (
            LocalDisk().open(str(content)),
            Narrow(rooms),
            ColdReader(ThreadPoolExecutor(2)),
        )
        socket.turn_bytes_max = 2 * MEGABYTE
        broken: list[str] = []
        out = Turned(socket, reader, on_progress=lambda: None, on_broken=broken.append)
        expected = b""
        for cuts_of_one in replies:
            parts: list[RecordData] = []
            for number, (at, length) in enumerate(cuts_of_one):
                parts += [b"head %d" % number, FileSlice(file, at, length)]
                expected += b"head %d" % number + data[at : at + length]
            if has_tail:
                parts.append(b"\0\0\0")
                expected += b"\0\0\0"
            await loop_turns()  # A connection is read, and so answered, once in a turn.
            socket.turn_bytes = 0
            if not out.queued:
                out.send_now(parts)
            else:
                out.queue(parts)
                out.flush()
        while out.queued:
            if socket.writable is None:
                await loop_turns()  # The next turn, after this one has sent its share.
            else:
                socket.empty()
        assert not broken
        assert socket.received == expected
        assert out.queued_bytes == 0
        assert socket.writable is None

    with patch.object(LocalFile, "is_warm", told), patch.object(LocalFile, "read_if_warm", read):
        asyncio.run(main())


def test_a_socket_that_took_less_than_it_was_given_is_not_asked_again_until_it_has_room(
    content: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = content.read_bytes()
    questions: list[int] = []

    def counted(_: LocalFile, position: int, length: int) -> bool:
        questions.append(position)
        return True

    monkeypatch.setattr(LocalFile, "is_warm", counted)

    async def main() -> None:
        file, socket, reader = (
            LocalDisk().open(str(content)),
            Narrow([261_932]),
            ColdReader(ThreadPoolExecutor(2)),
        )
        out = Outbound(socket, reader, on_progress=lambda: None, on_broken=pytest.fail)
        for slices in (1, 4):
            cuts = [FileSlice(file, number * MEGABYTE, 1_000_000) for number in range(slices)]
            out.send_now([part for cut in cuts for part in (b"head", cut)])
            while out.queued:
                socket.empty()
        one = b"head" + data[:1_000_000]
        assert socket.received[: len(one)] == one
        assert len(socket.received) == 5 * len(one)
        assert socket.asked_in_vain == 0

    asyncio.run(main())
    assert questions == [0, 0, MEGABYTE, 2 * MEGABYTE, 3 * MEGABYTE], "is it in memory? once for each slice"


@pytest.mark.parametrize(
    ("slices", "expects"), [([MEGABYTE], 0), ([MEGABYTE + 1], 1), ([600_000, 600_000], 1)]
)
def test_the_socket_is_told_once_when_a_reply_is_longer_than_a_megabyte(
    content: Path, slices: list[int], expects: int
) -> None:
    async def main() -> None:
        file, socket, reader = (
            LocalDisk().open(str(content)),
            Narrow([5_000_000] * 2),
            ColdReader(ThreadPoolExecutor(2)),
        )
        out = Outbound(socket, reader, on_progress=lambda: None, on_broken=pytest.fail)
        for _ in range(2):
            out.send_now([part for length in slices for part in (b"head", FileSlice(file, 0, length))])
            while out.queued:
                await loop_turns()  # The next turn, after this one has sent its share.
                assert socket.writable is None
        assert socket.expects_long_replies == expects

    asyncio.run(main())


def test_a_size_that_is_configured_stays_whatever_is_read(accepted: list[sockets.socket]) -> None:
    with Broker({"socket.send.buffer.bytes": 300_000}) as broker:
        assert _buffers_around_a_read(broker, accepted, 3) == (600_000, 600_000)


def test_the_kernel_sizes_the_send_buffer_until_a_reply_is_long(accepted: list[sockets.socket]) -> None:
    with Broker() as broker:
        before, after = _buffers_around_a_read(broker, accepted, 3)
        assert after == 2 * 200 * 1024, "Linux doubles what it is asked for, for its own bookkeeping"
        assert before != after
    accepted.clear()
    with Broker() as broker:
        before, after = _buffers_around_a_read(broker, accepted, 1)
        assert after not in (2 * 200 * 1024, 2 * 102_400)


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> list[sockets.socket]:
    found: list[sockets.socket] = []
    start = AsyncSocket.__init__

    def noting(self: AsyncSocket, connection: sockets.socket, *rest: object) -> None:
        start(self, connection, *rest)  # type: ignore[arg-type]
        found.append(connection)

    monkeypatch.setattr(AsyncSocket, "__init__", noting)
    return found


def _buffers_around_a_read(broker: Broker, accepted: list[sockets.socket], megabytes: int) -> tuple[int, int]:
    with RawClient(broker) as client:
        client.create_topic("orders")
        for _ in range(megabytes):
            client.produce("orders", one_record(bytes(700_000)))
        (connection,) = accepted
        before = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF)
        read = client.fetch("orders", 0, max_bytes=10 * MEGABYTE, partition_max_bytes=10 * MEGABYTE)
        assert len(read.records or b"") > megabytes * 700_000
        return before, connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF)
