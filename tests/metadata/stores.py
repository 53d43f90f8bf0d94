"""The stores on which the conformance suite runs: how each is opened, and opened again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from riverlog.metadata.stores.embedded_store import EmbeddedStore
from riverlog.metadata.stores.shared.store import SharedStore
from riverlog.model.metadata_store import MetadataStore
from riverlog.testing.simulated_store import SimulatedEnsemble

Reopen = Callable[[], Awaitable[MetadataStore]]
"""Another session on the same nodes. On a store of one node only after the first was closed."""
OpenStore = Callable[[], AbstractAsyncContextManager[tuple[MetadataStore, Reopen]]]


def embedded(directory: Path) -> OpenStore:
    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        opened: list[MetadataStore] = []

        async def reopen() -> MetadataStore:
            path = str(directory / "metadata.sqlite")
            opened.append(await EmbeddedStore.open(path, ThreadPoolExecutor(1)))
            return opened[-1]

        try:
            yield await reopen(), reopen
        finally:
            for store in opened:
                await store.close()

    return opening


def simulated(directory: Path) -> OpenStore:
    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        ensemble = SimulatedEnsemble()

        async def reopen() -> MetadataStore:
            return ensemble.connect()

        yield ensemble.connect(), reopen

    return opening


def shared(directory: Path) -> OpenStore:
    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        opened: list[MetadataStore] = []

        async def reopen() -> MetadataStore:
            opened.append(await SharedStore.open(str(directory), ThreadPoolExecutor(1)))
            return opened[-1]

        try:
            yield await reopen(), reopen
        finally:
            for store in opened:
                await store.close()

    return opening


STORES: Final[dict[str, Callable[[Path], OpenStore]]] = {
    "embedded": embedded,
    "shared": shared,
    "simulated": simulated,
}
SHARED: Final = ["shared", "simulated"]
"""Those that several sessions use at a time."""
