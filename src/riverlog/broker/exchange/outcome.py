"""All that a handler may return, as one union."""

from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

from riverlog.broker.exchange.context import HangUp, InOrder, Parts
from riverlog.broker.exchange.delayed import DelayedReply
from riverlog.broker.exchange.long_work import InPieces

R = TypeVar("R")

Outcome: TypeAlias = (
    Parts | R | HangUp | InOrder | DelayedReply | InPieces[R] | Awaitable[R | HangUp | None] | None
)
"""The response; the frame, by a handler that has encoded it; a closed connection; no reply at all (acks=0);
or one of them later: as a coroutine or future, in which case requests behind it wait unless the route lets
them overtake (`InOrder`: never), as `DelayedReply`, which needs no task, or `InPieces` where it is long."""
