"""The network of a broker of which single connections to other brokers can be cut.

Only what the broker opens itself: its clients are not touched. A connection that is cut reads as ended, and a
new one is refused as by a router that knows no way, until it is healed. Everything runs on the broker's loop.
"""

import asyncio
import errno
import os
from collections.abc import Callable, Collection

from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.model.network import Address, Connecting, Listening, Network, Socket


class CuttableNetwork:
    """The network port, around the real one."""

    def __init__(self, inner: Network) -> None:
        self._inner = inner
        self._unreachable: frozenset[Address] = frozenset()
        self._links: set[_Link] = set()

    def listen(self, address: Address, on_accept: Callable[[Socket], None]) -> Listening:
        return self._inner.listen(address, on_accept)

    def own_host(self, *, is_ipv6: bool) -> str:
        return self._inner.own_host(is_ipv6=is_ipv6)

    def connect(self, address: Address, on_done: Callable[[Socket | OSError], None]) -> Connecting:
        if address in self._unreachable:
            error = OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))
            return asyncio.get_running_loop().call_soon(on_done, error)

        def take(outcome: Socket | OSError) -> None:
            if isinstance(outcome, OSError):
                on_done(outcome)
                return
            link = _Link(address, outcome, self._links.discard)
            self._links.add(link)
            on_done(link)
            if address in self._unreachable:
                link.cut()

        return self._inner.connect(address, take)

    def cut(self, addresses: Collection[Address]) -> None:
        """From now on exactly these cannot be reached."""
        self._unreachable = frozenset(addresses)
        for link in [each for each in self._links if each.address in self._unreachable]:
            link.cut()


class _Link:
    """A socket to another broker."""

    def __init__(self, address: Address, inner: Socket, on_close: Callable[["_Link"], None]) -> None:
        self.address = address
        self._inner = inner
        self._on_close = on_close
        self._is_cut = False
        self._on_readable: Callable[[], None] | None = None

    @property
    def peer(self) -> Address:
        return self._inner.peer

    def cut(self) -> None:
        self._is_cut = True
        if self._on_readable is not None:
            self._on_readable()

    def recv_into(self, buffer: memoryview, /) -> int:
        return 0 if self._is_cut else self._inner.recv_into(buffer)

    def send(self, data: ReadableBuffer, /) -> int:
        if self._is_cut:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        return self._inner.send(data)

    def send_more(self, data: ReadableBuffer) -> int:
        return self.send(data)

    def sendfile(self, file: DiskFile, position: int, length: int) -> int:
        return self.send(file.pread(length, position))

    def expect_long_replies(self) -> None:
        self._inner.expect_long_replies()

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._on_readable = callback
        self._inner.on_readable(callback)

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self._inner.on_writable(callback)

    def close(self) -> None:
        self._on_readable = None
        self._on_close(self)
        self._inner.close()

    def reset(self) -> None:
        self._on_readable = None
        self._on_close(self)
        self._inner.reset()
