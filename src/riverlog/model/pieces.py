"""Work that is done in pieces, so that others have their turn in between: a generator that says where.

It yields often, wherever it could be interrupted; who drives it decides when somebody else's turn has come.
Where it has to wait for something it yields that, and goes on when it is there. What it returns is its
result. State that others change meanwhile may be another after a yield.
"""

import asyncio
from collections.abc import Awaitable, Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Pieces: TypeAlias = Generator[Awaitable[Any] | None, None, T]

_SORTED_AT_ONCE = 1_000


class Outside:
    """A wait for what others do, which may be long: who drives the work keeps nothing for it meanwhile."""

    __slots__ = ("until",)

    def __init__(self, until: "asyncio.Future[Any]") -> None:
        self.until = until

    def __await__(self) -> Generator[Any, None, Any]:
        return self.until.__await__()


def at_once(pieces: Pieces[T]) -> T:
    """All of it without a pause, for work that waits for nothing."""
    while True:
        try:
            waits_for = next(pieces)
        except StopIteration as stop:
            result: T = stop.value
            return result
        assert waits_for is None


def sorted_in_pieces(texts: Iterable[str]) -> Pieces[Iterator[str]]:
    """As `sorted`; the last part of the work is done while the result is read."""
    runs: list[list[str]] = []
    left = iter(texts)
    while run := sorted(islice(left, _SORTED_AT_ONCE)):
        runs.append(run)
        yield None
    return merge(*runs)
