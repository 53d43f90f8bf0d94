"""What a handler is told about a request beside its body, and the answers that need no message."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, NamedTuple

from riverlog.model.network import Address
from riverlog.model.rights import Principal
from riverlog.wire.framing import RequestHeader
from riverlog.wire.schema import RecordData

if TYPE_CHECKING:
    from riverlog.broker.exchange.origin import Origin

Parts = list[RecordData]
"""A whole reply frame in sending order; slices of files are sent without being copied."""


class RequestContext(NamedTuple):
    header: RequestHeader
    origin: "Origin"

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def principal(self) -> Principal:
        return self.origin.principal

    @property
    def listener_name(self) -> str:
        return self.origin.listener_name

    @property
    def peer(self) -> Address:
        return self.origin.peer


class HangUp(NamedTuple):
    """The handler has no reply that the protocol allows: the connection is closed, as Kafka does."""

    reason: str


Answer = Parts | HangUp | None
"""A reply, a reason to close, or nothing at all (acks=0)."""


class InOrder(NamedTuple):
    """An answer in the making whose effect is still to come: no later request of the connection may start
    before it is there, even where the route lets requests overtake one another."""

    answer: Awaitable[Any]
