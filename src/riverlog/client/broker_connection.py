"""The blocking driver of one plain connection to a broker, on the pure `core.connection`.

`Transport` moves the bytes of any core and waits; `BrokerConnection` asks one thing at a time, or sends
several questions and takes their answers in the same order. Each wait for
bytes has an end. An `OSError` is a connection that failed; after any exception but a refusal to send
(`UnsupportedApiError`, `RequestTooLarge`) the connection is of no more use. Not here: TLS and SASL.
"""

import socket
from collections import deque
from types import TracebackType
from typing import Any, Generic, Self

from riverlog.client.core.connection import LIMITS, ClientLimits, ConnectionCore
from riverlog.client.core.events import Closed, Event, Opened, Replied, Tag, Unanswered
from riverlog.client.core.versions import VersionRange
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import encode_request
from riverlog.wire.schema import Message


class Transport(Generic[Tag]):
    """A socket and the core that says what goes over it."""

    def __init__(
        self, address: Address, *, timeout_s: float, client_id: str, limits: ClientLimits = LIMITS
    ) -> None:
        self.core: ConnectionCore[Tag] = ConnectionCore(client_id, limits=limits)
        self._arrived: deque[Event[Tag]] = deque()
        self._socket = socket.create_connection(address, timeout_s)

    @property
    def outstanding(self) -> int:
        """Requests whose outcome `next_reply` has not told yet."""
        return self.core.in_flight + len(self._arrived)

    def open(self) -> None:
        """Negotiate, once; what is served is known afterwards."""
        if self.core.is_closed:
            raise ConnectionError("the connection was lost before")
        if self.core.is_new:
            self.core.start()
            self.send()
            event = self._next_event()
            assert isinstance(event, Opened)

    def send(self) -> None:
        """Return when all that the core has to send is out."""
        try:
            while pieces := self.core.to_send():
                self.core.sent(self._socket.sendmsg(pieces))
        except OSError as error:
            self._arrived += self.core.lost(str(error))
            raise

    def next_reply(self) -> Replied[Tag]:
        """The next one, in the order of the requests; `ConnectionError` when it will not come any more."""
        event = self._next_event()
        assert isinstance(event, Replied)
        return event

    def close(self) -> list[Replied[Tag] | Unanswered[Tag]]:
        """What became of the requests that `next_reply` has not told of, in their order."""
        self._socket.close()
        self._arrived += self.core.lost("closed here")
        told = [each for each in self._arrived if isinstance(each, Replied | Unanswered)]
        self._arrived.clear()
        return told

    def _next_event(self) -> Event[Tag]:
        try:
            while not self._arrived:
                self._arrived += self.core.received(self._socket.recv_into(self.core.room()))
        except OSError as error:
            # A reply that comes later must not be taken for one to the next request.
            self._arrived += self.core.lost(str(error))
            raise
        if isinstance(self._arrived[0], (Unanswered, Closed)):
            # Who asks hears why; what became of the requests stays for `close`.
            raise ConnectionError(next(each.reason for each in self._arrived if isinstance(each, Closed)))
        return self._arrived.popleft()


class BrokerConnection:
    def __init__(self, address: Address, *, timeout_s: float, client_id: str) -> None:
        self._transport: Transport[None] = Transport(address, timeout_s=timeout_s, client_id=client_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def ask(self, key: ApiKey, request: Message, *, version_max: int | None = None) -> Any:
        """The response message of this API. Fields of the request that the version lacks are left out."""
        return self.ask_in_version(key, self.version(key, version_max), request)

    def ask_in_version(self, key: ApiKey, version: int, request: Message) -> Any:
        """As `ask`, for a request that is not the same in each version."""
        self._send(key, version, request)
        return self.answer()

    def send(self, key: ApiKey, request: Message, *, version_max: int | None = None) -> None:
        """As `ask`, without waiting: the answers to what was sent are taken with `answer`, in this order."""
        self._send(key, self.version(key, version_max), request)

    def answer(self) -> Any:
        return self._transport.next_reply().message()

    def _send(self, key: ApiKey, version: int, request: Message) -> None:
        transport = self._transport
        transport.open()
        transport.core.request_pieces(key, version, None, lambda header: [encode_request(header, request)])
        transport.send()

    def served(self, key: ApiKey) -> VersionRange:
        """The first and the last version that the broker serves; the last is before the first when none."""
        self._transport.open()
        return self._transport.core.versions.range_of(key)

    def version(self, key: ApiKey, version_max: int | None = None) -> int:
        """The newest that both sides know."""
        self._transport.open()
        return self._transport.core.versions.newest(key, version_max)
