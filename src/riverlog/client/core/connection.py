"""One connection to a broker without the socket: bytes and what happened to it go in, events come out.

A driver opens a transport, calls `start`, and from then on moves bytes: what `to_send` gives goes out and is
counted by `sent`; what comes in is put into `room` and counted by `received`, or given to `receive`. First
the versions are negotiated (ApiVersions), then `Login` has its steps, if there is one; `Opened` says that
requests can be made. A broker answers in the order of the requests: a reply to anything but the oldest one
ends the connection. When it ends, each request without a reply is told what that means for it.
No clock: how long to wait for a reply is the driver's business, which calls `lost` when it has waited enough.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from riverlog.client.core.events import Closed, Event, Opened, Outcome, Replied, Request, Tag, Unanswered
from riverlog.client.core.frames import FrameError, Frames
from riverlog.client.core.versions import NEGOTIATION_VERSION, ServedVersions, UnsupportedApiError
from riverlog.model.disk import ReadableBuffer
from riverlog.model.errors import ErrorCode, RiverlogError
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import RequestHeader, decode_response_header, encode_request
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.schema import Message

_SIZE_BYTES: Final = 4
_PIECES_AT_ONCE: Final = 512
"""Fewer than any system takes in one call."""
_CORRELATION_IDS: Final = 1 << 31

_AnyTag = TypeVar("_AnyTag")


@dataclass(frozen=True, slots=True)
class ClientLimits:
    reply_bytes_max: int = 64 * 1024 * 1024
    request_bytes_max: int = (1 << 31) - 1
    """What the size of a frame can say. A broker may allow less, and hangs up then."""
    in_flight_max: int = 100
    reused_bytes_max: int = 0
    """How much memory is kept for large replies. Where there is any, a reply is valid only until its outcome
    has been told."""


LIMITS: Final = ClientLimits()


class RequestTooLarge(RiverlogError):  # noqa: N818 - named for what it is
    """The request cannot be sent in one frame."""


class LoginRefused(RiverlogError):  # noqa: N818 - named for what it is
    """The broker does not take our credentials."""


class LoginStep(NamedTuple):
    key: ApiKey
    request: Message


class Login(Protocol):
    """The authentication between the negotiation of versions and the first request; as pure as the rest."""

    def step(self, reply: Any | None) -> LoginStep | None:
        """What to send after this reply, None at the beginning; None when the broker has let us in."""
        ...


class _State(Enum):
    NEW = "nothing was sent"
    NEGOTIATING = "the broker was asked for its versions"
    LOGGING_IN = "the broker was sent a step of the login"
    OPEN = "requests can be made"
    CLOSED = "of no more use"


class ConnectionCore(Generic[Tag]):
    def __init__(self, client_id: str, *, limits: ClientLimits = LIMITS, login: Login | None = None) -> None:
        self._client_id = client_id
        self._limits = limits
        self._login = login
        self._state = _State.NEW
        self._versions: ServedVersions | None = None
        self._opening: Request[None] | None = None
        self._in_flight: deque[Request[Tag]] = deque()
        self._last_correlation_id = 0
        self._frames = Frames(limits.reply_bytes_max, limits.reused_bytes_max)
        self._outgoing: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._sent_bytes = 0

    @property
    def is_new(self) -> bool:
        return self._state is _State.NEW

    @property
    def is_closed(self) -> bool:
        return self._state is _State.CLOSED

    @property
    def versions(self) -> ServedVersions:
        assert self._versions is not None, "wait for Opened"
        return self._versions

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def has_room(self) -> bool:
        """Whether another request may be made now."""
        return self._state is _State.OPEN and len(self._in_flight) < self._limits.in_flight_max

    def start(self) -> None:
        assert self._state is _State.NEW
        self._state = _State.NEGOTIATING
        self._send_opening(ApiKey.API_VERSIONS, NEGOTIATION_VERSION, ApiVersionsRequest())

    # Requests.

    def request(
        self, key: ApiKey, message: Message, tag: Tag, *, version_max: int | None = None
    ) -> Request[Tag]:
        """In the newest version that both sides know. Fields that the version lacks are left out."""
        version = self.versions.newest(key, version_max)
        return self.request_pieces(key, version, tag, lambda header: [encode_request(header, message)])

    def request_pieces(
        self,
        key: ApiKey,
        version: int,
        tag: Tag,
        encode: Callable[[RequestHeader], Sequence[ReadableBuffer]],
    ) -> Request[Tag]:
        """A request whose whole frame the caller encodes, in pieces that are sent without being copied."""
        assert self.has_room, "ask has_room first"
        request = self._queue(key, version, tag, encode)
        self._in_flight.append(request)
        return request

    # Bytes.

    def to_send(self) -> list[memoryview]:
        """What goes out next, in order; empty when there is nothing."""
        return list(islice(self._outgoing, _PIECES_AT_ONCE))

    def sent(self, count: int) -> None:
        """So many bytes of `to_send` are out."""
        self._sent_bytes += count
        outgoing = self._outgoing
        while outgoing and count >= len(outgoing[0]):
            count -= len(outgoing.popleft())
        if count:
            outgoing[0] = outgoing[0][count:]

    def room(self) -> memoryview:
        """Where the next bytes that come in are to be put; never empty."""
        return self._frames.room()

    def received(self, count: int) -> list[Event[Tag]]:
        """So many bytes were put into `room`; none means that the broker has closed its side."""
        if self._state is _State.CLOSED:
            return []
        if not count:
            return self.lost("the broker closed the connection")
        events: list[Event[Tag]] = []
        if not self._frames.received(count):
            return events
        try:
            for data in self._frames.cut():
                self._on_frame(data, events)
        except (FrameError, MalformedMessage, LoginRefused, UnsupportedApiError) as error:
            events += self.lost(str(error))
        return events

    def receive(self, data: ReadableBuffer) -> list[Event[Tag]]:
        """Any bytes that came in, for drivers that have them in a buffer of their own."""
        events: list[Event[Tag]] = []
        rest = memoryview(data)
        while rest and self._state is not _State.CLOSED:
            room = self.room()
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            events += self.received(count)
            rest = rest[count:]
        return events

    def lost(self, reason: str) -> list[Event[Tag]]:
        """The transport failed, or the driver gives it up: what becomes of each request without a reply."""
        if self._state is _State.CLOSED:
            return []
        self._state = _State.CLOSED
        events: list[Event[Tag]] = [Unanswered(each, self._outcome(each)) for each in self._in_flight]
        self._in_flight.clear()
        self._outgoing.clear()
        return [*events, Closed(reason)]

    # What they are made of.

    def _outcome(self, request: Request[Tag]) -> Outcome:
        # A broker acts on whole frames only.
        return Outcome.UNKNOWN if request.end <= self._sent_bytes else Outcome.NOT_SENT

    def _queue(
        self,
        key: ApiKey,
        version: int,
        tag: _AnyTag,
        encode: Callable[[RequestHeader], Sequence[ReadableBuffer]],
    ) -> Request[_AnyTag]:
        correlation_id = (self._last_correlation_id + 1) % _CORRELATION_IDS
        pieces = [memoryview(piece) for piece in encode(self._header(key, version, correlation_id))]
        size = sum(map(len, pieces))
        if size - _SIZE_BYTES > self._limits.request_bytes_max:
            raise RequestTooLarge(
                f"a {APIS[key].name} request of {size - _SIZE_BYTES} bytes cannot be sent; "
                f"at most {self._limits.request_bytes_max} can: send less at once"
            )
        self._last_correlation_id = correlation_id
        self._outgoing += pieces
        self._queued_bytes += size
        return Request(key, version, correlation_id, tag, self._queued_bytes)

    def _header(self, key: ApiKey, version: int, correlation_id: int) -> RequestHeader:
        return RequestHeader(key, version, correlation_id, self._client_id)

    def _send_opening(self, key: ApiKey, version: int, message: Message) -> None:
        self._opening = self._queue(key, version, None, lambda header: [encode_request(header, message)])

    def _on_frame(self, data: memoryview, events: list[Event[Tag]]) -> None:
        if self._opening is not None:
            reply = _reply_to(self._opening, data).message()
            self._opening = None
            self._on_opening_reply(reply, events)
        elif self._in_flight:
            events.append(_reply_to(self._in_flight[0], data))
            self._in_flight.popleft()
        else:
            raise FrameError("the broker answered something that was not asked")

    def _on_opening_reply(self, reply: Any, events: list[Event[Tag]]) -> None:
        if self._state is _State.NEGOTIATING:
            if reply.error_code != ErrorCode.NONE:
                raise FrameError(f"the broker does not tell its versions: error {reply.error_code}")
            self._versions = ServedVersions.of_reply(reply)
            self._state = _State.LOGGING_IN
            reply = None
        step = None if self._login is None else self._login.step(reply)
        if step is not None:
            self._send_opening(step.key, self.versions.newest(step.key), step.request)
            return
        self._state = _State.OPEN
        events.append(Opened(self.versions))


def _reply_to(request: Request[_AnyTag], data: memoryview) -> Replied[_AnyTag]:
    correlation_id, body = decode_response_header(request.key, request.version, data)
    if correlation_id != request.correlation_id:
        raise FrameError("the broker answered something that was not asked")
    return Replied(request, data, body)
