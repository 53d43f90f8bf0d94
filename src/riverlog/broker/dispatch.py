"""From a frame to an answer: header, route, version, body, handler, reply.

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

from riverlog.broker.complaints import Complaints
from riverlog.broker.connection import Later, Origin
from riverlog.broker.context import Answer, HangUp, InOrder, RequestContext
from riverlog.broker.handlers.api_versions import unsupported_version_reply
from riverlog.broker.postponed import NOT_YET, Postponed, Promise
from riverlog.broker.route import Route
from riverlog.model.clock import Clock
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import Metrics
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import RequestHeader, decode_request_header
from riverlog.wire.hot_produce import SingleBatch
from riverlog.wire.repeated_produce import VERSION_MIN as REPEATED_VERSION_MIN
from riverlog.wire.repeated_produce import RepeatedProduce
from riverlog.wire.schema import Message

_logger = logging.getLogger(__name__)
_REMEMBER_EVERY = 64  # What is remembered may be of no use any more, and making it costs a request's time.
_new_tuple = tuple.__new__  # Spares every request the Python call that a NamedTuple is made by.


class Dispatcher:
    def __init__(self, routes: Mapping[int, Route], clock: Clock, metrics: Metrics) -> None:
        self._routes = routes
        self._complaints = Complaints(_logger, clock.monotonic_s)
        self._requests = {
            key: metrics.counter("riverlog_requests_total", api=each.api.name) for key, each in routes.items()
        }
        self._produced = metrics.counter("riverlog_requests_total", api=APIS[ApiKey.PRODUCE].name)
        self._refused = metrics.counter("riverlog_requests_refused_total")
        self._failed = metrics.counter("riverlog_requests_failed_total")

    def dispatch(self, frame: memoryview, origin: Origin) -> Answer | Later:
        repeated = origin.repeated
        if repeated is not None:
            try:
                reply = repeated(frame)
            except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
                return self._repetition_failed()
            if reply is not None:
                self._produced.add()
                return reply
        try:
            header, start = decode_request_header(frame)
        except MalformedMessage as error:
            return self._refuse(origin, f"malformed request header: {error}")
        key, version, correlation_id, _ = header
        route = self._routes.get(key)
        if route is None:
            return self._refuse(origin, f"API {key} is not served")
        if not route.served_version_min <= version <= route.api.max_version:
            if key == ApiKey.API_VERSIONS:
                return unsupported_version_reply(correlation_id)
            return self._refuse(origin, f"version {version} of {route.api.name} is not served")
        try:
            request = route.decode(frame, version, start)
        except MalformedMessage as error:
            return self._refuse(origin, f"malformed {route.api.name} v{version}: {error}")
        self._requests[key].add()
        answer = self._answer(route, request, header, origin)
        if type(request) is SingleBatch and version >= REPEATED_VERSION_MIN and route.repeat is not None:
            place = request[2:5]
            if place != origin.last_place:
                origin.last_place, origin.repetitions = place, 0
            else:
                if origin.repetitions % _REMEMBER_EVERY == 0:
                    like = RepeatedProduce(frame, header, start, request)
                    origin.repeated = route.repeat(like, request)
                origin.repetitions += 1
        return answer

    def _answer(self, route: Route, request: Any, header: RequestHeader, origin: Origin) -> Answer | Later:
        _, version, _, client_id = header
        context = _new_tuple(RequestContext, (header, version, origin.listener_name, origin.peer, client_id))
        try:
            response = route.handler.handle(request, context)
            if type(response) is list:
                return response
            if isinstance(response, Message):
                return route.encode(version, header.correlation_id, response)
            if response is None:
                return None
            may_be_overtaken = route.may_be_overtaken
            if isinstance(response, Postponed):
                return Later(self._promised(route, response, context), may_be_overtaken)
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
            return self._failure(route, context)

    def _promised(self, route: Route, postponed: Postponed, context: RequestContext) -> Promise:
        promise = Promise(postponed)

        def ask() -> None:
            try:
                response = postponed.make()
                answer = None if response is NOT_YET else self._encode(route, response, context)
            except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
                answer = self._failure(route, context)
            if answer is not None:
                promise.keep(answer)

        postponed.begin(ask)
        return promise

    async def _finish(self, route: Route, response: Awaitable[Any], context: RequestContext) -> Answer:
        try:
            return self._encode(route, await response, context)
        except Exception:  # noqa: BLE001 - the edge where a bug must not take the broker down
            return self._failure(route, context)

    def _encode(self, route: Route, response: Any, context: RequestContext) -> Answer:
        if response is None or type(response) is list:
            return response
        if type(response) is HangUp:
            self._complaints.complain("closed %s: %s", context.peer, response.reason)
            return response
        return route.encode(context.version, context.header.correlation_id, response)

    def _refuse(self, origin: Origin, reason: str) -> HangUp:
        self._refused.add()
        self._complaints.complain("closed %s: %s", origin.peer, reason)
        return HangUp(reason)

    def _repetition_failed(self) -> HangUp:
        self._failed.add()
        _logger.exception("a repeated produce failed; this is a bug")
        return HangUp("produce failed")

    def _failure(self, route: Route, context: RequestContext) -> Answer:
        self._failed.add()
        _logger.exception("%s v%d failed; this is a bug", route.api.name, context.version)
        if route.api.key == ApiKey.PRODUCE:
            return HangUp("produce failed")
        response = route.api.response()
        if not hasattr(response, "error_code"):
            return HangUp(f"{route.api.name} failed")
        response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        return route.encode(context.version, context.header.correlation_id, response)
