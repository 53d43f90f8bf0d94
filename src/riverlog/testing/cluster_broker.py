"""A broker of a `Cluster`: one like `Broker`, on a thread of its own, that can be held, given up and cut off.

Its metadata is in the store that the brokers of the cluster share. `kill` gives the event loop up in the
middle of whatever it does: nothing is flushed, answered or closed any more; only what the kernel takes from
a process that is killed is let go, sockets and locks. The thread is left standing, as there is nothing to
end it with.
"""

import threading
from collections.abc import Collection
from concurrent.futures import Executor
from typing import Final

from riverlog.broker.net.network import AsyncNetwork
from riverlog.metadata.stores.shared.store import SharedStore
from riverlog.model.config.settings import Settings
from riverlog.model.metadata_store import MetadataStore
from riverlog.model.network import Address
from riverlog.node.adapters.system_clock import SystemClock
from riverlog.node.adapters.threads import thread_executor
from riverlog.node.node import Node
from riverlog.testing.broker import Broker
from riverlog.testing.cuttable_network import CuttableNetwork

_HELD_S: Final = 60.0


class ClusterBroker(Broker):
    def __init__(self, node_id: int, directory: str, settings: dict[str, object]) -> None:
        """`directory` is that of the cluster."""
        self.node_id = node_id
        self._metadata = f"{directory}/metadata"
        super().__init__(
            {**settings, "node.id": node_id}, data_dir=f"{directory}/broker-{node_id}", clock=SystemClock()
        )
        self._unreachable: Collection[Address] = ()
        self._may_go_on: threading.Event | None = None
        self._is_to_die = False

    @property
    def is_running(self) -> bool:
        return self._node is not None

    @property
    def is_paused(self) -> bool:
        return self._may_go_on is not None

    def kill(self) -> None:
        """As SIGKILL does, with a process."""
        if self._loop is None:
            return
        self._is_to_die = True
        is_gone = self._is_gone = threading.Event()
        self._loop.call_soon_threadsafe(self._die)
        self.resume()
        if not is_gone.wait(_HELD_S):
            raise TimeoutError(f"Broker {self.node_id} could not be killed: its event loop is busy.")
        self._thread = self._node = self._loop = None
        self._is_to_die = False

    def pause(self) -> None:
        """Hold the event loop, as SIGSTOP does with a process; its session with the store goes on."""
        if self._loop is None or self.is_paused:
            return
        is_held, may_go_on = threading.Event(), threading.Event()

        def hold() -> None:
            is_held.set()
            may_go_on.wait()
            if self._is_to_die:
                self._die()

        self._may_go_on = may_go_on
        self._loop.call_soon_threadsafe(hold)
        if not is_held.wait(_HELD_S):
            raise TimeoutError(f"Broker {self.node_id} could not be paused: its event loop is busy.")

    def resume(self) -> None:
        if self._may_go_on is not None:
            self._may_go_on.set()
            self._may_go_on = None

    def cut(self, unreachable: Collection[Address]) -> None:
        """From now on it reaches all other brokers but these."""
        self._unreachable = unreachable
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._network.cut, unreachable)

    def _stop(self, *, clean: bool) -> None:
        self.resume()
        super()._stop(clean=clean)

    def _abandon(self) -> None:
        self.resume()
        super()._abandon()

    def _new_node(self, settings: Settings) -> Node:
        self._executors: list[Executor] = []
        self._network = CuttableNetwork(AsyncNetwork())
        self._network.cut(self._unreachable)
        node = Node(
            settings,
            clock=self._clock,
            network=self._network,
            open_store=self._open_store,
            new_executor=self._new_executor,
            interception=self._faulting,
        )
        self._faulting.topic_name = lambda topic_id: node.image.topic_names.get(topic_id)
        return node

    async def _open_store(self, directory: str) -> MetadataStore:
        # Synced or not, it outlives the broker; only a loss of power would tell.
        self._store = await SharedStore.open(
            self._metadata, self._new_executor("metadata", 1), is_synced=False
        )
        return self._store

    def _new_executor(self, name: str, threads: int) -> Executor:
        executor = thread_executor(name, threads)
        self._executors.append(executor)
        return executor

    def _die(self) -> None:
        """In the event loop's own thread, which never comes back from here."""
        for executor in self._executors:
            executor.shutdown(cancel_futures=True)
        self.node.abandon()
        self._store.abandon()
        self._is_gone.set()
        threading.Event().wait()
