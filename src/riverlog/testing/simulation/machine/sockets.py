"""A connection between two simulated processes: two flows of bytes with bounded room, and a socket each.

A socket behaves as one of the operating system does: readiness is told again and again while there is
something to do, `send` takes what there is room for, bytes come in pieces that have nothing to do with those
that were sent. A socket of a life that has ended does nothing and tells nothing.
"""

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from typing import Final

from riverlog.model.disk import DiskFile, ReadableBuffer
from riverlog.model.network import Address
from riverlog.testing.simulation.machine.links import Links
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.machine.loop import VirtualLoop

_END: Final = b""


class Flow:
    """One direction: bytes on their way to `target`."""

    __slots__ = (
        "_arrival_s",
        "_held",
        "_links",
        "_loop",
        "_on_the_way",
        "arrived",
        "has_ended",
        "in_flight",
        "source",
        "target",
        "unread",
    )

    def __init__(self, loop: VirtualLoop, links: Links, source: "SimulatedSocket") -> None:
        self._loop, self._links = loop, links
        self.source = source
        self.target = source
        self.arrived: deque[memoryview] = deque()
        self.unread = 0
        self.in_flight = 0
        self.has_ended = False
        self._arrival_s = 0.0
        self._on_the_way: deque[bytes] = deque()
        self._held: deque[bytes] = deque()

    @property
    def room(self) -> int:
        links, source = self._links, self.source
        if links.is_full(source.host, self.target.host):
            links.waiting[source.signal] = None
            return 0
        return links.quality.buffer_bytes - self.in_flight - self.unread

    def put(self, data: bytes) -> None:
        """On the way. Empty data is the end."""
        self.in_flight += len(data)
        loop = self._loop
        delay_s = self._links.delay_s(self.source.host, self.target.host, len(data))
        self._arrival_s = max(self._arrival_s, loop.now_s + delay_s)
        self._on_the_way.append(data)
        loop.at(self._arrival_s, loop.world, self._arrive)

    def resume(self) -> None:
        """Send again what waited for a link that was cut."""
        held, self._held = self._held, deque()
        if held:
            self._arrival_s = max(self._arrival_s, self._loop.now_s + self._links.retransmission_s())
        self._on_the_way.extendleft(reversed(held))
        for _ in held:
            self._loop.at(self._arrival_s, self._loop.world, self._arrive)

    def _arrive(self) -> None:
        """The bytes at the head have come; those that were put first come first."""
        data, target = self._on_the_way.popleft(), self.target
        if (
            self._held
            or self._links.is_cut(self.source.host, target.host)
            or self._links.is_down(target.host)
        ):
            self._held.append(data)
            self._links.waiting[self.resume] = None
            return
        self.in_flight -= len(data)
        if target.is_gone:
            target.refuse()
        elif data:
            self.arrived.append(memoryview(data))
            self.unread += len(data)
            target.signal()
        else:
            self.has_ended = True
            target.signal()


