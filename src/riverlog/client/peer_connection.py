"""The event-loop driver of one connection to a broker, on the network port and the pure `core.connection`.

`open` connects and negotiates; then requests are made, several on the way at a time, and each is told its
outcome: the reply, in the order of the requests, or that there is none any more. No request takes a task or a
timer of its own. Who makes requests asks `has_room` first, which bounds them. A request that is not answered
in time ends the connection, as a later reply could not be told from others; connecting again is left to the
owner. Not here: which broker to ask, trying again, TLS and SASL.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from riverlog.client.core.connection import LIMITS, ClientLimits, ConnectionCore, Login
from riverlog.client.core.events import Closed, Event, Opened, Outcome, Replied, Unanswered
from riverlog.client.core.versions import ServedVersions
from riverlog.client.earliest_timer import EarliestTimer
from riverlog.model.disk import ReadableBuffer
from riverlog.model.network import Address, Connecting, Network, Socket
from riverlog.wire.apis import ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import RequestHeader
from riverlog.wire.schema import Message

_READS_PER_TURN: Final = 16


class _Asked(NamedTuple):
    on_outcome: "OnOutcome"
    deadline_s: float


OnOutcome: TypeAlias = Callable[[Replied[_Asked] | Unanswered[_Asked]], None]


class UnansweredError(ConnectionError):
    """The reply will not come; `outcome` says what the broker may have done."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(f"{reason}: {outcome.value}")
        self.outcome = outcome


