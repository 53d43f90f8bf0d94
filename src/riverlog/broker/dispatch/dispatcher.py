"""From a frame to an answer: header, route, version, door, body, handler, reply.

A request that repeats the one before it, as those of a busy producer do, is recognised by its template, which
spares it all of that but the door. A long request is decoded in pieces, and so is a long answer made and
encoded (`long_work`): neither holds up the others.

Bytes that Apache Kafka does not answer (an unknown API or version, a malformed body) close the connection
and leave a log line. This is the one place of the broker with a broad `except`: a bug in a handler becomes
UNKNOWN_SERVER_ERROR where the reply has a place for it, and otherwise a closed connection; produce is never
answered that way, because clients take it for a fresh failure and write their records twice.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Mapping
from typing import Any

from riverlog.broker.dispatch.door import Door, DoorRefusal
from riverlog.broker.dispatch.route import AnyRoute
from riverlog.broker.exchange.context import Answer, HangUp, InOrder, Parts, RequestContext
from riverlog.broker.exchange.delayed import NOT_YET, DelayedReply, PendingReply
from riverlog.broker.exchange.long_work import InPieces, LongWork, Place
from riverlog.broker.exchange.origin import Origin
from riverlog.broker.exchange.rate_limited_log import RateLimitedLog
from riverlog.broker.handlers.api_versions import unsupported_version_reply
from riverlog.broker.net.connection import Later
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import Metrics
from riverlog.model.named_tuples import maker_of
from riverlog.wire.apis import ApiKey
from riverlog.wire.by_hand.produce_request import SingleBatch, wants_no_reply
from riverlog.wire.by_hand.produce_template import VERSION_MIN as TEMPLATE_VERSION_MIN
from riverlog.wire.codec import LongMessageError, MalformedMessage
from riverlog.wire.dissolving import dissolve
from riverlog.wire.framing import decode_request_header
from riverlog.wire.schema import Message

_logger = logging.getLogger(__name__)
_LONG_REQUEST_BYTES = 8 * 1024  # A millisecond's work or less.
_LONG_BYTES_MAX = 256 * 1024**2
_REMEMBER_EVERY = 64  # What is remembered may be of no use any more, and making it costs a request's time.
_context = maker_of(RequestContext)


class Dispatcher:
    def __init__(self, routes: Mapping[int, AnyRoute], door: Door, clock: Clock, metrics: Metrics) -> None:
        self._routes = routes
        self._produce = routes.get(ApiKey.PRODUCE)
        """Of the only API that has templates."""
        self._admit = door.admit
        self._log = RateLimitedLog(_logger, clock.monotonic_s)
        self._long_work = LongWork(clock.monotonic_s)
        self._long_bytes = 0
        self._rejected = metrics.counter("riverlog_requests_refused_total")
        self._failed = metrics.counter("riverlog_requests_failed_total")

    def dispatch(self, frame: memoryview, origin: Origin) -> Answer | Later:
        """In one piece, because each call that a request makes is a hundredth of its cost. So that the
        interpreter is quick at it, what an attribute holds is called by a local name, here and below."""
        template, route, admit = origin.template, self._produce, self._admit
        is_admitted = False
        if template is not None and route is not None:
            match = template.match
            if (found := match(frame)) is not None:
                correlation_id, records = found
                refusal = admit(route, origin, template.client_id, len(frame))
                if refusal is not None:
                    return self._refused(route, template.version, correlation_id, refusal, origin)
                try:
                    reply = template.answer(correlation_id, records)
                except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
                    return self._failure(route, template.version, correlation_id)
                if reply is not None:
                    return reply
                is_admitted = True
        try:
            header, start = decode_request_header(frame)
        except MalformedMessage as error:
            return self._reject(origin, f"malformed request header: {error}")
        key, version, correlation_id, client_id = header
        route = self._routes.get(key)
        if route is None:
            return self._reject(origin, f"API {key} is not served")
        if not route.served_version_min <= version <= route.api.max_version:
            if key == ApiKey.API_VERSIONS:
                return unsupported_version_reply(correlation_id)
            return self._reject(origin, f"version {version} of {route.api.name} is not served")
        if not is_admitted and (refusal := admit(route, origin, client_id, len(frame))) is not None:
            return self._refused(route, version, correlation_id, refusal, origin)
        if len(frame) > _LONG_REQUEST_BYTES and route.is_long_by_bytes:
            return self._begin_long(route, frame, start, _context((header, origin)))
        try:
            request = route.decode(frame, version, start)
        except LongMessageError:
            return self._begin_long(route, frame, start, _context((header, origin)))
        except MalformedMessage as error:
            return self._reject(origin, f"malformed {route.api.name} v{version}: {error}")
        answer = self._answer(route, request, _context((header, origin)))
        remember = route.make_template
        if remember is not None and version >= TEMPLATE_VERSION_MIN and type(request) is SingleBatch:
            # A second request in a row to one partition is taken for the first of many.
            place = request[2:5]
            if place != origin.last_place:
                origin.last_place, origin.repetitions = place, 0
            else:
                if origin.repetitions % _REMEMBER_EVERY == 0:
                    origin.template = remember(frame, header, start, request, origin)
                origin.repetitions += 1
        return answer

    def _answer(
        self, route: AnyRoute, request: Any, context: RequestContext, place: Place | None = None
    ) -> Answer | Later:
        header = context.header
        try:
            response = route.handler.handle(request, context)
            if type(response) is list:
                return response
            if isinstance(response, Message):
                return route.encode(header.api_version, header.correlation_id, response)
            if response is None:
                return None
            may_be_overtaken = route.may_be_overtaken
            if type(response) is InPieces:
                finishing = asyncio.get_running_loop().create_task(
                    self._finish_long(route, response, context, place)
                )
                return Later(finishing, may_be_overtaken)
            if place is not None:
                place.leave()  # What it waits for may be another one that has to get a place first.
            if isinstance(response, DelayedReply):
                return Later(self._pending(route, response, context), may_be_overtaken)
            if type(response) is InOrder:
                may_be_overtaken = False
                response = response.answer
            if inspect.isawaitable(response):
                finishing = asyncio.get_running_loop().create_task(self._finish(route, response, context))
                if inspect.iscoroutine(response):
                    # A connection that closes before the task began leaves the coroutine unstarted.
                    finishing.add_done_callback(lambda _: response.close())
                return Later(finishing, may_be_overtaken)
            return self._encode(route, response, context)
        except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
            return self._failure(route, header.api_version, header.correlation_id)

    def _pending(self, route: AnyRoute, delayed: DelayedReply, context: RequestContext) -> PendingReply:
        pending = PendingReply(delayed)

        def ask() -> None:
            try:
                response = delayed.make()
                answer = None if response is NOT_YET else self._encode(route, response, context)
            except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
                answer = self._failure(route, context.version, context.header.correlation_id)
            if answer is not None:
                pending.keep(answer)

        delayed.begin(ask)
        return pending

    async def _finish(self, route: AnyRoute, response: Awaitable[Any], context: RequestContext) -> Answer:
        try:
            return self._encode(route, await response, context)
        except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
            return self._failure(route, context.version, context.header.correlation_id)

    def _begin_long(
        self, route: AnyRoute, frame: memoryview, start: int, context: RequestContext
    ) -> Answer | Later:
        size = len(frame)
        if self._long_bytes + size > _LONG_BYTES_MAX:
            return self._reject(context.origin, f"too many long requests are waiting for {route.api.name}")
        # The bytes are copied, since others use the place where they were received; records are changed.
        copy = memoryview(bytearray(frame))
        answering = asyncio.get_running_loop().create_task(self._answer_long(route, copy, start, context))
        self._long_bytes += size
        answering.add_done_callback(lambda _: self._forget_long(size))
        if route is self._produce and wants_no_reply(frame, context.version, start):
            # Its client may go as soon as it is sent, and takes it for written.
            return Later(asyncio.shield(answering), may_be_overtaken=False)
        return Later(answering, may_be_overtaken=False)

    def _forget_long(self, size: int) -> None:
        self._long_bytes -= size

    async def _answer_long(
        self, route: AnyRoute, frame: memoryview, start: int, context: RequestContext
    ) -> Answer:
        version = context.version
        async with self._long_work.place(is_large=route.is_long_by_bytes) as place:
            try:
                request = await self._long_work.do(route.decode_in_pieces(frame, version, start))
            except MalformedMessage as error:
                return self._reject(context.origin, f"malformed {route.api.name} v{version}: {error}")
            answer = self._answer(route, request, context, place if route.is_long_by_bytes else None)
            del request  # So that the work has it for itself, and may let go of what it has read.
            if not isinstance(answer, Later):
                return answer
            if isinstance(answer.answer, PendingReply):
                return await _answered(answer.answer)
            return await answer.answer

    async def _finish_long(
        self, route: AnyRoute, made: InPieces[Any], context: RequestContext, has: Place | None
    ) -> Answer:
        version, correlation_id = context.version, context.header.correlation_id
        work = self._long_work
        try:
            async with work.place(is_large=made.is_large and has is None) as place:
                response = await work.do(made.pieces, has or place)
                if not isinstance(response, Message):
                    return self._encode(route, response, context)
                answer = await work.do(route.encode_in_pieces(version, correlation_id, response))
                await work.do(dissolve(response))
                return answer
        except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
            return self._failure(route, version, correlation_id)

    def _encode(self, route: AnyRoute, response: Any, context: RequestContext) -> Answer:
        if response is None or type(response) is list:
            return response
        if type(response) is HangUp:
            self._log.warn("closed %s: %s", context.peer, response.reason)
            return response
        return route.encode(context.version, context.header.correlation_id, response)

    def _reject(self, origin: Origin, reason: str) -> HangUp:
        self._rejected.add()
        self._log.warn("closed %s: %s", origin.peer, reason)
        return HangUp(reason)

    def _refused(
        self, route: AnyRoute, version: int, correlation_id: int, refusal: DoorRefusal, origin: Origin
    ) -> Answer:
        if isinstance(refusal, HangUp):
            return self._reject(origin, refusal.reason)
        answer = _error_reply(route, version, correlation_id, refusal)
        return answer or self._reject(origin, f"{route.api.name} was refused with {refusal.name}")

    def _failure(self, route: AnyRoute, version: int, correlation_id: int) -> Answer:
        self._failed.add()
        _logger.exception("%s v%d failed; this is a bug", route.api.name, version)
        answer = None
        if route.api.key != ApiKey.PRODUCE:
            answer = _error_reply(route, version, correlation_id, ErrorCode.UNKNOWN_SERVER_ERROR)
        return answer or HangUp(f"{route.api.name} failed")


async def _answered(pending: PendingReply) -> Answer:
    """For who has a task anyway."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(_: PendingReply) -> None:
        if not ended.done():
            ended.set_result(None)

    pending.add_done_callback(end)
    try:
        await ended
    finally:
        pending.cancel()
    return pending.result()


def _error_reply(route: AnyRoute, version: int, correlation_id: int, error: ErrorCode) -> Parts | None:
    """None where a reply has no place for an error of the whole request."""
    response = route.api.response()
    if not hasattr(response, "error_code"):
        return None
    response.error_code = error
    return route.encode(version, correlation_id, response)
