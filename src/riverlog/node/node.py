"""A node: settings in, a running broker out.

Starts from the disk upwards (directories, metadata, recovery, partitions, network) and stops in reverse.
Connections are served only once everything that answers them is there. Nothing that was started survives a
failed start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from uuid import UUID, uuid4

from riverlog.broker.dispatch.dispatcher import Dispatcher
from riverlog.broker.dispatch.door import OpenDoor
from riverlog.broker.dispatch.routes import routes_of
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.interception import Interception, NoInterception
from riverlog.controller.controller import Controller
from riverlog.metadata import cluster
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.metadata.registrar import Registrar
from riverlog.metadata.registration import has_other_boot_id
from riverlog.metadata.stores.shared import host
from riverlog.model.clock import Clock
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import LogConfig, ServerConfig
from riverlog.model.disk import Disk
from riverlog.model.executor import Executor, MakeExecutor
from riverlog.model.metadata_store import MetadataStore
from riverlog.model.metrics import Metrics
from riverlog.model.network import Address, Network
from riverlog.node.adapters.metrics import InMemoryMetrics
from riverlog.node.adapters.own_network import network_of
from riverlog.node.adapters.system_clock import SystemClock
from riverlog.node.adapters.threads import thread_executor
from riverlog.node.collaborators import collaborators_of
from riverlog.node.coordinators import Coordinators
from riverlog.node.descriptors import DescriptorShares
from riverlog.node.duties import Duties
from riverlog.node.failed_directories import FailedDirectories
from riverlog.node.following_parts import FollowingParts
from riverlog.node.handing_over import hand_over
from riverlog.node.live_config import LiveConfig
from riverlog.node.own_controller import controller_of
from riverlog.node.own_directories import join_cluster, open_directories
from riverlog.node.own_duties import cleaner_of, own_duties
from riverlog.node.peer_brokers import peers_of
from riverlog.node.registering import registrar_of
from riverlog.node.replication_parts import ReplicationParts
from riverlog.node.serving import MakeDoor, Serving
from riverlog.node.stores import is_shared, open_configured_store
from riverlog.node.surroundings import Surroundings
from riverlog.replication.idle_logs import INTERVAL_MS as IDLE_LOOKS_MS
from riverlog.replication.idle_logs import IdleLogs
from riverlog.replication.log_moves import LogMoves
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.unclaimed_logs import set_strays_aside
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.directory.gauges import measure_storage
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.disk.open_files import OpenFiles
from riverlog.storage.log.flusher import Flusher

_logger = logging.getLogger(__name__)
_SYNC_THREADS = 2
_SAVE_THREADS = 8
_COLD_READ_THREADS = 2


class Node:
    idle_looks_ms: int = IDLE_LOOKS_MS

    def __init__(
        self,
        settings: Settings,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        network: Network | None = None,
        metrics: Metrics | None = None,
        door: MakeDoor = OpenDoor,
        open_store: Callable[[str], Awaitable[MetadataStore]] | None = None,
        random: Random | None = None,
        new_id: Callable[[], UUID] = uuid4,
        new_executor: MakeExecutor = thread_executor,
        boot_id: Callable[[], str] = host.boot_id,
        interception: Interception | None = None,
        transaction_clock: Clock | None = None,
    ) -> None:
        """`door` makes what every request has to pass, from the routes that are served; `open_store` is given
        the data directory in which an embedded store would be. `interception` stands before the door, in
        tests. `transaction_clock` is for those who let time-outs of transactions go by another clock than the
        rest."""
        self.config = config = ServerConfig.from_settings(settings)
        self.metrics = metrics or InMemoryMetrics()
        self._given = Surroundings(
            settings,
            config,
            LiveConfig(settings, config.node_id),
            disk or LocalDisk(),
            clock or SystemClock(),
            network or network_of(settings, config),
            self.metrics,
            random or Random(),
            new_id,
            new_executor,
            boot_id,
            is_alone=open_store is None and not is_shared(config),
        )
        self._stack = self._given.stack
        self._make_door = door
        self._open_store = open_store or self._open_configured_store
        self._interception = interception or NoInterception()
        self._transaction_clock = transaction_clock or self._given.clock
        self._shares = DescriptorShares(config.open_files_max)
        self._open_files = OpenFiles(self._shares.open_files)
        self._is_clean = True
        self._serving: Serving | None = None
        self._registrar: Registrar | None = None
        self._following: FollowingParts | None = None
        self.has_failed = asyncio.Event()
        """Set when no data directory is left, and the broker has left its cluster: it is to be stopped."""

    @property
    def serving(self) -> Serving:
        assert self._serving is not None, "the node has not been started"
        return self._serving

    @property
    def addresses(self) -> Mapping[str, Address]:
        """What each listener is bound to, by name, with the port that was really taken."""
        return self.serving.listeners.bound

    @property
    def advertised(self) -> Mapping[str, Address]:
        """What clients are told, by listener name."""
        return self.serving.listeners.advertised

    @property
    def cluster_id(self) -> str:
        return self._follower.image.cluster_id

    @property
    def image(self) -> ClusterImage:
        """The cluster as this node sees it."""
        return self._follower.image

    @property
    def dispatcher(self) -> Dispatcher:
        """What answers a request, for whoever asks without a socket."""
        return self.serving.dispatcher

    @property
    def open_logs(self) -> int:
        return sum(each.open_count for each in self._directories.online)

    async def run_what_is_due(self) -> None:
        """Do now what time has brought, as after a jump of the clock: return when all of it is done.

        Ended transactions come first, because records behind an open one are neither deleted nor compacted.
        """
        await self._coordinators.run_what_is_due()
        await self._directories.run_what_is_due()
        await self._cleaner.clean_what_is_due()
        await self._idle_logs.close_some()

    async def start(self) -> None:
        """Raises `RiverlogError`, or `OSError` when an address cannot be bound."""
        try:
            await self._start()
        except BaseException:
            self._is_clean = False
            await self._stack.aclose()
            raise

    async def stop(self, *, clean: bool = True) -> None:
        """Stop serving and save everything; not clean: leave the disk as it is, as a crash would."""
        self._is_clean = clean
        if clean and self.config.hands_over and self._registrar is not None and not self._given.is_alone:
            await hand_over(self._follower, self._registrar, self.config.node_id)
        await self._stack.aclose()

    def abandon(self) -> None:
        """Let go of sockets and directories, as the kernel does when a process is killed: nothing is answered
        or saved. On the event loop, which must not run afterwards. For tests."""
        self.serving.close()
        self._peers.close()
        if self._following is not None:
            self._following.stop()
        self._directories.abandon()

    async def _start(self) -> None:
        given, thread = self._given, self._given.executor("storage", 1)
        flusher = Flusher(asyncio.get_running_loop(), executor=given.executor("sync", _SYNC_THREADS))
        self._directories = directories = await self._open_directories(thread, flusher)
        store = await self._open_store(directories.online[0].path)
        self._stack.push_async_callback(store.close)
        await join_cluster(given, store, directories.online)
        self._follower = follower = MetadataFollower(store)
        self._stack.push_async_callback(follower.close)
        replicas = ReplicaSet(
            self.config.node_id,
            directories,
            flusher,
            given.live_config.log_config,
            is_alone=given.is_alone,
        )
        follower.subscribe(replicas.apply)
        await follower.start()
        await self._set_strays_aside(store)
        was_switched_off = await has_other_boot_id(store, self.config.node_id, given.boot_id())
        has_open_transactions = await directories.recover()
        self._peers = peers_of(given, follower)
        self._producer_ids = producer_ids = ProducerIds(store, self.config.node_id, follow=follower.refresh)
        self._stack.push_async_callback(producer_ids.close)
        self._coordinators = coordinators = self._make_coordinators(replicas, producer_ids, thread)
        self._stack.callback(replicas.close)
        self._stack.push_async_callback(coordinators.close)
        if not given.is_alone:
            self._start_leading(store, replicas)
        directories.on_closed_cut(replicas.wake)
        self._idle_logs = IdleLogs(
            replicas,
            directories,
            flusher,
            self.config.open_logs_max,
            self.metrics,
            is_to_be_cleaned=lambda log: self._cleaner.is_to_be_cleaned(log),
        )
        moves = self._resume_moves(replicas, flusher)
        await self._serve(store, replicas, directories, coordinators, producer_ids, moves)
        coordinators.start(has_open_transactions, was_switched_off=was_switched_off)
        if not given.is_alone:
            self._start_following(replicas, directories)
            self._watch_directories(replicas, directories)
        self._start_duties(directories)
        self._start_cleaner(directories)

    async def _open_directories(self, thread: Executor, flusher: Flusher) -> DataDirectories:
        given = self._given
        logs, unusable = await asyncio.get_running_loop().run_in_executor(
            thread, open_directories, given, self._log_config, self._open_files
        )
        measure_storage(self.metrics, logs, self._open_files, unusable_count=len(unusable))
        directories = DataDirectories(
            logs,
            flusher,
            thread,
            given.clock,
            lambda: self._follower.image.hosted(self.config.node_id),
            unusable=unusable,
            savers=given.executor("save", _SAVE_THREADS),
        )
        self._stack.push_async_callback(self._close_directories, directories)
        self._stack.push_async_callback(flusher.drain)
        return directories

    async def _set_strays_aside(self, store: MetadataStore) -> None:
        set_strays_aside(
            self._directories.online,
            self._follower.image,
            self.config.node_id,
            accept_many=self.config.accept_strays,
            deleted=await cluster.deleted_topics(store),
        )
        self._directories.note_missing()

    def _make_coordinators(
        self, replicas: ReplicaSet, producer_ids: ProducerIds, thread: Executor
    ) -> Coordinators:
        given, loop = self._given, asyncio.get_running_loop()
        return Coordinators(
            given.settings,
            self.config.node_id,
            replicas,
            self._follower,
            producer_ids,
            self._peers.ask,
            clock=given.clock,
            transaction_clock=self._transaction_clock,
            is_alone=given.is_alone,
            read=lambda piece: loop.run_in_executor(thread, piece.file.pread, piece.length, piece.position),
        )

    def _start_leading(self, store: MetadataStore, replicas: ReplicaSet) -> None:
        given = self._given
        parts = ReplicationParts(
            self.config, store, self._follower, replicas, given.clock, given.random.random, self.metrics
        )
        self._stack.push_async_callback(parts.close)
        parts.start()

    def _resume_moves(self, replicas: ReplicaSet, flusher: Flusher) -> LogMoves:
        rate, follower = self._given.live_config.move_bytes_per_second_max, self._follower
        moves = LogMoves(self._directories, replicas, flusher, lambda: rate(follower.image))
        self._stack.push_async_callback(moves.close)
        moves.resume(lambda topic: follower.image.topic_id(topic))
        return moves

    async def _open_configured_store(self, directory: str) -> MetadataStore:
        return await open_configured_store(self.config, directory, self._given.executor("metadata", 1))

    async def _serve(
        self,
        store: MetadataStore,
        replicas: ReplicaSet,
        directories: DataDirectories,
        coordinators: Coordinators,
        producer_ids: ProducerIds,
        moves: LogMoves,
    ) -> None:
        given, follower = self._given, self._follower
        self.controller = controller = controller_of(given, store, follower)
        self._stack.push_async_callback(self._close_controller, controller)
        turn, cold_reader = LoopTurn(), ColdReader(given.executor("cold-read", _COLD_READ_THREADS))
        collaborators = collaborators_of(
            given,
            follower,
            replicas,
            directories,
            coordinators,
            controller,
            producer_ids,
            moves,
            self._peers,
            turn=turn,
            cold_reader=cold_reader,
        )
        self._serving = serving = Serving(
            given,
            routes_of(collaborators),
            self._make_door,
            self._interception,
            self._shares,
            follower.image,
            turn=turn,
            cold_reader=cold_reader,
        )
        self._stack.callback(serving.close)
        follower.subscribe(serving.apply)
        registrar = registrar_of(given, store, follower, directories, serving.bind())
        self._stack.push_async_callback(registrar.close)
        await registrar.start()
        self._registrar = registrar
        await controller.start()
        serving.listeners.open()

    def _start_following(self, replicas: ReplicaSet, directories: DataDirectories) -> None:
        """Copy from other brokers what they lead and this one has a replica of."""
        assert self._registrar is not None
        self._following = parts = FollowingParts(
            self._given,
            self._follower,
            replicas,
            directories,
            self._registrar,
            on_older=self._begin_ids_above_all,
        )
        self._stack.push_async_callback(parts.close)
        parts.start()

    def _begin_ids_above_all(self) -> None:
        """Producers that have got their ids since the backup was made are in the logs."""
        self._producer_ids.begin_above_all(self._given.clock.wall_ms())

    def _watch_directories(self, replicas: ReplicaSet, directories: DataDirectories) -> None:
        assert self._registrar is not None
        failed = FailedDirectories(directories, replicas, self._registrar, self.has_failed.set)
        self._stack.push_async_callback(failed.close)
        failed.start()

    async def _close_controller(self, controller: Controller) -> None:
        await controller.close(vacates=self._is_clean and not self._given.is_alone)

    def _start_duties(self, directories: DataDirectories) -> None:
        duties = Duties()
        self._stack.push_async_callback(duties.stop)
        for duty in own_duties(
            self._given, self.serving, directories, self._idle_logs, self.idle_looks_ms, self.controller
        ):
            duties.start(duty)

    def _start_cleaner(self, directories: DataDirectories) -> None:
        self._cleaner = cleaner = cleaner_of(self._given, self._follower, directories)
        self._stack.push_async_callback(cleaner.close)
        cleaner.start()

    def _log_config(self, topic: str) -> LogConfig:
        return self._given.live_config.log_config(self._follower.image, topic)

    async def _close_directories(self, directories: DataDirectories) -> None:
        epoch = None if self._registrar is None or self._given.is_alone else self._registrar.last_epoch
        await directories.close(clean=self._is_clean, broker_epoch=epoch)
