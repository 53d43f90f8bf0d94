"""The conformance suite on a real ZooKeeper ensemble of three servers, through proxies: every operation loses
its answer or goes to another server, and each session follows one that the ensemble has ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

import pytest
from kazoo.client import KazooClient

from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
from riverlog.model.metadata_store import MetadataStore, SessionState
from tests.metadata import test_store_conformance as suite
from tests.metadata.stores import OpenStore, Reopen
from tests.waiting import until
from tests.zookeeper.behind_proxies import open_at
from tests.zookeeper.disturbed import Disturbance, DisturbedStore, until_settled
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.proxies import proxies

_chroots = count()

globals().update({name: each for name, each in vars(suite).items() if name.startswith("test_")})


@pytest.fixture(params=Disturbance)
def open_store(request: pytest.FixtureRequest, ensemble: Ensemble) -> OpenStore:
    chroot = f"/disturbed/{next(_chroots)}"

    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[MetadataStore, Reopen]]:
        async with AsyncExitStack() as opened:

            async def reopen() -> MetadataStore:
                between = await opened.enter_async_context(proxies(ensemble.addresses))
                store = await open_at(between.servers, chroot)
                opened.push_async_callback(store.close)
                await _in_its_second_session(ensemble, store)
                await until_settled(store, between)
                disturbed.append(DisturbedStore(store, between, request.param))
                return disturbed[-1]

            disturbed: list[DisturbedStore] = []
            yield await reopen(), reopen
            # One test does nothing but close it.
            assert any(each.disturbed or each.session_state is SessionState.LOST for each in disturbed)

    return opening


@pytest.fixture
def open_shared(open_store: OpenStore) -> OpenStore:
    return open_store


async def _in_its_second_session(ensemble: Ensemble, store: ZooKeeperStore) -> None:
    """The ensemble ends the first, as a second client under its number has it do."""
    first = store._session
    twin = KazooClient(ensemble.servers, client_id=first._client.client_id)
    await asyncio.to_thread(twin.start)
    await asyncio.to_thread(twin.stop)
    twin.close()
    await until(lambda: store._session is not first)
