"""A connection of a simulated client: requests out, replies in, in their order.

No negotiation: the client knows which versions it speaks, so that a run can speak any that the broker serves.
"""

import asyncio
import contextlib
import struct
from collections import deque
from typing import Any, Final

from riverlog.model.network import Address, Network, Socket
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, decode_response_header, encode_request
from riverlog.wire.schema import Message

_SIZE: Final = struct.Struct(">i")
_READ_BYTES: Final = 64 * 1024


class Disconnected(Exception):  # noqa: N818 - named for what it is
    """The connection is gone, or a reply did not come in time: what was asked may be done or not."""


class ClientConnection:
    def __init__(self, socket: Socket, client_id: str) -> None:
        self._socket = socket
        self._client_id = client_id
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._waiting: deque[tuple[int, int, int, asyncio.Future[Any]]] = deque()
        self._correlation_id = 0
        self.is_closed = False
        socket.on_readable(self._receive)

    @classmethod
    async def open(
        cls, network: Network, address: Address, client_id: str, timeout_s: float
    ) -> "ClientConnection":
        made: asyncio.Future[Socket | OSError] = asyncio.get_running_loop().create_future()

        def on_done(outcome: Socket | OSError) -> None:
            if not made.done():
                made.set_result(outcome)

        attempt = network.connect(address, on_done)
        try:
            outcome = await asyncio.wait_for(made, timeout_s)
        except TimeoutError:
            attempt.cancel()
            raise Disconnected("no connection in time") from None
        if isinstance(outcome, OSError):
            raise Disconnected(str(outcome))
        return cls(outcome, client_id)

    async def ask(self, key: ApiKey, version: int, message: Message, timeout_s: float) -> Any:
        """The reply; a connection on which it does not come in time is given up."""
        try:
            return await asyncio.wait_for(self.send(key, version, message), timeout_s)
        except TimeoutError:
            self.close("no reply in time")
            raise Disconnected("no reply in time") from None

    def send(self, key: ApiKey, version: int, message: Message) -> "asyncio.Future[Any]":
        """The future of the reply."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.is_closed:
            answer.set_exception(Disconnected("closed before"))
            return answer
        self._waiting.append((key, version, self._put(key, version, message), answer))
        self._flush()
        return answer

    def send_unanswered(self, key: ApiKey, version: int, message: Message) -> None:
        """A request that has no reply: acks=0."""
        if self.is_closed:
            raise Disconnected("closed before")
        self._put(key, version, message)
        self._flush()

    def close(self, reason: str = "closed") -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._socket.close()
        for _, _, _, answer in self._waiting:
            if not answer.done():
                answer.set_exception(Disconnected(reason))
                answer.exception()
        self._waiting.clear()

    def _put(self, key: ApiKey, version: int, message: Message) -> int:
        self._correlation_id += 1
        header = RequestHeader(key, version, self._correlation_id, self._client_id)
        self._outgoing += encode_request(header, message)
        return self._correlation_id

    def _flush(self) -> None:
        try:
            while self._outgoing:
                taken = self._socket.send(bytes(self._outgoing))
                del self._outgoing[:taken]
            self._socket.on_writable(None)
        except BlockingIOError:
            self._socket.on_writable(self._flush)
        except OSError as error:
            self.close(str(error))

    def _receive(self) -> None:
        try:
            count = self._socket.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(str(error))
            return
        if not count:
            self.close("the broker closed the connection")
            return
        self._incoming += self._buffer[:count]
        self._cut_frames()

    def _cut_frames(self) -> None:
        incoming = self._incoming
        while len(incoming) >= 4:
            (size,) = _SIZE.unpack_from(incoming)
            if len(incoming) < 4 + size:
                return
            frame = bytes(incoming[4 : 4 + size])
            del incoming[: 4 + size]
            self._on_frame(frame)

    def _on_frame(self, frame: bytes) -> None:
        key, version, correlation_id, answer = self._waiting.popleft()
        got, body = decode_response_header(key, version, frame)
        assert got == correlation_id, "replies come in the order of the requests"
        with contextlib.suppress(asyncio.InvalidStateError):
            answer.set_result(decode(APIS[ApiKey(key)].response, version, memoryview(frame), body)[0])
