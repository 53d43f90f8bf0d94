"""Requests that the controller answers, whichever broker is asked: the routes with which they reach it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from riverlog.broker.dispatch.route import AnyRoute, route
from riverlog.broker.exchange.context import RequestContext
from riverlog.broker.handlers.envelope import EnvelopeHandler
from riverlog.broker.shared.forwarding import ForwardedHandler, Forwarding
from riverlog.model.errors import ErrorCode
from riverlog.model.rights import AclOperation, on_cluster
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.envelope import EnvelopeRequest
from riverlog.wire.schema import Message

_REFUSED_AS_A_WHOLE = frozenset(
    {ApiKey.UPDATE_FEATURES, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.UNREGISTER_BROKER}
)
_FORWARDED = _REFUSED_AS_A_WHOLE | {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
}
"""What the controller does, whichever broker is asked."""
_FORWARDED_IN_PART = frozenset({ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS})
"""Here some of it is the business of the broker that is asked."""


def by_the_controller(routes: list[AnyRoute], forwarding: Forwarding) -> list[AnyRoute]:
    """The same routes, whose requests reach the controller wherever it is."""
    return [
        replace(each, handler=ForwardedHandler(each.handler, forwarding, _timed_out(each)))
        if each.api.key in _FORWARDED
        else each
        for each in routes
    ]


def _timed_out(controlled: AnyRoute) -> Callable[[Message, RequestContext], Any]:
    """What is answered when no controller was found in time."""

    def answer(request: Message, context: RequestContext) -> Any:
        response = controlled.api.response()
        if hasattr(request, "timeout_ms") and controlled.api.key not in _REFUSED_AS_A_WHOLE:
            request.timeout_ms = 0  # The handler knows how to say that no time is left.
            return controlled.handler.handle(request, context)
        response.error_code = ErrorCode.REQUEST_TIMED_OUT  # type: ignore[attr-defined]
        return response

    return answer


def envelope_of(routes: list[AnyRoute], forwarding: Forwarding, listener_name: str) -> AnyRoute:
    """What another broker sends on to the controller, which only its listener for brokers takes."""
    enveloped = {
        int(each.api.key): each for each in routes if each.api.key in _FORWARDED | _FORWARDED_IN_PART
    }
    handler = EnvelopeHandler(enveloped, lambda: forwarding.is_here, listener_name)
    return route(EnvelopeRequest, handler, on_cluster(AclOperation.CLUSTER_ACTION))
