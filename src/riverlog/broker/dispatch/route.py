"""What a route is: an API, the handler that answers it, what it needs, how its bytes are read and written.

The list of them all is in `routes`. A handler of another request is an error of types.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from riverlog.broker.exchange.context import Parts, RequestContext
from riverlog.broker.exchange.origin import Origin, Template
from riverlog.broker.exchange.outcome import Outcome
from riverlog.model.pieces import Pieces
from riverlog.model.rights import Rights
from riverlog.wire.apis import Api, api_of
from riverlog.wire.by_hand.produce_request import SingleBatch
from riverlog.wire.codec import decode as decode_by_table
from riverlog.wire.codec import decode_in_pieces
from riverlog.wire.framing import RequestHeader, encode_response_in_parts, encode_response_in_pieces
from riverlog.wire.schema import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
Q_contra = TypeVar("Q_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Handler(Protocol[Q_contra, R_co]):
    def handle(self, request: Q_contra, context: RequestContext) -> Outcome[R_co]:
        """The request may point into the receive buffer: what is needed after the return is copied."""
        ...


Decode = Callable[[memoryview, int, int], Any]
Encode = Callable[[int, int, Any], Parts]
DecodeInPieces = Callable[[memoryview, int, int], Pieces[Any]]
EncodeInPieces = Callable[[int, int, Any], Pieces[Parts]]


class MakeTemplate(Protocol):
    def __call__(
        self, frame: memoryview, header: RequestHeader, body: int, request: SingleBatch, origin: Origin
    ) -> Template | None:
        """How repetitions of a request are answered; None if each must be looked at.

        `body` is where the body begins in the frame that `header` and `request` were decoded from."""
        ...


@dataclass(frozen=True, slots=True)  # Read at every request: slots are quicker than a tuple's names.
class Route(Generic[Q, R]):
    api: Api
    handler: Handler[Q, R]
    needs: Rights
    decode: Decode
    encode: Encode
    decode_in_pieces: DecodeInPieces
    """For long requests."""
    is_long_by_bytes: bool
    """Otherwise `decode` says by `LongMessageError` which ones are: many bytes may be few records."""
    encode_in_pieces: EncodeInPieces
    """For responses that were made in pieces."""
    served_version_min: int
    """Versions from `api.min_version` up to here are advertised but close the connection when used."""
    may_be_overtaken: bool
    """Its effect is complete when `handle` returns, so later requests may start while it waits."""
    make_template: MakeTemplate | None
    """For an API whose requests are often like one another."""


AnyRoute = Route[Any, Any]


def route(
    request: type[Q],
    handler: Handler[Q, R],
    needs: Rights,
    *,
    decode: Decode | None = None,
    served_version_min: int | None = None,
    may_be_overtaken: bool = False,
    make_template: MakeTemplate | None = None,
) -> Route[Q, R]:
    """`decode` is given where requests of one partition are read by hand, not by their table."""
    api = api_of(request)
    return Route(
        api,
        handler,
        needs,
        decode or _by_table(request),
        partial(encode_response_in_parts, int(api.key)),
        _by_table_in_pieces(request),
        decode is None,
        partial(encode_response_in_pieces, int(api.key)),
        api.min_version if served_version_min is None else served_version_min,
        may_be_overtaken,
        make_template,
    )


def _by_table(request: type[Message]) -> Decode:
    def decode_body(data: memoryview, version: int, start: int) -> Any:
        message, _ = decode_by_table(request, version, data, start)
        return message

    return decode_body


def _by_table_in_pieces(request: type[Message]) -> DecodeInPieces:
    def decode_body(data: memoryview, version: int, start: int) -> Pieces[Any]:
        message, _ = yield from decode_in_pieces(request, version, data, start)
        return message

    return decode_body
