"""What a simulated node is given for threads: a number of workers, and what they have not done yet.

The loop runs the work, each piece at a time that is drawn. Shut down, they do as threads: nothing more is
taken.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple


class _Piece(NamedTuple):
    handle: asyncio.Handle
    """Whose turn will come, unless it is shut down before that."""
    do: Callable[[], None]


class VirtualThreads(Executor):
    def __init__(self, name: str, workers: int) -> None:
        self.name, self.workers = name, workers
        self._ahead: dict[asyncio.Future[Any], _Piece] = {}
        self._is_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> "Future[Any]":
        raise AssertionError("work is given to the event loop, which runs it at a later time")

    def check_open(self) -> None:
        if self._is_shut_down:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def take(self, future: "asyncio.Future[Any]", handle: asyncio.Handle, do: Callable[[], None]) -> None:
        self._ahead[future] = _Piece(handle, do)

    def begin(self, future: "asyncio.Future[Any]") -> None:
        """Its turn has come."""
        del self._ahead[future]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """What the workers are at is done before this returns; what waits for one of them is given up."""
        assert wait
        assert cancel_futures
        self._is_shut_down = True
        for number, (future, piece) in enumerate(self._ahead.items()):
            piece.handle.cancel()
            if number < self.workers:
                piece.do()
            else:
                future.cancel()
        self._ahead.clear()
