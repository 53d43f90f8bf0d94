"""A whole broker as a process of the simulation: started, killed, stopped, started again.

It is the `Node` that `riverlog serve` starts, on simulated ports. `ObservedNode` remembers the parts that it
is composed of, for the checks, and counts what they do; it changes nothing about that. What survives a life
is the machine's: the disk, the wall clock, the store.
"""

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any
from uuid import UUID

from riverlog.metadata.image import ClusterImage
from riverlog.model.config.parse import combine, from_mapping
from riverlog.model.config.settings import Settings
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.model.metadata_store import MetadataStore
from riverlog.node.coordinators import Coordinators
from riverlog.node.node import Node
from riverlog.replication.following.copies import Copies, Outcome
from riverlog.replication.following.followed import Followed
from riverlog.replication.idle_logs import INTERVAL_MS
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.files.checkpoint import partition_of
from riverlog.storage.log.closed_log import LogFacts
from riverlog.testing.simulated_disk import SimulatedDisk
from riverlog.testing.simulated_store import SimulatedEnsemble, SimulatedStore
from riverlog.testing.simulation.machine.clocks import MachineClock
from riverlog.testing.simulation.machine.executors import VirtualThreads
from riverlog.testing.simulation.machine.lives import Life
from riverlog.testing.simulation.machine.loop import VirtualLoop
from riverlog.testing.simulation.machine.network import SimulatedWires
from riverlog.testing.simulation.trace import Trace

_PORT = 9092


class State(Enum):
    DOWN = "down"
    STARTING = "starting"
    SERVING = "serving"
    STOPPING = "stopping"


class _ObservedCopies(Copies):
    on_diverging: Callable[[], None]

    def truncate(self, followed: Followed, epoch: LeaderEpoch, end_offset: int) -> Outcome:
        self.on_diverging()
        return super().truncate(followed, epoch, end_offset)


class ObservedNode(Node):
    replicas: ReplicaSet
    directories: DataDirectories
    coordinators: Coordinators
    on_recovered: Callable[["ObservedNode"], None]
    on_diverging: Callable[[], None]
    """A leader has answered a fetch with where the logs part."""

    @property
    def image(self) -> ClusterImage:
        return self._follower.image

    @property
    def holds_image(self) -> bool:
        """Whether it goes on with what it knows: the store has come back, perhaps as an older one, and has
        shown nothing since that is followed."""
        return self._follower._may_be_older

    def log_directories_of(self, topic: str, index: int) -> list[str]:
        """Where the log of a partition is."""
        found = self.directories.directory_of(TopicPartition(topic, index))
        return [] if found is None else [f"{found.path}/{topic}-{index}"]

    def closed_logs(self) -> Iterator[tuple[TopicPartition, str, LogFacts]]:
        """With their directories, as far as anything is known of them."""
        for directory in self.directories.online:
            for name, facts in directory.logs._closed._facts.items():
                yield partition_of(name), f"{directory.path}/{name}", facts

    async def _serve(
        self,
        store: MetadataStore,
        replicas: ReplicaSet,
        directories: DataDirectories,
        coordinators: Coordinators,
        *others: Any,
    ) -> None:
        self.replicas, self.directories, self.coordinators = replicas, directories, coordinators
        self.on_recovered(self)
        await super()._serve(store, replicas, directories, coordinators, *others)

    def _start_following(self, replicas: ReplicaSet, directories: DataDirectories) -> None:
        super()._start_following(replicas, directories)
        assert self._following is not None
        following = self._following.following
        copies = _ObservedCopies(replicas, self.metrics)
        copies.on_diverging = self.on_diverging
        following._copies = copies
        for fetcher in following._fetchers.values():
            fetcher._copies = copies


