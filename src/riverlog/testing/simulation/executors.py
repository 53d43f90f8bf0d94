"""What a simulated node is given for threads: nothing but a number of workers, which the loop looks at."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class VirtualThreads(Executor):
    def __init__(self, name: str, workers: int) -> None:
        self.name, self.workers = name, workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> "Future[Any]":
        raise AssertionError("work is given to the event loop, which runs it at a later time")

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        pass
