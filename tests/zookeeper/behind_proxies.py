"""A ZooKeeper store behind proxies, and one beside them."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from riverlog.metadata.stores.zookeeper_servers import ConnectString
from riverlog.metadata.stores.zookeeper_store import ZooKeeperStore
from riverlog.model.metadata_store import SessionState
from tests.zookeeper.ensemble import Ensemble
from tests.zookeeper.proxies import Proxies, proxies

WAIT_S = 60.0
SHORT_S = 1.0
LONG_S = 20.0
_chroots = count()


async def open_at(
    servers: str, chroot: str, *, session_s: float = LONG_S, wait_s: float | None = WAIT_S
) -> ZooKeeperStore:
    return await ZooKeeperStore.open(
        ConnectString(servers, chroot),
        session_timeout_s=session_s,
        connection_timeout_s=wait_s,
        thread=ThreadPoolExecutor(1),
    )


Scenario = Callable[[ZooKeeperStore, Proxies, ZooKeeperStore], Awaitable[None]]


def run(ensemble: Ensemble, scenario: Scenario, session_s: float = LONG_S) -> None:
    """A store behind proxies, the proxies, and a store beside them."""

    async def main() -> None:
        chroot = f"/faults/{next(_chroots)}"
        async with proxies(ensemble.addresses) as between:
            beside = await open_at(ensemble.servers, chroot)
            store = await open_at(between.servers, chroot, session_s=session_s)
            try:
                await scenario(store, between, beside)
            finally:
                await store.close()
                await beside.close()

    asyncio.run(main())


def states_of(store: ZooKeeperStore) -> list[SessionState]:
    states: list[SessionState] = []
    store.watch_session(states.append)
    return states
