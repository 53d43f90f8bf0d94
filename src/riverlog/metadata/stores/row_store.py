"""What the stores on SQLite have in common: the `MetadataStore` port, on rows that one thread has to itself.

Not here: what a commit sets off, and how a write ends where others write as well; the two stores differ there
(`embedded_store`, `shared`).
"""

import asyncio
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from riverlog.metadata.stores.watches import Watches
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import (
    Create,
    Delete,
    Operation,
    SessionLostError,
    SessionState,
    Versioned,
    WatchEvent,
    Watching,
)

T = TypeVar("T")


class Nodes(Protocol):
    """Blocking, and used from one thread."""

    def get(self, path: str) -> Versioned | None: ...

    def children(self, path: str) -> list[str]: ...

    def tree(self, path: str) -> dict[str, Versioned]: ...

    def next_sequential(self, path: str) -> str: ...


class RowStore(ABC):
    def __init__(self, nodes: Nodes, thread: Executor, loop: asyncio.AbstractEventLoop) -> None:
        self._nodes = nodes
        self._thread = thread
        self._loop = loop
        self._watches = Watches()
        self._state = SessionState.CONNECTED

    @property
    def session_state(self) -> SessionState:
        return self._state

    @property
    def lease_until_s(self) -> float:
        """Nobody on this host can take a session for ended whose process lives."""
        return math.inf if self._state is SessionState.CONNECTED else -math.inf

    @property
    def multi_bytes_max(self) -> int:
        return sys.maxsize

    async def get(self, path: str) -> Versioned | None:
        return await self._call(lambda: self._nodes.get(path))

    async def children(self, path: str) -> list[str]:
        return await self._call(lambda: self._nodes.children(path))

    async def tree(self, path: str) -> dict[str, Versioned]:
        return await self._call(lambda: self._nodes.tree(path))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        return await self._call(lambda: self._create(path, data, ephemeral, sequential))

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        return await self._call(lambda: self._set(path, data, expected_version))

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self._call(lambda: self._apply([Delete(path, expected_version)]))

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._call(lambda: self._apply(operations))

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        return self._watches.add(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._watches.add_session(callback)

    async def _call(self, work: Callable[[], T]) -> T:
        """Do it in the thread."""
        if self._state is not SessionState.CONNECTED:
            raise SessionLostError("The metadata store has been closed.")
        return await self._loop.run_in_executor(self._thread, work)

    # In the thread.

    def _create(self, path: str, data: bytes, ephemeral: bool, sequential: bool) -> str:
        self._make_parents(path)
        if sequential:
            path = self._nodes.next_sequential(path)
        self._apply([Create(path, data, ephemeral)])
        return path

    @abstractmethod
    def _make_parents(self, path: str) -> None: ...

    @abstractmethod
    def _set(self, path: str, data: bytes, expected_version: int | None) -> int: ...

    @abstractmethod
    def _apply(self, operations: Sequence[Operation]) -> None: ...
