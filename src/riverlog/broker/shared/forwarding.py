"""Requests that only the controller can carry out, sent on to it by whichever broker was asked (KIP-590).

The client's request goes in an Envelope, with its address, and the controller's reply comes back as it is. A
controller that is not one any more, or cannot be reached, is looked for again until the request's time is
over. Where this broker is the controller itself, nothing is sent. Not here: what the requests mean.
"""

import asyncio
import ipaddress
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar, cast

from riverlog.broker.exchange.context import Parts, RequestContext
from riverlog.broker.exchange.outcome import Outcome
from riverlog.client.core.connection import RequestTooLarge
from riverlog.client.core.versions import UnsupportedApiError
from riverlog.client.peer_connection import UnansweredError
from riverlog.client.peers import Peers
from riverlog.metadata.follower import MetadataFollower
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId, client_id_of_broker
from riverlog.model.network import Address
from riverlog.wire.apis import ApiKey, api_of
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, decode_response_header, encode_request
from riverlog.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from riverlog.wire.schema import Message

_SIZE: Final = struct.Struct(">i")
_PAUSE_S: Final = 0.05
_NOWHERE: Final = Address("", 0)
R = TypeVar("R", bound=Message)


class Office(Protocol):
    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller now."""
        ...


class Forwarding:
    def __init__(
        self, office: Office, follower: MetadataFollower, peers: Peers, node_id: NodeId, *, timeout_s: float
    ) -> None:
        """`timeout_s` is for requests that say nothing about their time."""
        self._office = office
        self._follower = follower
        self._peers = peers
        self._client_id = client_id_of_broker(node_id)
        self._node_id = node_id
        self.timeout_s = timeout_s

    @property
    def is_here(self) -> bool:
        """Whether this broker is the controller."""
        return self._office.is_active

    async def ask(self, request: Message, reply: type[R]) -> R | None:
        """The controller's reply to a request of this broker's own, in its newest version. None when the time
        is over, or when this broker has become the controller."""
        api = api_of(type(request))
        header = RequestHeader(api.key, api.max_version, 0, self._client_id)
        data = await self.send(encode_request(header, request)[_SIZE.size :], _NOWHERE, self.timeout_s)
        if data is None:
            return None
        _, start = decode_response_header(api.key, api.max_version, data)
        return decode(reply, api.max_version, memoryview(data), start)[0]

    async def send(self, frame: bytes, client: Address, timeout_s: float) -> bytes | None:
        """The reply to a request, both without their size. None when the time is over, or when this broker
        has become the controller."""
        envelope = EnvelopeRequest(
            request_data=frame, request_principal=b"", client_host_address=_packed(client.host)
        )
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while (left_s := deadline_s - loop.time()) > 0 and not self.is_here:
            reply = await self._try(envelope, left_s)
            if reply is not None:
                return reply
            await asyncio.sleep(min(_PAUSE_S, left_s))
        return None

    async def _try(self, envelope: EnvelopeRequest, left_s: float) -> bytes | None:
        """None: to be tried again."""
        controller_id = self._follower.image.controller_id
        if controller_id is None or controller_id == self._node_id:
            return None
        try:
            reply = await self._peers.ask(controller_id, ApiKey.ENVELOPE, envelope, timeout_s=left_s)
        except (UnansweredError, UnsupportedApiError, RequestTooLarge):
            return None
        assert isinstance(reply, EnvelopeResponse)
        if reply.error_code != ErrorCode.NONE or reply.response_data is None:
            return None
        return reply.response_data


class Local(Protocol):
    def handle(self, request: Any, context: RequestContext) -> Outcome[Any]: ...


class ForwardedHandler:
    """Around a handler that works where the controller is."""

    def __init__(
        self,
        local: Local,
        forwarding: Forwarding,
        timed_out: Callable[[Message, RequestContext], Outcome[Any]],
    ) -> None:
        self._local = local
        self._forwarding = forwarding
        self._timed_out = timed_out

    def handle(self, request: Message, context: RequestContext) -> Outcome[Any]:
        timeout_s = getattr(request, "timeout_ms", self._forwarding.timeout_s * 1000) / 1000
        if self._forwarding.is_here or timeout_s <= 0:
            return self._local.handle(request, context)
        frame = encode_request(context.header, request)[_SIZE.size :]
        return self._forward(frame, timeout_s, request, context)

    async def _forward(
        self, frame: bytes, timeout_s: float, request: Message, context: RequestContext
    ) -> Parts | Any:
        reply = await self._forwarding.send(frame, context.peer, timeout_s)
        if reply is not None:
            return [_SIZE.pack(len(reply)) + reply]
        if self._forwarding.is_here:
            outcome = self._local.handle(request, context)
        else:
            outcome = self._timed_out(request, context)
        return await cast("Awaitable[Any]", outcome) if asyncio.iscoroutine(outcome) else outcome


def _packed(host: str) -> bytes:
    """As the protocol has addresses; nothing for what is none."""
    try:
        return ipaddress.ip_address(host).packed
    except ValueError:
        return b""
