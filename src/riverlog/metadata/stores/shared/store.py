"""The metadata store of the brokers of one host: a SQLite file that their processes share, behind the port.

One thread of each session has the file open, so that the event loop never waits for a disk or for another
process. A commit rings at the other sessions, which then read what changed; a session that ends without a
goodbye is heard of by a pipe that ends, and whoever hears it first removes its ephemeral nodes
(`session_files`). Nothing is asked for at intervals. The lease never runs out: a process that is stopped,
and not dead, keeps its session, since nobody on this host could have been told of its end.
"""

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from riverlog.metadata.layout import parent as parent_of
from riverlog.metadata.stores.row_store import RowStore
from riverlog.metadata.stores.shared.tree import News, SharedTree
from riverlog.model.executor import Executor
from riverlog.model.metadata_store import (
    Create,
    NodeExistsError,
    Operation,
    SessionState,
    Set,
    StoreError,
    UnreachableError,
)

T = TypeVar("T")

_logger = logging.getLogger(__name__)
_LOOK_AGAIN_S: Final = 1.0


class SharedStore(RowStore):
    def __init__(self, tree: SharedTree, thread: Executor, loop: asyncio.AbstractEventLoop) -> None:
        """Use `open`."""
        super().__init__(tree, thread, loop)
        self._tree = tree
        self._ends: dict[int, int] = {}
        """By the number of each other session, what becomes readable when it ends."""
        self._is_look_due = False

    @classmethod
    async def open(cls, directory: str, thread: Executor, *, is_synced: bool = True) -> Self:
        """Open or create the store in a directory. `thread` runs one thing at a time, and ours
        only.

        Raises `FormatError`, `ConfigError` for a directory that is not on a local disk, and
        `DirectoryInUseError` for one that another host uses."""
        loop = asyncio.get_running_loop()
        tree = await loop.run_in_executor(thread, lambda: SharedTree(directory, is_synced=is_synced))
        store = cls(tree, thread, loop)
        loop.add_reader(tree.own.wake, store._on_wake)
        await loop.run_in_executor(thread, store._look)
        return store

    async def sync(self) -> None:
        """Reads show everything anyway; watchers have heard of it as well when this returns."""
        await self._call(self._look)

    async def close(self) -> None:
        if self._state is SessionState.LOST:
            return
        self._state = SessionState.LOST
        self._loop.remove_reader(self._tree.own.wake)
        try:
            await self._loop.run_in_executor(self._thread, self._tree.close)
        finally:
            for number in list(self._ends):
                self._forget(number)
            self._watches.notify_session(self._state)

    def abandon(self) -> None:
        """Let go of everything as the kernel does when a process is killed. For tests that give up a node,
        from any thread: neither the event loop nor the thread of this store may run any more."""
        self._state = SessionState.LOST
        self._tree.abandon()
        while self._ends:
            os.close(self._ends.popitem()[1])

    async def _call(self, work: Callable[[], T]) -> T:
        try:
            return await super()._call(work)
        except (sqlite3.Error, OSError) as error:
            raise UnreachableError(f"The shared metadata cannot be read: {error}.") from error

    def _make_parents(self, path: str) -> None:
        """Another session may be making them at the same time."""
        above = parent_of(path)
        while above and self._tree.get(above) is None:
            missing: list[Operation] = []
            while above and self._tree.get(above) is None:
                missing.append(Create(above))
                above = parent_of(above)
            try:
                self._apply(missing[::-1])
            except NodeExistsError:
                above = parent_of(path)

    def _set(self, path: str, data: bytes, expected_version: int | None) -> int:
        version = self._tree.apply([Set(path, data, expected_version)], version_of=path)
        self._look_after_write()
        assert version is not None
        return version

    def _apply(self, operations: Sequence[Operation]) -> None:
        self._tree.apply(operations)
        self._look_after_write()

    def _look_after_write(self) -> None:
        """What was written stands, also when the look fails: that is tried again, and the caller is not told
        that the write has failed."""
        try:
            self._look()
        except (sqlite3.Error, OSError, StoreError) as error:
            self._loop.call_soon_threadsafe(self._look_later, error)

    def _on_wake(self) -> None:
        self._tree.own.heed()
        self._look_soon()

    def _on_end(self, number: int) -> None:
        self._forget(number)
        self._look_soon()

    def _look_soon(self) -> None:
        """Once for all who rang before it begins."""
        if self._is_look_due or self._state is not SessionState.CONNECTED:
            return
        self._is_look_due = True
        self._loop.run_in_executor(self._thread, self._look).add_done_callback(self._on_looked)

    def _on_looked(self, look: "asyncio.Future[None]") -> None:
        if look.cancelled() or self._state is not SessionState.CONNECTED:
            return
        if (error := look.exception()) is not None:
            self._look_later(error)

    def _look_later(self, error: BaseException) -> None:
        _logger.warning("The shared metadata cannot be read, tried again in %s s: %s", _LOOK_AGAIN_S, error)
        self._loop.call_later(_LOOK_AGAIN_S, self._look_soon)

    def _look(self) -> None:
        """In the thread: end sessions that are gone, find out what changed, and have the event loop tell."""
        self._is_look_due = False
        self._tree.end_the_dead()
        news = self._tree.look()
        ends = {each: self._tree.listen_for_end(each) for each in news.sessions if each not in self._ends}
        # Queued before the caller's future is resolved, and even when the caller has been cancelled.
        self._loop.call_soon_threadsafe(self._tell, news, ends)

    def _tell(self, news: News, ends: dict[int, int | None]) -> None:
        for number, descriptor in ends.items():
            if descriptor is None:
                self._look_soon()  # It ended meanwhile.
            elif number in self._ends or self._state is not SessionState.CONNECTED:
                os.close(descriptor)
            else:
                self._ends[number] = descriptor
                self._loop.add_reader(descriptor, self._on_end, number)
        self._watches.notify(news.changed)

    def _forget(self, number: int) -> None:
        descriptor = self._ends.pop(number, None)
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
