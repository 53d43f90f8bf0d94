"""How a fault is done to a request: between the connections and the dispatcher, on the way in and out.

While there is no fault, connections call the dispatcher itself. While there is one, every request is decoded
here by its table, so that a fault finds it whichever way it takes afterwards; what no fault fits, and what
cannot be decoded, goes on untouched. A fetch in a session does not say what it is about, so while there are
faults a session is forgotten, at which clients begin anew and name all of their partitions.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from riverlog.broker.exchange.context import Answer, HangUp
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.net.connection import Answering, Later
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.testing.error_replies import error_reply
from riverlog.testing.fault import Asked, Fault, Kind
from riverlog.testing.faults import Faults
from riverlog.testing.in_process import decode_reply, finished
from riverlog.wire.apis import APIS, Api, ApiKey
from riverlog.wire.codec import MalformedMessage, decode
from riverlog.wire.framing import (
    RequestHeader,
    decode_request_header,
    encode_request,
    encode_response_in_parts,
)
from riverlog.wire.messages.fetch import FetchRequest, FetchResponse
from riverlog.wire.messages.metadata import MetadataRequest, MetadataResponse
from riverlog.wire.messages.produce import ProduceRequest
from riverlog.wire.schema import Message

_SIZE_BYTES: Final = 4
_TOPIC_RESOURCE: Final = 2

TopicName = Callable[[UUID], str | None]


class FaultyAnswering:
    """`dispatch` is the dispatcher's own as long as there are no faults, so that they cost nothing then."""

    def __init__(self, inner: Answering, faults: Faults, topic_name: TopicName) -> None:
        self._inner = inner
        self._faults = faults
        self._topic_name = topic_name
        self.dispatch: Callable[[memoryview, Origin], Answer | Later] = inner.dispatch
        self.follow()

    def follow(self) -> None:
        """Call after each change of the faults; any thread."""
        self.dispatch = self._with_faults if self._faults.of_requests else self._inner.dispatch

    def _with_faults(self, frame: memoryview, origin: Origin) -> Answer | Later:
        faults = self._faults.of_requests
        if not faults:
            self.follow()  # They are used up.
        try:
            header, start = decode_request_header(frame)
        except MalformedMessage:
            return self._inner.dispatch(frame, origin)
        if not any(each.where.api in (None, header.api_key) for each in faults):
            return self._inner.dispatch(frame, origin)
        request = _decoded(frame, header, start)
        if request is None:
            return self._inner.dispatch(frame, origin)
        if isinstance(request, FetchRequest) and request.session_id and request.session_epoch > 0:
            return _reply(header, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        asked = self._asked(header, request, origin)
        for fault in faults:
            if fault.where.api in (None, header.api_key) and self._fits(fault, asked) and fault.strike():
                return self._struck(fault, asked, frame, header, origin)
        return self._inner.dispatch(frame, origin)

    def _fits(self, fault: Fault, asked: Asked) -> bool:
        return (fault.kind is not Kind.DROP_REPLY or _wants_reply(asked.request)) and fault.fits(asked)

    def _struck(
        self, fault: Fault, asked: Asked, frame: memoryview, header: RequestHeader, origin: Origin
    ) -> Answer | Later:
        reason = f"{asked.api} met {fault!r}"
        match fault.kind:
            case Kind.ERROR:
                return self._error(fault.error, asked, header, origin)
            case Kind.DELAY:
                waiting = self._delayed(bytes(frame), origin, fault.delay_s)
                return Later(asyncio.get_running_loop().create_task(waiting), may_be_overtaken=False)
            case Kind.DISCONNECT if fault.is_done_first:
                done = finished(self._inner.dispatch(frame, origin))
                return Later(
                    asyncio.get_running_loop().create_task(_then(done, HangUp(reason))),
                    may_be_overtaken=False,
                )
            case Kind.DISCONNECT:
                return HangUp(reason)
            case _:
                done = finished(self._inner.dispatch(frame, origin))
                return Later(
                    asyncio.get_running_loop().create_task(_then_never(done)), may_be_overtaken=False
                )

    async def _delayed(self, frame: bytes, origin: Origin, delay_s: float) -> Answer:
        await asyncio.sleep(delay_s)
        # A buffer that may be written to, as the one that requests are received in.
        return await finished(self._inner.dispatch(memoryview(bytearray(frame)), origin))

    def _error(self, error: ErrorCode, asked: Asked, header: RequestHeader, origin: Origin) -> Answer:
        if not _wants_reply(asked.request):
            return HangUp(f"{asked.api} without a reply failed with {error.name}")
        response: Message | None
        if isinstance(asked.request, MetadataRequest):
            response = self._metadata(asked.request, header, origin, error)
        else:
            response = error_reply(
                asked.request, APIS[ApiKey(header.api_key)].response, header.api_version, error
            )
        if response is None:
            return HangUp(f"a reply of {asked.api} {header.api_version} has no place for {error.name}")
        return _reply(header, response)

    def _metadata(
        self, request: MetadataRequest, header: RequestHeader, origin: Origin, error: ErrorCode
    ) -> Message | None:
        """The brokers as they are, without which clients take it for no answer; all topics with the error."""
        request.allow_auto_topic_creation = False
        answer = self._inner.dispatch(memoryview(encode_request(header, request))[_SIZE_BYTES:], origin)
        if not isinstance(answer, list):
            return None
        response = decode_reply(MetadataResponse, header.api_key, header.api_version, answer)
        for topic in response.topics:
            topic.error_code, topic.partitions = error, []
        if not response.topics:
            response.error_code = error
        return response

    def _asked(self, header: RequestHeader, request: Message, origin: Origin) -> Asked:
        version = header.api_version
        topics = frozenset(
            name
            for each in _topics_of(request, version)
            if (name := self._topic_name(each) if isinstance(each, UUID) else each)
        )
        api = APIS[ApiKey(header.api_key)].name
        return Asked(api, version, header.client_id, origin.peer, topics, request)


class Faulting:
    """The faults of a broker as an interception of whatever node it runs."""

    def __init__(self) -> None:
        self.faults = Faults(self._follow)
        self.topic_name: TopicName = lambda _: None
        """May be replaced, once there is a node to ask."""
        self._lock = threading.Lock()
        self._answering: FaultyAnswering | None = None

    def over(self, answering: Answering) -> Answering:
        with self._lock:
            self._answering = FaultyAnswering(answering, self.faults, lambda each: self.topic_name(each))
            return self._answering

    def refuses(self, peer: Address) -> bool:
        return any(fault.strike() for fault in self.faults.of_connections)

    def _follow(self) -> None:
        with self._lock:
            if self._answering is not None:
                self._answering.follow()


def _decoded(frame: memoryview, header: RequestHeader, start: int) -> Message | None:
    """None for what the dispatcher is to judge."""
    api = _api(header.api_key)
    if api is None or not api.min_version <= header.api_version <= api.max_version:
        return None
    try:
        return decode(api.request, header.api_version, frame, start)[0]
    except (MalformedMessage, ValueError, ImportError):
        return None


def _api(key: int) -> Api | None:
    try:
        return APIS.get(ApiKey(key))
    except ValueError:
        return None


def _wants_reply(request: Message) -> bool:
    return not isinstance(request, ProduceRequest) or request.acks != 0


def _reply(header: RequestHeader, response: Message) -> Answer:
    return encode_response_in_parts(header.api_key, header.api_version, header.correlation_id, response)


async def _then(done: "asyncio.Future[Answer]", answer: Answer) -> Answer:
    await done
    return answer


async def _then_never(done: "asyncio.Future[Answer]") -> Answer:
    answer = await done
    if not isinstance(answer, HangUp):
        await asyncio.get_running_loop().create_future()  # Cancelled when the connection closes.
    return answer


def _topics_of(message: Message, version: int) -> Iterator[str | UUID]:
    """Whatever a request says of topics: names, and ids where it goes by these."""
    for field in message.FIELDS:
        value = getattr(message, field.name)
        if not field.array or not value or not field.is_in(version):
            continue
        for element in value:
            if isinstance(element, str):
                if "topic" in field.name:
                    yield element
            elif isinstance(element, Message):
                if "topic" in field.name:
                    yield from _names_of(element)
                elif getattr(element, "resource_type", None) == _TOPIC_RESOURCE:
                    yield str(getattr(element, "resource_name", ""))
                yield from _topics_of(element, version)


def _names_of(element: Message) -> Iterator[str | UUID]:
    for name in ("name", "topic", "topic_id"):
        value = getattr(element, name, None)
        if isinstance(value, str | UUID) and value:
            yield value
