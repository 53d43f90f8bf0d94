"""All that a handler may return, as one union."""

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

from riverlog.broker.exchange.context import HangUp, InOrder, Parts
from riverlog.broker.exchange.delayed import DelayedReply

R = TypeVar("R")

Outcome: TypeAlias = Parts | R | HangUp | InOrder | DelayedReply | Awaitable[R | HangUp | None] | None
"""The response; the frame, by a handler that has encoded it; a closed connection; no reply at all (acks=0);
or one of them later: as a coroutine or future, in which case requests behind it wait unless the route lets
them overtake (`InOrder`: never), or as `DelayedReply`, which needs no task."""