class PeerConnection:
    def __init__(
        self,
        network: Network,
        address: Address,
        *,
        client_id: str,
        timeout_s: float,
        limits: ClientLimits = LIMITS,
        login: Login | None = None,
        on_closed: Callable[[str], None] | None = None,
    ) -> None:
        """`timeout_s` bounds the opening as a whole, and each request that names no other time. `on_closed`
        hears once why a connection that was open is of no more use, unless it was closed here."""
        self.address = address
        self._core: ConnectionCore[_Asked] = ConnectionCore(client_id, limits=limits, login=login)
        self._network = network
        self._timeout_s = timeout_s
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[ServedVersions] | None = None
        self._connecting: Connecting | None = None
        self._socket: Socket | None = None
        self._timer = EarliestTimer(self._loop)
        self._is_watching = False
        self._waiting: deque[_Asked] = deque()
        self._events: deque[Event[_Asked]] = deque()
        self._is_telling = False
        self._reason = ""

    @property
    def is_closed(self) -> bool:
        return self._core.is_closed

    @property
    def has_room(self) -> bool:
        """Whether another request may be made now."""
        return self._core.has_room

    @property
    def in_flight(self) -> int:
        return self._core.in_flight

    @property
    def versions(self) -> ServedVersions:
        return self._core.versions

    def open(self) -> "asyncio.Future[ServedVersions]":
        """Once. Fails with an `OSError`: that of the connection, or `ConnectionError` with the reason."""
        assert self._opened is None, "a connection is opened once"
        self._opened = self._loop.create_future()
        self._timer.ring_by(self._loop.time() + self._timeout_s, self._on_timer)
        self._connecting = self._network.connect(self.address, self._on_connected)
        return self._opened

    def request(
        self,
        key: ApiKey,
        message: Message,
        on_outcome: OnOutcome,
        *,
        version_max: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """`on_outcome` is called once, later. Raises `UnsupportedApiError` and `RequestTooLarge`, which leave
        the connection as it was."""
        asked = self._asked(on_outcome, timeout_s)
        self._core.request(key, message, asked, version_max=version_max)
        self._send(asked)

    def request_pieces(
        self,
        key: ApiKey,
        version: int,
        encode: Callable[[RequestHeader], Sequence[ReadableBuffer]],
        on_outcome: OnOutcome,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """As `request`, for a frame that the caller encodes, in pieces that are sent without being copied."""
        asked = self._asked(on_outcome, timeout_s)
        self._core.request_pieces(key, version, asked, encode)
        self._send(asked)

    def ask(
        self, key: ApiKey, message: Message, *, version_max: int | None = None, timeout_s: float | None = None
    ) -> "asyncio.Future[Any]":
        """The response message; fails with `UnansweredError`, or `MalformedMessage`, which ends the
        connection. Cancelling it drops the reply when it comes."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self.is_closed:
            answer.set_exception(UnansweredError(Outcome.NOT_SENT, self._reason))
            return answer
        self.request(
            key,
            message,
            lambda outcome: self._settle(answer, outcome),
            version_max=version_max,
            timeout_s=timeout_s,
        )
        return answer

    def close(self) -> None:
        """Requests without a reply are told so. Closing twice is no error."""
        self._on_closed = None
        self._lose("closed here")

    def _asked(self, on_outcome: OnOutcome, timeout_s: float | None) -> _Asked:
        wait_s = self._timeout_s if timeout_s is None else timeout_s
        return _Asked(on_outcome, self._loop.time() + wait_s)

    def _settle(self, answer: "asyncio.Future[Any]", outcome: Replied[_Asked] | Unanswered[_Asked]) -> None:
        if isinstance(outcome, Unanswered):
            if not answer.done():
                answer.set_exception(UnansweredError(outcome.outcome, self._reason))
            return
        try:
            message = outcome.message()
        except MalformedMessage as error:
            if not answer.done():
                answer.set_exception(error)
            self._lose(f"the broker sent what cannot be read: {error}")
            return
        if not answer.done():
            answer.set_result(message)

    # The transport.

    def _on_connected(self, connected: Socket | OSError) -> None:
        self._connecting = None
        if isinstance(connected, OSError):
            assert self._opened is not None
            self._on_closed = None  # It was never open.
            if not self._opened.done():
                self._opened.set_exception(connected)
            self._lose(str(connected))
            return
        self._socket = connected
        connected.on_readable(self._on_readable)
        self._core.start()
        self._flush()

    def _send(self, asked: _Asked) -> None:
        self._waiting.append(asked)
        self._timer.ring_by(asked.deadline_s, self._on_timer)
        if not self._is_watching:
            self._flush()

    def _flush(self) -> None:
        socket, core = self._socket, self._core
        assert socket is not None
        try:
            while pieces := core.to_send():
                for number, piece in enumerate(pieces, 1):
                    sent = socket.send(piece) if number == len(pieces) else socket.send_more(piece)
                    core.sent(sent)
                    if sent < len(piece):
                        break
        except (BlockingIOError, InterruptedError):
            if not self._is_watching:
                self._is_watching = True
                socket.on_writable(self._flush)
            return
        except OSError as error:
            # Not within the call of whoever makes a request, who does not expect its outcome yet.
            self._loop.call_soon(self._lose, error.strerror or str(error))
            return
        if self._is_watching:
            self._is_watching = False
            socket.on_writable(None)

    def _on_readable(self) -> None:
        """A bounded number of reads, so that a peer that has much to say does not hold up the others."""
        socket, core = self._socket, self._core
        assert socket is not None
        for _ in range(_READS_PER_TURN):
            room = core.room()
            try:
                count = socket.recv_into(room)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._lose(error.strerror or str(error))
                return
            self._tell(core.received(count))
            if core.is_closed:
                return
            if not self._is_watching:
                self._flush()  # The next step of the opening, if it is that.
            if count < len(room):
                return

    def _lose(self, reason: str) -> None:
        if self._core.is_closed:
            return
        self._tell(self._core.lost(reason))

    # Time.

    def _on_timer(self) -> None:
        """It is not moved with each reply: when it rings early, it is set for who waits then."""
        assert self._opened is not None
        if not self._opened.done():
            self._lose(f"no connection to {self.address} within {self._timeout_s:g} s")
        elif self._waiting:
            deadline_s = min(each.deadline_s for each in self._waiting)
            if deadline_s <= self._loop.time():
                self._lose(f"{self.address} did not answer in time")
            else:
                self._timer.ring_by(deadline_s, self._on_timer)

    # What happened.

    def _tell(self, events: list[Event[_Asked]]) -> None:
        """In order, also when somebody who is told makes or ends something else meanwhile."""
        for event in events:
            if isinstance(event, Closed):
                self._reason = event.reason
                self._end_transport()
        self._events += events
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._events:
                self._tell_one(self._events.popleft())
        finally:
            self._is_telling = False
            if self._events:
                self._loop.call_soon(self._tell, [])

    def _tell_one(self, event: Event[_Asked]) -> None:
        opened = self._opened
        if isinstance(event, (Replied, Unanswered)):
            self._waiting.popleft()
            event.request.tag.on_outcome(event)
        elif isinstance(event, Opened):
            assert opened is not None
            if not opened.done():
                opened.set_result(event.versions)
        elif opened is not None and not opened.done():
            opened.set_exception(ConnectionError(event.reason))
        elif self._on_closed is not None:
            self._on_closed(event.reason)

    def _end_transport(self) -> None:
        self._timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._socket is not None:
            self._socket.close()
