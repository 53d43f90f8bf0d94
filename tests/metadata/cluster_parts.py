"""A metadata store, its follower and a controller on it, for tests that need the three together."""

import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

from riverlog.controller.controller import Controller
from riverlog.controller.decisions.topics import TopicRules
from riverlog.metadata import cluster, layout
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.registration import Registrant, register
from riverlog.metadata.stores.embedded_store import EmbeddedStore
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import MetadataStore
from riverlog.model.network import Address
from riverlog.testing.simulated_store import SimulatedEnsemble

NODE = NodeId(1)
CLUSTER_ID = UUID(int=7)
LISTENER = "PLAINTEXT"


@dataclass
class Parts:
    store: MetadataStore
    follower: MetadataFollower
    controller: Controller


def registrant(number: int, directories: Iterable[int] = (1,), host: str = "h") -> Registrant:
    return Registrant(
        NodeId(number),
        {
            LISTENER: Address("127.0.0.1", 9091 + number),
            "INNER": Address(f"node{number}", 19091 + number),
        },
        {LISTENER: "PLAINTEXT", "INNER": "PLAINTEXT"},
        f"rack{number}",
        host,
        "boot",
        tuple(UUID(int=each) for each in directories),
    )


@asynccontextmanager
async def running(
    store: MetadataStore | None = None,
    *,
    brokers: int = 1,
    rules: Callable[[], TopicRules] = TopicRules,
) -> AsyncIterator[Parts]:
    """Node 1 is the controller; further brokers are only registered."""
    store = store or SimulatedEnsemble().connect()
    await cluster.prepare(store, remembered=None, fresh_id=CLUSTER_ID)
    for number in range(1, brokers + 1):
        await register(store, registrant(number), now_ms=0)
    follower = MetadataFollower(store)
    await follower.start()
    controller = Controller(
        store,
        follower,
        NODE,
        rules=rules,
        new_id=uuid4,
        random=random.Random(1),
        wall_ms=lambda: 1_700_000_000_000,
        is_alone=isinstance(store, EmbeddedStore),
    )
    await controller.start()
    assert (await store.get(layout.CONTROLLER)) is not None
    try:
        yield Parts(store, follower, controller)
    finally:
        await controller.close()
        await follower.close()
        await store.close()
