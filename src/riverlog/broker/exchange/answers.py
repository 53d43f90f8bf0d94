"""From a coordinator's answer to a reply: at once where it is there already, which saves a task."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from riverlog.model.errors import ErrorCode

R = TypeVar("R")
M = TypeVar("M")


def when_answered(
    answer: "asyncio.Future[R | ErrorCode]", reply: Callable[[R | ErrorCode], M]
) -> M | Awaitable[M]:
    """`reply` makes the response from the answer, or from the error that the coordinator gave instead."""
    return reply(answer.result()) if answer.done() else _later(answer, reply)


async def _later(answer: "asyncio.Future[R | ErrorCode]", reply: Callable[[R | ErrorCode], M]) -> M:
    return reply(await answer)
