"""The network port on an asyncio event loop: our own non-blocking sockets with `add_reader`/`add_writer`.

No transports and no streams: they copy bulk data and hide `sendfile` (see ADR 0001). A socket's callbacks
are always removed before its descriptor is closed, so that the loop never polls a descriptor that the
kernel has given to somebody else.
"""

import asyncio
import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.model.network import Address, Connecting, Listening, Socket

_ACCEPTS_PER_TURN = 64
_DESCRIPTORS_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPT_PAUSE_S = 0.5
_MORE = socket.MSG_MORE
_NO_LINGERING = struct.pack("ii", 1, 0)


class AsyncNetwork:
    """Listens and connects on the running event loop."""

    def __init__(
        self,
        *,
        backlog: int = 50,
        send_buffer_bytes: int | None = None,
        long_reply_buffer_bytes: int | None = None,
        receive_buffer_bytes: int | None = None,
    ) -> None:
        self._backlog = backlog
        self._send_buffer_bytes = send_buffer_bytes
        self._long_reply_buffer_bytes = long_reply_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes

    def listen(self, address: Address, on_accept: Callable[[Socket], None]) -> Listening:
        family, _, _, _, resolved = socket.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        loop = asyncio.get_running_loop()
        bound = self._bound(family, resolved)
        return AsyncListening(bound, self._backlog, loop, on_accept, self._long_reply_buffer_bytes)

    def _bound(self, family: int, resolved: Any) -> socket.socket:
        server = socket.socket(family, socket.SOCK_STREAM)
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Buffer sizes are inherited by the accepted sockets, and the window is agreed on at accept.
            if self._send_buffer_bytes is not None:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
            if self._receive_buffer_bytes is not None:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
            server.setblocking(False)
            server.bind(resolved)
        except BaseException:
            server.close()
            raise
        return server

    def connect(self, address: Address, on_done: Callable[[Socket | OSError], None]) -> Connecting:
        return AsyncConnecting(address, asyncio.get_running_loop(), on_done)

    def own_host(self, *, is_ipv6: bool) -> str:
        """The address of the interface that leads to other networks, found without sending anything."""
        family, elsewhere = (socket.AF_INET6, "2001:db8::1") if is_ipv6 else (socket.AF_INET, "192.0.2.1")
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


class AsyncListening:
    def __init__(
        self,
        server: socket.socket,
        backlog: int,
        loop: asyncio.AbstractEventLoop,
        on_accept: Callable[[Socket], None],
        long_reply_buffer_bytes: int | None,
    ) -> None:
        """`server` is bound."""
        self._server = server
        self._loop = loop
        self._on_accept = on_accept
        self._long_reply_buffer_bytes = long_reply_buffer_bytes
        self._resuming: asyncio.TimerHandle | None = None
        host, port = server.getsockname()[:2]
        self._address = Address(host, port)
        try:
            server.listen(backlog)
        except BaseException:
            server.close()
            raise
        loop.add_reader(server.fileno(), self._accept_waiting)

    @property
    def address(self) -> Address:
        return self._address

    def close(self) -> None:
        if self._server.fileno() < 0:
            return
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        self._loop.remove_reader(self._server.fileno())
        self._server.close()

    def _accept_waiting(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                accepted, peer = self._server.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _DESCRIPTORS_EXHAUSTED:
                    self._pause()
                    return
                continue  # The peer has gone between the handshake and the accept.
            self._on_accept(
                AsyncSocket(accepted, Address(peer[0], peer[1]), self._loop, self._long_reply_buffer_bytes)
            )
            if self._server.fileno() < 0:
                return

    def _pause(self) -> None:
        """Out of descriptors: a listener left readable would spin the loop until some are free again."""
        self._loop.remove_reader(self._server.fileno())
        self._resuming = self._loop.call_later(_ACCEPT_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._resuming = None
        self._loop.add_reader(self._server.fileno(), self._accept_waiting)


class AsyncConnecting:
    """Tries the addresses of a name one after the other; the error is that of the last one."""

    def __init__(
        self,
        address: Address,
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[[Socket | OSError], None],
    ) -> None:
        self._loop = loop
        self._on_done: Callable[[Socket | OSError], None] | None = on_done
        self._task = loop.create_task(self._connect(address), name=f"connect to {address}")
        self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        self._on_done = None
        self._task.cancel()

    async def _connect(self, address: Address) -> "AsyncSocket | OSError":
        failure = OSError(errno.EADDRNOTAVAIL, f"{address.host} has no address")
        try:
            found = await self._loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        except OSError as error:
            return error
        for family, kind, protocol, _, resolved in found:
            try:
                return await self._connect_to(socket.socket(family, kind, protocol), resolved)
            except OSError as error:
                failure = error
        return failure

    async def _connect_to(self, connecting: socket.socket, resolved: Any) -> "AsyncSocket":
        try:
            connecting.setblocking(False)
            await self._loop.sock_connect(connecting, resolved)
        except BaseException:
            connecting.close()
            raise
        return AsyncSocket(connecting, Address(*resolved[:2]), self._loop, None)

    def _finish(self, task: "asyncio.Task[AsyncSocket | OSError]") -> None:
        if task.cancelled():
            return
        outcome, on_done = task.result(), self._on_done
        if on_done is not None:
            on_done(outcome)
        elif isinstance(outcome, AsyncSocket):
            outcome.close()  # Cancelled in the turn in which it was there.


class AsyncSocket:
    __slots__ = (
        "_descriptor",
        "_long_reply_buffer_bytes",
        "_loop",
        "_peer",
        "_reading",
        "_socket",
        "_writing",
        "recv_into",
        "send",
    )

    def __init__(
        self,
        connected: socket.socket,
        peer: Address,
        loop: asyncio.AbstractEventLoop,
        long_reply_buffer_bytes: int | None,
    ) -> None:
        connected.setblocking(False)
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket = connected
        self._descriptor = connected.fileno()
        self._peer = peer
        self._loop = loop
        self._long_reply_buffer_bytes = long_reply_buffer_bytes
        self._reading = False
        self._writing = False
        self.recv_into: Callable[[memoryview], int] = connected.recv_into
        self.send: Callable[[ReadableBuffer], int] = connected.send

    @property
    def peer(self) -> Address:
        return self._peer

    def send_more(self, data: ReadableBuffer) -> int:
        return self._socket.send(data, _MORE)

    def sendfile(self, file: DiskFile, position: int, length: int) -> int:
        descriptor = file.fileno()
        if descriptor is None:
            return self.send(file.pread(length, position))
        return os.sendfile(self._descriptor, descriptor, position, length)

    def expect_long_replies(self) -> None:
        if self._long_reply_buffer_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._long_reply_buffer_bytes)

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        if callback is not None:
            self._loop.add_reader(self._descriptor, callback)
            self._reading = True
        elif self._reading:
            self._loop.remove_reader(self._descriptor)
            self._reading = False

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        if callback is not None:
            self._loop.add_writer(self._descriptor, callback)
            self._writing = True
        elif self._writing:
            self._loop.remove_writer(self._descriptor)
            self._writing = False

    def close(self) -> None:
        if self._socket.fileno() < 0:
            return
        self.on_readable(None)
        self.on_writable(None)
        self._socket.close()

    def reset(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.close()
