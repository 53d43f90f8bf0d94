"""The metadata store of a node on its own: a SQLite file behind the `MetadataStore` port.

One thread owns the database, so the event loop never waits for a disk. The session is the open file: nodes
that were made ephemeral go when it is closed, or when it is next opened after a crash. Watchers hear of a
commit before its caller does.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from riverlog.metadata.layout import parent as parent_of
from riverlog.metadata.stores.node_table import NodeTable
from riverlog.metadata.stores.watches import Watches, topmost
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import (
    Create,
    Delete,
    Operation,
    SessionLostError,
    SessionState,
    Set,
    Versioned,
    WatchEvent,
    Watching,
)

T = TypeVar("T")

FILE_NAME: Final = "riverlog-metadata.sqlite"


class EmbeddedStore:
    def __init__(self, table: NodeTable, thread: Executor, loop: asyncio.AbstractEventLoop) -> None:
        """Use `open`."""
        self._table = table
        self._thread = thread
        self._loop = loop
        self._watches = Watches()
        self._state = SessionState.CONNECTED

    @classmethod
    async def open(cls, path: str, thread: Executor) -> Self:
        """Open or create the file; raises `FormatError` when a newer release wrote it.

        `thread` runs one thing at a time, and ours only."""
        loop = asyncio.get_running_loop()
        return cls(await loop.run_in_executor(thread, NodeTable, path), thread, loop)

    @property
    def session_state(self) -> SessionState:
        return self._state

    @property
    def lease_until_s(self) -> float:
        """Nobody else can open the file meanwhile."""
        return math.inf if self._state is SessionState.CONNECTED else -math.inf

    @property
    def multi_bytes_max(self) -> int:
        return sys.maxsize

    async def sync(self) -> None:
        await self._call(lambda: None)

    async def get(self, path: str) -> Versioned | None:
        return await self._call(lambda: self._table.get(path))

    async def children(self, path: str) -> list[str]:
        return await self._call(lambda: self._table.children(path))

    async def tree(self, path: str) -> dict[str, Versioned]:
        return await self._call(lambda: self._table.tree(path))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        return await self._call(lambda: self._create(path, data, ephemeral, sequential))

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        def work() -> int:
            self._apply([Set(path, data, expected_version)])
            node = self._table.get(path)
            assert node is not None
            return node.version

        return await self._call(work)

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self._call(lambda: self._apply([Delete(path, expected_version)]))

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._call(lambda: self._apply(operations))

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        return self._watches.add(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._watches.add_session(callback)

    async def close(self) -> None:
        if self._state is SessionState.LOST:
            return
        self._state = SessionState.LOST
        await self._loop.run_in_executor(self._thread, self._table.close)
        self._watches.notify_session(self._state)

    async def _call(self, work: Callable[[], T]) -> T:
        if self._state is not SessionState.CONNECTED:
            raise SessionLostError("The metadata store has been closed.")
        return await self._loop.run_in_executor(self._thread, work)

    def _create(self, path: str, data: bytes, ephemeral: bool, sequential: bool) -> str:
        self._make_parents(path)
        if sequential:
            path = self._table.next_sequential(path)
        self._apply([Create(path, data, ephemeral)])
        return path

    def _make_parents(self, path: str) -> None:
        missing: list[Operation] = []
        above = parent_of(path)
        while above and self._table.get(above) is None:
            missing.append(Create(above))
            above = parent_of(above)
        if missing:
            self._apply(missing[::-1])

    def _apply(self, operations: Sequence[Operation]) -> None:
        changed = topmost(self._table.apply(operations))
        # Queued before the caller's future is resolved, and even when the caller has been cancelled.
        self._loop.call_soon_threadsafe(self._watches.notify, changed)