class SimulatedSocket:
    __slots__ = (
        "_error",
        "_inward",
        "_is_signalled",
        "_life",
        "_links",
        "_loop",
        "_on_readable",
        "_on_writable",
        "_outward",
        "_peer",
        "host",
        "is_gone",
        "on_closed",
    )

    def __init__(
        self,
        loop: VirtualLoop,
        links: Links,
        life: Life,
        host: str,
        peer: Address,
        outward: Flow | None = None,
    ) -> None:
        self._loop, self._links, self._life = loop, links, life
        self.host = host
        self._peer = peer
        self._outward = Flow(loop, links, self)
        self._inward = self._outward
        self._on_readable: Callable[[], None] | None = None
        self._on_writable: Callable[[], None] | None = None
        self._error: int | None = None
        self._is_signalled = False
        self.is_gone = False
        """Closed here, or its process has ended."""
        self.on_closed: Callable[[SimulatedSocket], None] = lambda socket: None

    def join(self, other: "SimulatedSocket") -> None:
        """Make the two ends of one connection."""
        self._inward, other._inward = other._outward, self._outward
        self._outward.target, other._outward.target = other, self

    @property
    def peer(self) -> Address:
        return self._peer

    @property
    def other(self) -> "SimulatedSocket":
        return self._outward.target

    @property
    def waiting_bytes(self) -> int:
        return self._inward.unread

    def recv_into(self, buffer: memoryview, /) -> int:
        self._require()
        flow = self._inward
        if not flow.unread:
            if flow.has_ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing has come")
        taken = 0
        while flow.arrived and taken < len(buffer):
            head = flow.arrived[0]
            count = min(len(head), len(buffer) - taken)
            is_cut = self._links.cuts_here()
            if is_cut:
                count = self._links.part_of(count)
            buffer[taken : taken + count] = head[:count]
            taken += count
            if count == len(head):
                flow.arrived.popleft()
            else:
                flow.arrived[0] = head[count:]
            if is_cut:
                break
        flow.unread -= taken
        # The peer hears of the room a moment later.
        if flow.source._on_writable is not None:
            loop = self._loop
            loop.at(
                loop.now_s + self._links.delay_s(self.host, flow.source.host, 0),
                loop.world,
                flow.source.signal,
            )
        return taken

    def send(self, data: ReadableBuffer, /) -> int:
        self._require()
        flow = self._outward
        count = min(len(data), flow.room)
        if count <= 0:
            if not len(data):
                return 0
            raise BlockingIOError(errno.EAGAIN, "no room")
        if self._links.cuts_here():
            count = self._links.part_of(count)
            half = self._links.part_of(count)
            flow.put(bytes(data[:half]))
            if half < count:
                flow.put(bytes(data[half:count]))
        else:
            flow.put(bytes(data[:count]))
        return count

    def send_more(self, data: ReadableBuffer) -> int:
        return self.send(data)

    def sendfile(self, file: DiskFile, position: int, length: int) -> int:
        self._require()
        room = self._outward.room
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "no room")
        data = file.pread(min(length, room), position)
        return self.send(data) if data else 0

    def expect_long_replies(self) -> None:
        pass

    def on_readable(self, callback: Callable[[], None] | None) -> None:
        self._on_readable = callback
        self.signal()

    def on_writable(self, callback: Callable[[], None] | None) -> None:
        self._on_writable = callback
        self.signal()

    def close(self) -> None:
        if self.is_gone:
            return
        has_unread = self._inward.unread > 0
        self._go()
        if has_unread:
            self.refuse()
        elif self._error is None:
            self._outward.put(_END)

    def reset(self) -> None:
        if not self.is_gone:
            self._go()
            self.refuse()

    # For the network.

    def vanish(self) -> None:
        """The process, or its machine, is gone and the peer is not told."""
        if not self.is_gone:
            self._go()

    def fail(self, error: int) -> None:
        """The connection is broken, as this end sees it."""
        if not self.is_gone and self._error is None:
            self._error = error
            self._inward.arrived.clear()
            self._inward.unread = 0
            self.signal()

    def refuse(self) -> None:
        """Tell the peer that nobody is here, if that gets through."""
        peer, loop, links = self.other, self._loop, self._links
        if links.is_cut(self.host, peer.host) or links.is_down(self.host) or links.is_down(peer.host):
            return
        loop.at(loop.now_s + links.delay_s(self.host, peer.host, 0), loop.world, peer.fail, errno.ECONNRESET)

    def signal(self) -> None:
        """Have the callbacks called for which there is something to do."""
        if self._is_signalled or self.is_gone:
            return
        if (self._on_readable is not None and self._is_readable) or (
            self._on_writable is not None and self._is_writable
        ):
            self._is_signalled = True
            self._loop.call_soon(self._tell, context=self._life.context)

    @property
    def _is_readable(self) -> bool:
        flow = self._inward
        return flow.unread > 0 or flow.has_ended or self._error is not None

    @property
    def _is_writable(self) -> bool:
        return self._outward.room > 0 or self._error is not None

    def _tell(self) -> None:
        self._is_signalled = False
        try:
            if self._on_readable is not None and self._is_readable:
                self._on_readable()
            if self._on_writable is not None and self._is_writable:
                self._on_writable()
        finally:
            self.signal()

    def _go(self) -> None:
        self.is_gone = True
        self._on_readable = self._on_writable = None
        self._inward.arrived.clear()
        self._inward.unread = 0
        self.on_closed(self)

    def _require(self) -> None:
        if self.is_gone:
            raise OSError(errno.EBADF, "the socket is closed")
        if self._error is not None:
            raise OSError(self._error, os.strerror(self._error))


class Attempt:
    """A connection in the making."""

    __slots__ = ("_waiting", "is_over", "made")

    def __init__(self) -> None:
        self.is_over = False
        self.made: SimulatedSocket | None = None
        """What the caller has not been given yet."""
        self._waiting: asyncio.Handle | None = None

    def wait(self, handle: asyncio.Handle) -> None:
        self._waiting = handle

    def cancel(self) -> None:
        self.is_over = True
        if self._waiting is not None:
            self._waiting.cancel()
        if self.made is not None:
            self.made.close()
