"""The conformance suite on a real ZooKeeper ensemble of three servers."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count

import pytest

from riverlog.metadata.stores.zookeeper_servers import ConnectString
from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
from riverlog.model.metadata_store import MetadataStore
from tests.metadata import test_store_conformance as suite
from tests.metadata.stores import OpenStore, Reopen
from tests.zookeeper.ensemble import Ensemble

_chroots = count()

globals().update({name: each for name, each in vars(suite).items() if name.startswith("test_")})


@pytest.fixture
def open_store(ensemble: Ensemble) -> OpenStore:
    connect = ConnectString(ensemble.servers, f"/chroot/{next(_chroots)}")

    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        opened: list[MetadataStore] = []

        async def reopen() -> MetadataStore:
            opened.append(
                await ZooKeeperStore.open(
                    connect, session_timeout_s=10, connection_timeout_s=60, thread=ThreadPoolExecutor(1)
                )
            )
            return opened[-1]

        try:
            yield await reopen(), reopen
        finally:
            for store in opened:
                await store.close()

    return opening


@pytest.fixture
def open_shared(open_store: OpenStore) -> OpenStore:
    return open_store
