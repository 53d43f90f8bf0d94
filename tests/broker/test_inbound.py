"""Receiving after a long request: the next is expected to be as long, and little is held."""

import struct
from collections import deque
from collections.abc import Callable

import pytest

from riverlog.broker.net.inbound import Inbound
from riverlog.broker.net.receive_memory import SCRATCH_BYTES, ReceiveMemory
from riverlog.model.disk import ReadableBuffer
from riverlog.model.network import Address

LONG = 1_000_000


def request(size: int, fill: bytes = b"x") -> bytes:
    return struct.pack(">i", size) + fill * size


class ScriptedSocket:
    """Has these pieces to be received, each in as many turns as there is room for."""

    def __init__(self, arriving: deque[bytes]) -> None:
        self.peer = Address("127.0.0.1", 1)
        self.arriving = arriving

    def recv_into(self, buffer: memoryview) -> int:
        if not self.arriving:
            raise BlockingIOError
        piece = self.arriving.popleft()
        count = min(len(piece), len(buffer))
        buffer[:count] = piece[:count]
        if count < len(piece):
            self.arriving.appendleft(piece[count:])
        return count

    def send(self, data: ReadableBuffer) -> int:
        raise BlockingIOError

    def send_more(self, data: ReadableBuffer) -> int:
        raise BlockingIOError

    def sendfile(self, descriptor: int, position: int, length: int) -> int:
        raise BlockingIOError

    def expect_long_replies(self) -> None: ...

    def on_readable(self, callback: Callable[[], None] | None) -> None: ...

    def on_writable(self, callback: Callable[[], None] | None) -> None: ...

    def close(self) -> None: ...

    def reset(self) -> None: ...


class Counted(ReceiveMemory):
    """Knows what is lent."""

    def __init__(self) -> None:
        super().__init__()
        self.lent_bytes = 0

    def take(self, size_bytes: int) -> bytearray:
        taken = super().take(size_bytes)
        self.lent_bytes += len(taken)
        return taken

    def give_back(self, buffer: bytearray) -> None:
        self.lent_bytes -= len(buffer)
        super().give_back(buffer)


@pytest.fixture
def memory() -> Counted:
    return Counted()


@pytest.fixture
def inbound(memory: Counted) -> Inbound:
    """One that has just handed out a long request."""
    inbound = Inbound(memory, 10 * LONG)
    assert received(inbound, deque([request(LONG)])) == [request(LONG)[4:]]
    assert memory.lent_bytes == 0
    return inbound


def received(inbound: Inbound, arriving: deque[bytes]) -> list[bytes]:
    """The requests that come of these bytes, which arrive in these pieces."""
    socket, frames = ScriptedSocket(arriving), []
    while socket.arriving:
        inbound.fill(socket.recv_into)
        while (frame := inbound.next_frame()) is not None:
            frames.append(bytes(frame))
        assert inbound.settle()
    return frames


@pytest.mark.parametrize("size", [0, 10, SCRATCH_BYTES, LONG - 1, LONG, LONG + 1, 3 * LONG])
@pytest.mark.parametrize("cut", [1, 4, 5, SCRATCH_BYTES, LONG // 2])
def test_whatever_follows_a_long_request_arrives_as_it_was_sent(
    inbound: Inbound, memory: Counted, size: int, cut: int
) -> None:
    both = request(size, b"a") + request(7, b"b")
    assert received(inbound, deque([both[:cut], both[cut:]])) == [b"a" * size, b"b" * 7]
    assert (memory.lent_bytes, memory.reserved_bytes) == (0, 0)


def test_a_long_request_that_arrives_at_once_is_received_at_once(inbound: Inbound, memory: Counted) -> None:
    frame = inbound.receive(ScriptedSocket(deque([request(LONG)])).recv_into)
    assert isinstance(frame, memoryview)
    assert bytes(frame) == request(LONG)[4:]
    assert inbound.own is not None
    frame.release()
    inbound.drop()
    assert memory.lent_bytes == 0


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("size", [0, 10, SCRATCH_BYTES, LONG])
@pytest.mark.parametrize("cut", [1, 4, 5, 13, SCRATCH_BYTES + 3])
def test_what_is_not_one_whole_request_is_left_for_the_long_way(
    inbound: Inbound, memory: Counted, fresh: bool, size: int, cut: int
) -> None:
    inbound = Inbound(memory, 10 * LONG) if fresh else inbound
    both = request(size, b"a") + request(7, b"b")
    socket, frames = ScriptedSocket(deque([both[:cut], both[cut:]])), []
    while socket.arriving:
        came = inbound.receive(socket.recv_into)
        if isinstance(came, memoryview):
            frames.append(bytes(came))
            came.release()
            if inbound.own is not None:
                inbound.drop()
            continue
        while (frame := inbound.next_frame()) is not None:
            frames.append(bytes(frame))
        assert inbound.settle()
    assert frames == [b"a" * size, b"b" * 7]
    assert memory.lent_bytes == 0


@pytest.mark.parametrize("piece", [b"\0", b"\0\0\0", request(300)[:50], request(SCRATCH_BYTES)[:50]])
def test_a_few_bytes_after_a_long_request_hold_little_memory(
    inbound: Inbound, memory: Counted, piece: bytes
) -> None:
    inbound.fill(ScriptedSocket(deque([piece])).recv_into)
    assert inbound.next_frame() is None
    assert inbound.settle()
    assert memory.lent_bytes <= 2 * SCRATCH_BYTES + 4


def test_nothing_there_holds_no_memory(inbound: Inbound, memory: Counted) -> None:
    with pytest.raises(BlockingIOError):
        inbound.fill(ScriptedSocket(deque()).recv_into)
    assert memory.lent_bytes == 0
