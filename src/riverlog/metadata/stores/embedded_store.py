"""The metadata store of a node on its own: a SQLite file behind the `MetadataStore` port.

One thread owns the database, so the event loop never waits for a disk. The session is the open file: nodes
that were made ephemeral go when it is closed, or when it is next opened after a crash. Watchers hear of a
commit before its caller does.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Self

from riverlog.metadata.layout import parent as parent_of
from riverlog.metadata.stores.node_table import NodeTable
from riverlog.metadata.stores.row_store import RowStore
from riverlog.metadata.stores.watches import topmost
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import Create, Operation, SessionState, Set

FILE_NAME: Final = "riverlog-metadata.sqlite"


class EmbeddedStore(RowStore):
    def __init__(self, table: NodeTable, thread: Executor, loop: asyncio.AbstractEventLoop) -> None:
        """Use `open`."""
        super().__init__(table, thread, loop)
        self._table = table

    @classmethod
    async def open(cls, path: str, thread: Executor) -> Self:
        """Open or create the file; raises `FormatError` when a newer release wrote it.

        `thread` runs one thing at a time, and ours only."""
        loop = asyncio.get_running_loop()
        return cls(await loop.run_in_executor(thread, NodeTable, path), thread, loop)

    async def sync(self) -> None:
        await self._call(lambda: None)

    async def close(self) -> None:
        if self._state is SessionState.LOST:
            return
        self._state = SessionState.LOST
        await self._loop.run_in_executor(self._thread, self._table.close)
        self._watches.notify_session(self._state)

    def _make_parents(self, path: str) -> None:
        missing: list[Operation] = []
        above = parent_of(path)
        while above and self._table.get(above) is None:
            missing.append(Create(above))
            above = parent_of(above)
        if missing:
            self._apply(missing[::-1])

    def _set(self, path: str, data: bytes, expected_version: int | None) -> int:
        self._apply([Set(path, data, expected_version)])
        node = self._table.get(path)
        assert node is not None
        return node.version

    def _apply(self, operations: Sequence[Operation]) -> None:
        changed = topmost(self._table.apply(operations))
        # Queued before the caller's future is resolved, and even when the caller has been cancelled.
        self._loop.call_soon_threadsafe(self._watches.notify, changed)
