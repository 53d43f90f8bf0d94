"""Several nodes as one cluster in this process: one event loop, one simulated store, real sockets.

For tests that ask what brokers are to each other. Faults of the network and the disk are the simulator's
(`riverlog.testing.simulation`). A node that is killed leaves its directory as a crash would; its session ends
at once, as by a store that sees the process go.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from riverlog.metadata.image import ClusterImage
from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.disk import Disk
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import MetadataStore
from riverlog.node.node import Node
from riverlog.replication.replica_set import ReplicaSet
from riverlog.testing.in_process import ask
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from riverlog.wire.schema import Message
from tests.waiting import until

LISTENER: Final = "PLAINTEXT"
WAIT_S: Final = 20.0

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class PartedNode(Node):
    """A node that keeps hold of its replicas, for tests that ask for roles."""

    replicas: ReplicaSet

    async def _serve(self, store: MetadataStore, replicas: ReplicaSet, *others: Any) -> None:
        self.replicas = replicas
        await super()._serve(store, replicas, *others)


class ClusterNode:
    """One broker of the cluster, alive or not. What stays is its number, its directory and its settings."""

    def __init__(
        self, cluster: "NodeCluster", node_id: int, directory: str, settings: dict[str, str]
    ) -> None:
        self.node_id = NodeId(node_id)
        self.directory = directory
        self.settings = settings
        self.disk: Disk | None = None
        """One that fails on request; the real one by default."""
        self.boot_id = "first start"
        """Of its machine; another one after a power cut."""
        self._ensemble = cluster.ensemble
        self._node: PartedNode | None = None
        self._session: SimulatedStore | None = None

    @property
    def is_alive(self) -> bool:
        return self._node is not None

    @property
    def node(self) -> PartedNode:
        assert self._node is not None, f"broker {self.node_id} is not running"
        return self._node

    @property
    def session(self) -> SimulatedStore:
        """Its session with the store, which a test may suspend or expire."""
        assert self._session is not None
        return self._session

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker sees it."""
        return self.node.image

    @property
    def replicas(self) -> ReplicaSet:
        return self.node.replicas

    @property
    def bootstrap_servers(self) -> str:
        return str(self.node.addresses[LISTENER])

    async def start(self) -> None:
        assert self._node is None
        node = PartedNode(
            combine([from_mapping(self.settings, "test")]),
            disk=self.disk,
            open_store=self._open_store,
            boot_id=lambda: self.boot_id,
        )
        await node.start()
        self._node = node

    async def stop(self) -> None:
        """As by SIGTERM."""
        node, self._node = self.node, None
        await node.stop()

    async def kill(self) -> None:
        """Gone without saving anything. Its session ends with it."""
        node, self._node = self.node, None
        await node.stop(clean=False)

    async def ask(self, request: Message, reply: type[R], version: int | None = None) -> R:
        """Ask this broker, and no other, without a socket."""
        return await ask(self.node.dispatcher, LISTENER, request, reply, version)

    async def _open_store(self, directory: str) -> MetadataStore:
        self._session = self._ensemble.connect(owner=f"broker {self.node_id}")
        return self._session


class NodeCluster:
    """Use `running_cluster`."""

    def __init__(self, directory: str, settings: dict[str, str]) -> None:
        self.ensemble = SimulatedEnsemble()
        self.brokers: dict[int, ClusterNode] = {}
        self._directory = directory
        self._settings = settings

    async def add(self, node_id: int, disk: Disk | None = None, **settings: str) -> ClusterNode:
        """Start one more broker; in names of settings an underscore stands for a dot."""
        directory = f"{self._directory}/broker-{node_id}"
        given = {
            "node.id": str(node_id),
            "log.dirs": directory,
            "listeners": f"{LISTENER}://127.0.0.1:0",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "5",
            **self._settings,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        broker = self.brokers[node_id] = ClusterNode(self, node_id, directory, given)
        broker.disk = disk
        await broker.start()
        return broker

    def __getitem__(self, node_id: int) -> ClusterNode:
        return self.brokers[node_id]

    @property
    def alive(self) -> list[ClusterNode]:
        return [broker for broker in self.brokers.values() if broker.is_alive]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.alive)

    @property
    def controller(self) -> ClusterNode:
        """The broker that all of them take for the controller."""
        [controller_id] = {broker.image.controller_id for broker in self.alive}
        assert controller_id is not None
        return self.brokers[controller_id]

    @property
    def others(self) -> list[ClusterNode]:
        """The brokers that are alive and not the controller."""
        return [broker for broker in self.alive if broker is not self.controller]

    async def until(self, condition: Callable[[], object], what: str = "it did not come about") -> None:
        """Return when the condition holds; fail with `what` when it does not in time."""
        await until(condition, what, WAIT_S)

    async def until_all_see(self, condition: Callable[[ClusterImage], object], what: str = "") -> None:
        """Return when the images of all brokers that are alive fulfil the condition."""
        await self.until(
            lambda: all(condition(broker.image) for broker in self.alive), what or "not all brokers see it"
        )

    async def stop(self) -> None:
        for broker in reversed(self.alive):
            await broker.stop()


@asynccontextmanager
async def running_cluster(brokers: int = 3, **settings: str) -> AsyncIterator[NodeCluster]:
    """Brokers 1, 2, … of one cluster; in names of settings an underscore stands for a dot."""
    with tempfile.TemporaryDirectory(prefix="riverlog-cluster-") as directory:
        cluster = NodeCluster(directory, {name.replace("_", "."): value for name, value in settings.items()})
        try:
            for node_id in range(1, brokers + 1):
                await cluster.add(node_id)
            await cluster.until_all_see(
                lambda image: len(image.brokers) == brokers and image.controller_id is not None
            )
            yield cluster
        finally:
            await cluster.stop()


def run(scenario: Callable[[NodeCluster], Awaitable[None]], brokers: int = 3, **settings: str) -> None:
    """Run a scenario on a cluster of its own."""

    async def main() -> None:
        async with running_cluster(brokers, **settings) as cluster:
            await scenario(cluster)

    asyncio.run(main())


async def in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """What blocks, as most clients do, beside the loop on which the brokers run."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, work, *arguments)