class SimulatedNode:
    def __init__(
        self,
        name: str,
        node_id: int,
        settings: Mapping[str, object],
        loop: VirtualLoop,
        wires: SimulatedWires,
        trace: Trace,
        chance: random.Random,
        ensemble: SimulatedEnsemble,
        connect: Callable[[str, Life], SimulatedStore] | None = None,
    ) -> None:
        """`connect` begins sessions with an ensemble that several nodes share; without it the ensemble is the
        node's own."""
        self.name = name
        self._given = {
            "node.id": node_id,
            "log.dirs": "/data",
            "riverlog.insecure": "true",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "listeners": f"PLAINTEXT://{name}:{_PORT}",
            "riverlog.host": name,
            **settings,
        }
        self._loop, self._wires, self._trace, self._chance = loop, wires, trace, chance
        self.clock = MachineClock(loop)
        self.disk = SimulatedDisk(now_ms=self.clock.wall_ms)
        self.ensemble = ensemble
        self._connect = connect
        self.node_id = node_id
        self.state = State.DOWN
        self.life = Life(name, 0)
        self.life.end()
        self.clock_rate = 1.0
        self.idle_looks_ms = INTERVAL_MS
        self.node: ObservedNode | None = None
        """From when it has recovered, and may serve, to its end."""
        self.session: SimulatedStore | None = None
        self.failure: BaseException | None = None
        """Why the last start failed."""
        self._watch: asyncio.Task[None] | None = None
        self.starts = 0
        self.boots = 1
        """How often the machine was switched on."""
        self.on_recovered: Callable[[SimulatedNode, ObservedNode], None] = lambda node, parts: None
        self.on_serving: Callable[[SimulatedNode], None] = lambda node: None
        self.on_starting: Callable[[SimulatedNode], None] = lambda node: None
        self.on_stopped: Callable[[SimulatedNode, ObservedNode], None] = lambda node, parts: None
        self.on_ending: Callable[[SimulatedNode], None] = lambda node: None
        self.diverging_fetches = 0

    @property
    def log_directories(self) -> list[str]:
        return str(self._given["log.dirs"]).split(",")

    @property
    def is_serving(self) -> bool:
        return self.state is State.SERVING

    def start(self) -> None:
        assert self.state is State.DOWN
        self.starts += 1
        self.life = life = Life(self.name, self.starts, clock_rate=self.clock_rate)
        self.state, self.failure = State.STARTING, None
        self.on_starting(self)
        self._trace.note(self.name, "starts", life=life.number)
        life.run(lambda: self._loop.create_task(self._start(life)))

    def kill(self) -> None:
        """kill -9: what was written stays, everybody connected is told by the machine."""
        self._end("is killed", silently=False)
        self.disk.kill()

    def power_cut(self, seed: int) -> None:
        """The machine goes: what was not synced may be lost, nobody is told."""
        self._end("loses power", silently=True)
        self.boots += 1
        self.disk.crash(seed)
        losses = self.disk.losses
        self._trace.note(self.name, "has lost", writes=losses.lost_writes, torn=losses.torn_writes)

    def lose_disk(self, directories: Sequence[str]) -> None:
        """The machine comes back with empty disks in the place of these."""
        self._end("loses disks", silently=True)
        self.boots += 1
        self.disk.kill()
        for each in directories:
            if self.disk.exists(each):
                self.disk.lose(each)

    def pause(self, for_s: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        self._trace.note(self.name, "is stopped", for_s=round(for_s, 3))
        self._loop.hold(self.life, self._loop.now_s + for_s, threads=True)

    def stall(self, for_s: float) -> None:
        """Its loop does nothing for a while; its threads go on."""
        self._trace.note(self.name, "stalls", for_s=round(for_s, 3))
        self._loop.hold(self.life, self._loop.now_s + for_s, threads=False)

    def stop(self) -> None:
        """SIGTERM."""
        assert self.state is State.SERVING
        self.state = State.STOPPING
        self._trace.note(self.name, "is asked to stop")
        life, node = self.life, self.node
        assert node is not None
        life.run(lambda: self._loop.create_task(self._stop(life, node)))

    @cached_property
    def _settings(self) -> Settings:
        return combine([from_mapping(self._given, "simulation")])

    def _compose(self, life: Life) -> ObservedNode:
        node = ObservedNode(
            self._settings,
            disk=self.disk,
            clock=self.clock.of(life),
            network=self._wires.join(life, self.name),
            open_store=self._open_store,
            random=random.Random(self._chance.random()),
            new_id=lambda: UUID(int=self._chance.getrandbits(128), version=4),
            new_executor=VirtualThreads,
            boot_id=lambda: f"{self.name}, switched on {self.boots} times",
        )
        node.on_recovered = self._recovered
        node.idle_looks_ms = self.idle_looks_ms
        node.on_diverging = self._diverges
        return node

    def _diverges(self) -> None:
        self.diverging_fetches += 1

    def _recovered(self, parts: ObservedNode) -> None:
        self.node = parts
        self.on_recovered(self, parts)

    async def _start(self, life: Life) -> None:
        try:
            node = self._compose(life)
            await node.start()
        except Exception as error:  # noqa: BLE001 - told to whoever supervises the process
            self._trace.note(self.name, "cannot start", error=str(error))
            self.failure = error
            self._loop.call_soon(self._exited, life, context=self._loop.world.context)
            return
        self.state = State.SERVING
        self._trace.note(self.name, "serves")
        self.on_serving(self)
        self._watch = self._loop.create_task(self._exit_when_failed(life, node))

    async def _exit_when_failed(self, life: Life, node: ObservedNode) -> None:
        """As `riverlog serve` does when no directory is left."""
        await node.has_failed.wait()
        if self.state is State.SERVING:
            self.state = State.STOPPING
            self._trace.note(self.name, "has no directory left")
            await self._stop(life, node, clean=False)

    async def _open_store(self, directory: str) -> MetadataStore:
        if self._connect is None:
            self.ensemble.end_sessions_of(self.name)
            self.session = self.ensemble.connect(owner=self.name)
        else:
            self.session = self._connect(self.name, self.life)
        return self.session

    async def _stop(self, life: Life, node: ObservedNode, *, clean: bool = True) -> None:
        try:
            await node.stop(clean=clean)
        except Exception as error:  # noqa: BLE001 - a disk that has failed may fail the shutdown as well
            self._trace.note(self.name, "fails to stop", error=str(error))
            self.failure = error
        self._loop.call_soon(self._stopped, life, node, context=self._loop.world.context)

    def _stopped(self, life: Life, parts: ObservedNode) -> None:
        if life.is_alive and self.failure is None:
            self.on_stopped(self, parts)
        self._exited(life)

    def _exited(self, life: Life) -> None:
        """The process has come to its end by itself."""
        if life.is_alive:
            self._end("exits", silently=False)
            self.disk.kill()

    def _end(self, how: str, *, silently: bool) -> None:
        self._trace.note(self.name, how, state=self.state.value)
        self.on_ending(self)
        life = self.life
        self._wires.leave(life, self.name, silently=silently)
        self.disk.unplug()
        if self.session is not None:
            self.session.abandon()
        life.end()
        self.state, self.node, self.session = State.DOWN, None, None

    def unfinished(self) -> "list[asyncio.Task[Any]]":
        return [each for each in self.life.tasks() if each is not self._watch]
