"""What a route is: an API, the handler that answers it, and how its bytes are read and written.

The list of them all is in `routes`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from riverlog.broker.context import HangUp, Parts, Repeated, RequestContext
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.codec import decode
from riverlog.wire.framing import encode_response
from riverlog.wire.hot_produce import SingleBatch
from riverlog.wire.repeated_produce import RepeatedProduce


class Handler(Protocol):
    """`handle` returns the response, or the parts of its frame if it has encoded it itself, an awaitable of
    the response (or `InOrder`), `Postponed`, `HangUp`, or None for no reply.

    The request may point into the receive buffer: whatever is needed after `handle` has returned is copied.
    """

    def handle(self, request: Any, context: RequestContext) -> Any | Awaitable[Any] | HangUp | None: ...


Decode = Callable[[memoryview, int, int], Any]
Encode = Callable[[int, int, Any], Parts]
Repeat = Callable[[RepeatedProduce, SingleBatch], Repeated | None]


@dataclass(frozen=True, slots=True)  # Read at every request: slots are quicker than a tuple's names.
class Route:
    api: Api
    handler: Handler
    decode: Decode
    encode: Encode
    served_version_min: int
    """Versions from `api.min_version` up to here are advertised but close the connection when used."""
    may_be_overtaken: bool
    """Its effect is complete when `handle` returns, so later requests may start while it waits."""
    repeat: Repeat | None = None
    """For an API whose requests are often like one another: how such requests are answered."""


def route(
    key: ApiKey,
    handler: Handler,
    *,
    decode: Decode | None = None,
    encode: Encode | None = None,
    served_version_min: int | None = None,
    may_be_overtaken: bool = False,
    repeat: Repeat | None = None,
) -> Route:
    api = APIS[key]
    return Route(
        api,
        handler,
        decode or _by_table(api),
        encode or _to_frame(api),
        api.min_version if served_version_min is None else served_version_min,
        may_be_overtaken,
        repeat,
    )


def _by_table(api: Api) -> Decode:
    def decode_body(data: memoryview, version: int, start: int) -> Any:
        message, _ = decode(api.request, version, data, start)
        return message

    return decode_body


def _to_frame(api: Api) -> Encode:
    def encode_frame(version: int, correlation_id: int, message: Any) -> Parts:
        return [encode_response(api.key, version, correlation_id, message)]

    return encode_frame
