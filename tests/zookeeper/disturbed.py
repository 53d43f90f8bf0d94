"""A store whose operations are disturbed, one after the other, by the proxies that it goes through.

Its user sees a store like any other: a write whose answer is lost is looked for, as everybody does who writes
without a word of doubt left over (`metadata.outcomes`), and made again where it was not carried out.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import TypeVar

from riverlog.metadata.outcomes import has_happened
from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
from riverlog.model.metadata_store import (
    Check,
    Create,
    Delete,
    Operation,
    OutcomeUnknownError,
    SessionState,
    Set,
    Versioned,
    WatchEvent,
    Watching,
)
from tests.waiting import until
from tests.zookeeper.proxies import Proxies, Proxy

T = TypeVar("T")


class Disturbance(Enum):
    LOST_ANSWER = "the answer is swallowed and the connection cut"
    OTHER_SERVER = "the connection is cut before, and the session goes on at another server"


class DisturbedStore:
    """What a watcher is told of goes the way of answers. So nothing is swallowed once there is one: it would
    have to read everything again, as `MetadataFollower` does."""

    def __init__(self, store: ZooKeeperStore, between: Proxies, disturbance: Disturbance) -> None:
        self._store, self._between, self._disturbance = store, between, disturbance
        self._is_watched = self._is_disturbing = False
        self._suspensions = 0
        store.watch_session(self._on_session)
        self.disturbed = 0

    @property
    def session_state(self) -> SessionState:
        return self._store.session_state

    @property
    def lease_until_s(self) -> float:
        return self._store.lease_until_s

    @property
    def multi_bytes_max(self) -> int:
        return self._store.multi_bytes_max

    async def sync(self) -> None:
        await self._disturb(self._store.sync)

    async def get(self, path: str) -> Versioned | None:
        return await self._disturb(lambda: self._store.get(path))

    async def children(self, path: str) -> list[str]:
        return await self._disturb(lambda: self._store.children(path))

    async def tree(self, path: str) -> dict[str, Versioned]:
        return await self._disturb(lambda: self._store.tree(path))

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        def make() -> Awaitable[str]:
            return self._store.create(path, data, ephemeral=ephemeral, sequential=sequential)

        if not sequential:
            return await self._write(make, Create(path, data, ephemeral)) or path
        parent = path.rpartition("/")[0]
        before = await self._store.children(parent)
        try:
            return await self._disturb(make)
        except OutcomeUnknownError:
            await self._store.sync()
            made = set(await self._store.children(parent)) - set(before)
            return f"{parent}/{made.pop()}" if made else await make()

    async def set(self, path: str, data: bytes, *, expected_version: int | None = None) -> int:
        def change() -> Awaitable[int]:
            return self._store.set(path, data, expected_version=expected_version)

        version = await self._write(change, Set(path, data, expected_version))
        if version is None:
            node = await self._store.get(path)
            assert node is not None
            version = node.version
        return version

    async def delete(self, path: str, *, expected_version: int | None = None) -> None:
        await self._write(
            lambda: self._store.delete(path, expected_version=expected_version),
            Delete(path, expected_version),
        )

    async def multi(self, operations: Sequence[Operation]) -> None:
        # The last: what comes before it may have been changed again by the same multi.
        proof = next((each for each in reversed(operations) if not isinstance(each, Check)), None)
        if proof is None:
            await self._store.multi(operations)
        else:
            await self._write(lambda: self._store.multi(operations), proof)

    def watch(self, path: str, callback: Callable[[WatchEvent], None]) -> Watching:
        self._is_watched = True
        return self._store.watch(path, callback)

    def watch_session(self, callback: Callable[[SessionState], None]) -> Watching:
        return self._store.watch_session(callback)

    async def close(self) -> None:
        await self._store.close()

    async def _write(self, write: Callable[[], Awaitable[T]], proof: Operation) -> T | None:
        """None where it was carried out and the answer was lost."""
        is_closed = self._store.session_state is SessionState.LOST
        before = None if is_closed else await self._store.get(proof.path)
        is_first = True
        while True:
            try:
                return await (self._disturb(write) if is_first else write())
            except OutcomeUnknownError:
                await self._store.sync()
                is_changed = _stamp(before) != _stamp(await self._store.get(proof.path))
                if is_changed and await has_happened(self._store, proof):
                    return None
                is_first = False  # The next may still meet the disturbance of another.

    async def _disturb(self, work: Callable[[], Awaitable[T]]) -> T:
        """Others that are under way meanwhile share the disturbance."""
        if self._is_disturbing or self._store.session_state is SessionState.LOST:
            return await work()
        self._is_disturbing = True
        try:
            if self._disturbance is Disturbance.LOST_ANSWER and not self._is_watched:
                return await self._lose_the_answer(work)
            await self._go_to_another_server()
            return await work()
        finally:
            self._is_disturbing = False
            self.disturbed += 1

    async def _lose_the_answer(self, work: Callable[[], Awaitable[T]]) -> T:
        proxy = self._between.used
        proxy.swallows, proxy.swallowed = True, 0
        working: asyncio.Future[T] = asyncio.ensure_future(work())
        await until(lambda: proxy.swallowed or working.done())
        proxy.swallows = False
        try:
            await self._cut(proxy)
        finally:
            await asyncio.wait([working])
        return working.result()

    async def _go_to_another_server(self) -> None:
        proxy = self._between.used
        proxy.is_open = False
        await self._cut(proxy)
        proxy.is_open = True
        assert self._between.used is not proxy

    async def _cut(self, proxy: Proxy) -> None:
        before = self._suspensions
        proxy.cut()
        await until(lambda: self._suspensions > before)
        await until_settled(self._store, self._between)

    def _on_session(self, state: SessionState) -> None:
        self._suspensions += state is SessionState.SUSPENDED


async def until_settled(store: ZooKeeperStore, between: Proxies) -> None:
    """Connected, by one connection: what is left of the one before is gone."""
    await until(
        lambda: (
            store.session_state is SessionState.CONNECTED and sum(each.is_used for each in between.all) == 1
        )
    )


def _stamp(node: Versioned | None) -> tuple[int, int] | None:
    return None if node is None else (node.created, node.modified)
