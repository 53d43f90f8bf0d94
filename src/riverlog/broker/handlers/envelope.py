"""Envelope 0: a client's request that another broker has sent on, because this one is the controller.

Taken on the inter-broker listener only, and advertised to nobody. The request inside is answered as if the
client had asked this broker; its reply goes back in the envelope's. Leaves out: the client's principal, which
is empty while there is no authentication.
"""

import inspect
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from riverlog.broker.exchange.context import HangUp, Parts, RequestContext
from riverlog.broker.exchange.origin import Origin
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.wire.apis import Api
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import decode_request_header
from riverlog.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

_SIZE_BYTES: Final = 4


class Enveloped(Protocol):
    """What may be in an envelope: a route."""

    @property
    def api(self) -> Api: ...
    @property
    def handler(self) -> Any: ...
    @property
    def decode(self) -> Callable[[memoryview, int, int], Any]: ...
    @property
    def encode(self) -> Callable[[int, int, Any], Parts]: ...


class EnvelopeHandler:
    def __init__(
        self, routes: Mapping[int, Enveloped], is_controller: Callable[[], bool], inter_broker_listener: str
    ) -> None:
        """`routes` are those that may be in an envelope."""
        self._routes = routes
        self._is_controller = is_controller
        self._listener = inter_broker_listener

    async def handle(self, request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
        if context.listener_name != self._listener:
            return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if not self._is_controller():
            return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
        frame = memoryview(bytes(request.request_data))
        try:
            header, start = decode_request_header(frame)
            route = self._routes.get(header.api_key)
            if route is None:
                return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
            if not route.api.min_version <= header.api_version <= route.api.max_version:
                return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            inner = route.decode(frame, header.api_version, start)
        except MalformedMessage:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        origin = Origin(_address(request.client_host_address), context.listener_name, is_forwarded=True)
        answer = route.handler.handle(inner, RequestContext(header, origin))
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, HangUp):
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        parts = route.encode(header.api_version, header.correlation_id, answer)
        data = b"".join(bytes(part) for part in parts if isinstance(part, bytes | bytearray | memoryview))
        return EnvelopeResponse(response_data=data[_SIZE_BYTES:])


def _address(packed: bytes) -> Address:
    try:
        return Address(str(ipaddress.ip_address(bytes(packed))), 0)
    except ValueError:
        return Address("", 0)
