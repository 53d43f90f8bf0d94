"""The network port: non-blocking sockets with readiness callbacks, as the data path wants them.

A socket reports readiness on the event loop that listens or connects. `recv_into`, `send` and `sendfile`
never block: they raise `BlockingIOError` when nothing can be done now. The first two may be attributes that
can be called, so that they can be the operating system's own.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from riverlog.model.disk import DiskFile, ReadableBuffer


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Socket(Protocol):
    @property
    def peer(self) -> Address: ...

    def recv_into(self, buffer: memoryview, /) -> int:
        """Bytes received; 0 when the peer has closed its side."""
        ...

    def send(self, data: ReadableBuffer, /) -> int:
        """Bytes taken."""
        ...

    def send_more(self, data: ReadableBuffer) -> int:
        """As `send`, when further data follows at once: a small head waits for it."""
        ...

    def sendfile(self, file: DiskFile, position: int, length: int) -> int:
        """Bytes of the file that were taken; 0 when it ends before them."""
        ...

    def expect_long_replies(self) -> None:
        """From now on the peer reads in bulk: what is sent goes in steps that caches can hold."""
        ...

    def on_readable(self, callback: Callable[[], None] | None) -> None: ...

    def on_writable(self, callback: Callable[[], None] | None) -> None: ...

    def close(self) -> None:
        """Stop the callbacks, then close."""
        ...

    def reset(self) -> None:
        """Close so that the peer is told of a broken connection, not of one that has ended."""
        ...


class Listening(Protocol):
    @property
    def address(self) -> Address:
        """The address that is bound, with the port that was really taken."""
        ...

    def close(self) -> None: ...


class Connecting(Protocol):
    def cancel(self) -> None:
        """Give it up: nobody hears of it any more. No error when it has come to its end."""
        ...


class Network(Protocol):
    def listen(self, address: Address, on_accept: Callable[[Socket], None]) -> Listening: ...

    def connect(self, address: Address, on_done: Callable[[Socket | OSError], None]) -> Connecting:
        """Begin a connection and return at once. `on_done` is called once, later, on the event loop, unless
        it is cancelled; whoever waits bounds the time. Names are looked up without blocking either."""
        ...

    def own_host(self, *, is_ipv6: bool) -> str:
        """An address or name under which other machines are likely to reach this one."""
        ...
