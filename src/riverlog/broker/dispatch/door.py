"""What every request passes before it is decoded or answered, whichever way it takes afterwards.

The dispatcher asks the door once for each request of a served API and version: by template, in the short form
of one partition, or in general. Here belongs what is the same for all APIs: who asks, what the route needs,
quotas, counting. What depends on the contents of a request is for its handler.
"""

from collections.abc import Iterable
from typing import Protocol

from riverlog.broker.dispatch.route import AnyRoute
from riverlog.broker.exchange.context import HangUp
from riverlog.broker.exchange.origin import Origin
from riverlog.model.errors import ErrorCode
from riverlog.model.metrics import Metrics

DoorRefusal = HangUp | ErrorCode
"""A closed connection, or an error for replies that have a place for one."""


class Door(Protocol):
    def admit(
        self, route: AnyRoute, origin: Origin, client_id: str | None, frame_bytes: int
    ) -> DoorRefusal | None:
        """None lets the request in."""
        ...


class OpenDoor:
    """Counts every request and refuses none."""

    def __init__(self, routes: Iterable[AnyRoute], metrics: Metrics) -> None:
        self._requests = {
            route.api.key: metrics.counter("riverlog_requests_total", api=route.api.name) for route in routes
        }

    def admit(
        self, route: AnyRoute, origin: Origin, client_id: str | None, frame_bytes: int
    ) -> DoorRefusal | None:
        self._requests[route.api.key].value += 1
        return None
