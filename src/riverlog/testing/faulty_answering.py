"""How a fault is done to a request: between the connections and the dispatcher, on the way in and out.

While there is no fault, connections call the dispatcher itself. While there is one, every request is decoded
here by its table, so that a fault finds it whichever way it takes afterwards; what no fault fits, and what
cannot be decoded, goes on untouched. A fetch in a session does not say what it is about, so while there are
faults a session is forgotten, at which clients begin anew and name all of their partitions.

An error that is meant for one topic is told for that topic where the reply has a place for each; the rest of
the request goes on, and both answers leave as one. Every request is counted once, as the door counts.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from riverlog.broker.exchange.context import Answer, HangUp
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.net.connection import Answering, Later
from riverlog.model.errors import ErrorCode
from riverlog.model.network import Address
from riverlog.testing.about_topics import TopicName, answers_for, put_together, split, topics_of
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
_NO_SESSION: Final = -1


class FaultyAnswering:
    """`dispatch` is the dispatcher's own as long as there are no faults, so that they cost nothing then."""

    def __init__(
        self, inner: Answering, faults: Faults, topic_name: TopicName, count: Callable[[str], None]
    ) -> None:
        """`count` is told the API of a request that the dispatcher does not see."""
        self._inner = inner
        self._faults = faults
        self._topic_name = topic_name
        self._count = count
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
        meant = [each for each in faults if each.where.api in (None, header.api_key)]
        request = _decoded(frame, header, start) if meant else None
        if request is None:
            return self._inner.dispatch(frame, origin)
        if isinstance(request, FetchRequest) and request.session_id and request.session_epoch > 0:
            self._count(APIS[ApiKey.FETCH].name)
            return _reply(header, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return self._past(meant, self._asked(header, request, origin), frame, header, origin)

    def _past(
        self,
        faults: Sequence[Fault],
        asked: Asked,
        frame: memoryview,
        header: RequestHeader,
        origin: Origin,
    ) -> Answer | Later:
        """The answer to a request that meets these faults, and then the dispatcher."""
        for number, fault in enumerate(faults, start=1):
            if self._fits(fault, asked) and fault.strike():
                if fault.kind is Kind.ERROR:
                    return self._error(fault, faults[number:], asked, header, origin)
                return self._struck(fault, asked, frame, origin)
        return self._inner.dispatch(frame, origin)

    def _fits(self, fault: Fault, asked: Asked) -> bool:
        return (fault.kind is not Kind.DROP_REPLY or _wants_reply(asked.request)) and fault.fits(asked)

    def _struck(self, fault: Fault, asked: Asked, frame: memoryview, origin: Origin) -> Answer | Later:
        reason = f"{asked.api} met {fault!r}"
        if fault.kind is Kind.DELAY:
            return _in_order(self._delayed(bytes(frame), origin, fault.delay_s))
        if fault.kind is Kind.DISCONNECT and not fault.is_done_first:
            self._count(asked.api)
            return HangUp(reason)
        done = finished(self._inner.dispatch(frame, origin))
        return _in_order(_then(done, HangUp(reason)) if fault.kind is Kind.DISCONNECT else _then_never(done))

    async def _delayed(self, frame: bytes, origin: Origin, delay_s: float) -> Answer:
        await asyncio.sleep(delay_s)
        # A buffer that may be written to, as the one that requests are received in.
        return await finished(self._inner.dispatch(memoryview(bytearray(frame)), origin))

    def _error(
        self, fault: Fault, younger: Sequence[Fault], asked: Asked, header: RequestHeader, origin: Origin
    ) -> Answer | Later:
        api, error, topic = APIS[ApiKey(header.api_key)], fault.error, fault.where.topic
        if topic is not None and asked.topics != {topic}:
            meant, rest = split(asked.request, asked.version, topic, self._topic_name)
            failed = error_reply(meant, api.response, asked.version, error)
            if failed is not None and answers_for(failed, asked.version, topic, self._topic_name):
                return self._error_beside(rest, failed, younger, header, origin)
        if isinstance(asked.request, MetadataRequest):
            return self._failed_metadata(asked.request, header, origin, error)
        self._count(asked.api)
        if not _wants_reply(asked.request):
            return HangUp(f"{asked.api} without a reply failed with {error.name}")
        response = error_reply(asked.request, api.response, asked.version, error)
        if response is None:
            return HangUp(f"a reply of {asked.api} {asked.version} has no place for {error.name}")
        return _reply(header, response)

    def _error_beside(
        self,
        rest: Message,
        failed: Message,
        younger: Sequence[Fault],
        header: RequestHeader,
        origin: Origin,
    ) -> Answer | Later:
        """The answer to the rest of a request together with the error to a part of it."""
        if isinstance(rest, FetchRequest):
            # An error is answered at once, and a session would not know of all the partitions.
            rest.max_wait_ms, rest.session_id, rest.session_epoch = 0, 0, _NO_SESSION
        frame = memoryview(bytearray(encode_request(header, rest)))[_SIZE_BYTES:]
        answer = self._past(younger, self._asked(header, rest, origin), frame, header, origin)

        async def together() -> Answer:
            found = await finished(answer)
            if found is None:
                return HangUp("a request without a reply failed in part")
            if isinstance(found, HangUp):
                return found
            reply = decode_reply(type(failed), header.api_key, header.api_version, found)
            put_together(reply, failed, header.api_version)
            return _reply(header, reply)

        return _in_order(together())

    def _failed_metadata(
        self, request: MetadataRequest, header: RequestHeader, origin: Origin, error: ErrorCode
    ) -> Answer:
        """The brokers as they are, without which clients take it for no answer; all topics with the error."""
        request.allow_auto_topic_creation = False
        answer = self._inner.dispatch(memoryview(encode_request(header, request))[_SIZE_BYTES:], origin)
        assert isinstance(answer, list)
        response = decode_reply(MetadataResponse, header.api_key, header.api_version, answer)
        for topic in response.topics:
            topic.error_code, topic.partitions = error, []
        if not response.topics:
            response.error_code = error
        return _reply(header, response)

    def _asked(self, header: RequestHeader, request: Message, origin: Origin) -> Asked:
        version = header.api_version
        topics = topics_of(request, version, self._topic_name)
        api = APIS[ApiKey(header.api_key)].name
        return Asked(api, version, header.client_id, origin.peer, topics, request)


class Faulting:
    """The faults of a broker as an interception of whatever node it runs."""

    def __init__(self) -> None:
        self.faults = Faults(self._follow)
        self.topic_name: TopicName = lambda _: None
        """May be replaced, once there is a node to ask."""
        self.count: Callable[[str], None] = lambda _: None
        """As `topic_name`: told the API of each request that its door does not see."""
        self._lock = threading.Lock()
        self._answering: FaultyAnswering | None = None

    def over(self, answering: Answering) -> Answering:
        with self._lock:
            self._answering = FaultyAnswering(
                answering, self.faults, lambda each: self.topic_name(each), lambda api: self.count(api)
            )
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


def _in_order(answer: Coroutine[Any, Any, Answer]) -> Later:
    return Later(asyncio.get_running_loop().create_task(answer), may_be_overtaken=False)


async def _then(done: "asyncio.Future[Answer]", answer: Answer) -> Answer:
    await done
    return answer


async def _then_never(done: "asyncio.Future[Answer]") -> Answer:
    answer = await done
    if not isinstance(answer, HangUp):
        await asyncio.get_running_loop().create_future()  # Cancelled when the connection closes.
    return answer
