"""What a handler is told about a request beside its body, and what it may return instead of a reply."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from riverlog.model.network import Address
from riverlog.wire.framing import RequestHeader
from riverlog.wire.schema import RecordData

Parts = list[RecordData]
"""A whole reply frame in sending order; slices of files are sent without being copied."""

Repeated = Callable[[memoryview], Parts | None]
"""Answers a frame that repeats an earlier one; None, and nothing was done, if it does not."""


class RequestContext(NamedTuple):
    header: RequestHeader
    version: int
    listener_name: str
    peer: Address
    client_id: str | None


class HangUp(NamedTuple):
    """The handler has no reply that the protocol allows: the connection is closed, as Kafka does."""

    reason: str


Answer = Parts | HangUp | None
"""A reply, a reason to close, or nothing at all (acks=0)."""


class InOrder(NamedTuple):
    """An answer in the making whose effect is still to come: no later request of the connection may start
    before it is there, even where the route lets requests overtake one another."""

    answer: Awaitable[Any]
