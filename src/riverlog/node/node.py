"""A node: settings in, a running broker out.

Starts from the disk upwards (directories, metadata, recovery, partitions, network) and stops in reverse.
Connections are served only once everything that answers them is there. Nothing that was started survives a
failed start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from random import Random
from uuid import UUID, uuid4

from riverlog.broker.dispatch.dispatcher import Dispatcher
from riverlog.broker.dispatch.door import Door, OpenDoor
from riverlog.broker.dispatch.route import AnyRoute
from riverlog.broker.dispatch.routes import Collaborators, routes_of
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.fetch.replica_fetches import ReplicaFetches
from riverlog.broker.fetch.replica_sessions import ReplicaSessions
from riverlog.broker.fetch.sessions import FetchSessions
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.net.connections import ConnectionLimits, Connections
from riverlog.broker.net.interception import Interception, NoInterception
from riverlog.broker.net.network import AsyncNetwork
from riverlog.broker.net.receive_memory import ReceiveMemory
from riverlog.broker.shared.forwarding import Forwarding
from riverlog.controller.controller import Controller
from riverlog.controller.decisions.leadership import ElectionRules, leads_what_others_could
from riverlog.controller.decisions.topics import TopicRules
from riverlog.metadata import cluster
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.payloads import parse_uuid
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.metadata.registrar import Registrar
from riverlog.metadata.registration import Registrant, has_other_boot_id
from riverlog.metadata.restarts import FoundData, Restart, TopicDemands
from riverlog.metadata.stores.shared import host
from riverlog.model.clock import Clock
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.disk import Disk
from riverlog.model.errors import StorageError
from riverlog.model.executor import Executor, MakeExecutor
from riverlog.model.ids import TopicPartition
from riverlog.model.metadata_store import MetadataStore, StoreError
from riverlog.model.metrics import Metrics
from riverlog.model.network import Address, Network
from riverlog.node.coordinators import Coordinators
from riverlog.node.descriptors import DescriptorShares
from riverlog.node.duties import Duties, Duty
from riverlog.node.failed_directories import FailedDirectories, by_topic
from riverlog.node.first_look import check_is_ours, cluster_id_beside, imported_cluster_id
from riverlog.node.followed_leaders import following_of
from riverlog.node.listeners import Listeners
from riverlog.node.live_config import LiveConfig
from riverlog.node.metrics import InMemoryMetrics
from riverlog.node.peer_brokers import connections_of_peers, peers_of
from riverlog.node.replication_parts import ReplicationParts
from riverlog.node.stores import is_shared, open_configured_store
from riverlog.node.system_clock import SystemClock
from riverlog.node.threads import thread_executor
from riverlog.replication.following.following import Following
from riverlog.replication.log_moves import LogMoves
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.unclaimed_logs import set_strays_aside
from riverlog.storage.directory.cleaner import THREADS_MAX as CLEANER_THREADS_MAX
from riverlog.storage.directory.cleaner import Cleaner
from riverlog.storage.directory.data_directories import DataDirectories
from riverlog.storage.directory.gauges import measure_storage
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.disk.open_files import OpenFiles
from riverlog.storage.files.meta_properties import check_owner
from riverlog.storage.log.flusher import Flusher

_logger = logging.getLogger(__name__)
_IDLE_SCAN_MS = 5_000
_FETCH_SESSION_ID_MAX = 2**31 - 1
_RECEIVE_BUDGET_BYTES = 256 * 1024**2
_LONG_REPLY_BUFFER_BYTES = 200 * 1024  # Within what any Linux allows by default.
_REMOVAL_MS = 5_000
_FLUSH_LOOK_MS = 1_000
_PRODUCER_EXPIRY_MIN_MS = 1_000
_SYNC_THREADS = 2
_SAVE_THREADS = 8
_GOODBYE_S = 1.0
_HAND_OVER_S = 30.0
_COLD_READ_THREADS = 2


class Node:
    def __init__(
        self,
        settings: Settings,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        network: Network | None = None,
        metrics: Metrics | None = None,
        door: Callable[[Iterable[AnyRoute], Metrics], Door] = OpenDoor,
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
        self.config = ServerConfig.from_settings(settings)
        self.metrics = metrics or InMemoryMetrics()
        self._settings = settings
        self._disk = disk or LocalDisk()
        self._clock = clock or SystemClock()
        self._network = network or _network(settings, self.config)
        self._make_door = door
        self._open_store = open_store or self._open_configured_store
        self._is_metadata_own = open_store is None and not is_shared(self.config)
        self._random = random or Random()
        self._new_id = new_id
        self._new_executor = new_executor
        self._boot_id = boot_id
        self._interception = interception or NoInterception()
        self._transaction_clock = transaction_clock or self._clock
        self._live_config = LiveConfig(settings, self.config.node_id)
        self._shares = DescriptorShares(self.config.open_files_max)
        self._open_files = OpenFiles(self._shares.open_files)
        self._stack = AsyncExitStack()
        self._is_clean = True
        self._listeners: Listeners | None = None
        self._registrar: Registrar | None = None
        self._following: Following | None = None
        self.has_failed = asyncio.Event()
        """Set when no data directory is left, and the broker has left its cluster: it is to be stopped."""

    @property
    def addresses(self) -> Mapping[str, Address]:
        """What each listener is bound to, by name, with the port that was really taken."""
        assert self._listeners is not None, "the node has not been started"
        return self._listeners.bound

    @property
    def advertised(self) -> Mapping[str, Address]:
        """What clients are told, by listener name."""
        assert self._listeners is not None, "the node has not been started"
        return self._listeners.advertised

    @property
    def cluster_id(self) -> str:
        return self._follower.image.cluster_id

    @property
    def image(self) -> ClusterImage:
        """The cluster as this node sees it."""
        return self._follower.image

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
        if clean and self.config.hands_over:
            await self._hand_over()
        await self._stack.aclose()

    def abandon(self) -> None:
        """Let go of sockets and directories, as the kernel does when a process is killed: nothing is answered
        or saved. On the event loop, which must not run afterwards. For tests."""
        assert self._listeners is not None
        self._listeners.close()
        self._connections.close()
        self._peers.close()
        if self._following is not None:
            self._following.stop()
        self._directories.abandon()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        thread = self._executor("storage", 1)
        logs, unusable = await loop.run_in_executor(thread, self._open_directories)
        measure_storage(self.metrics, logs, self._open_files, unusable_count=len(unusable))
        flusher = Flusher(loop, executor=self._executor("sync", _SYNC_THREADS))
        directories = DataDirectories(
            logs,
            flusher,
            thread,
            self._clock,
            self._hosted,
            unusable=unusable,
            savers=self._executor("save", _SAVE_THREADS),
        )
        self._directories = directories
        self._stack.push_async_callback(self._close_directories, directories)
        self._stack.push_async_callback(flusher.drain)
        store = await self._prepare_store(logs)
        self._follower = follower = MetadataFollower(store)
        self._stack.push_async_callback(follower.close)
        replicas = ReplicaSet(
            self.config.node_id,
            directories,
            flusher,
            self._live_config.log_config,
            is_alone=self._is_metadata_own,
        )
        follower.subscribe(replicas.apply)
        await follower.start()
        set_strays_aside(
            directories.online,
            follower.image,
            self.config.node_id,
            accept_many=self.config.accept_strays,
            deleted=await cluster.deleted_topics(store),
        )
        directories.note_missing()
        was_switched_off = await has_other_boot_id(store, self.config.node_id, self._boot_id())
        has_open_transactions = await directories.recover()
        self._peers = peers_of(self.config, self._network, lambda: follower.image, self._random.random)
        self._stack.callback(self._peers.close)
        follower.subscribe(self._give_up_peers)
        producer_ids = ProducerIds(store, self.config.node_id)
        self._stack.push_async_callback(producer_ids.close)
        self._coordinators = coordinators = Coordinators(
            self._settings,
            self.config.node_id,
            replicas,
            follower,
            producer_ids,
            self._peers.ask,
            clock=self._clock,
            transaction_clock=self._transaction_clock,
            is_alone=self._is_metadata_own,
            read=lambda piece: loop.run_in_executor(thread, piece.file.pread, piece.length, piece.position),
        )
        self._stack.callback(replicas.close)
        self._stack.push_async_callback(coordinators.close)
        if not self._is_metadata_own:
            replication = ReplicationParts(
                self.config, store, follower, replicas, self._clock, self._random.random, self.metrics
            )
            self._stack.push_async_callback(replication.close)
            replication.start()
        rate = self._live_config.move_bytes_per_second_max
        moves = LogMoves(directories, replicas, flusher, lambda: rate(follower.image))
        self._stack.push_async_callback(moves.close)
        moves.resume(lambda topic: _topic_id(follower.image, topic))
        await self._serve(store, replicas, directories, coordinators, producer_ids, moves)
        coordinators.start(has_open_transactions, was_switched_off=was_switched_off)
        if not self._is_metadata_own:
            self._start_following(replicas, directories)
            self._watch_directories(replicas, directories)
        self._start_duties(directories)
        self._start_cleaner(directories)

    def _open_directories(self) -> tuple[list[LogDirectory], list[str]]:
        """Those that can be used, and the paths of the others, without which the node goes on as Kafka does.

        The first directory must be usable, since the metadata is in it.
        """
        opened: list[LogDirectory] = []
        unusable: list[str] = []
        try:
            for path in self.config.log_dirs:
                is_first = not opened
                check_is_ours(self._disk, path, holds_metadata=is_first and self._is_metadata_own)
                cluster_id = self._first_cluster_id() if is_first else opened[0].meta.cluster_id
                try:
                    opened.append(self._open_directory(path, cluster_id))
                except StorageError as error:
                    if not opened:
                        raise
                    _logger.error("%s The broker goes on without it.", error)
                    unusable.append(path)
        except BaseException:
            for directory in opened:
                directory.close(clean=False)
            raise
        return opened, unusable

    def _first_cluster_id(self) -> str | None:
        paths = self.config.log_dirs
        return imported_cluster_id(paths[0]) or cluster_id_beside(self._disk, paths)

    def _open_directory(self, path: str, cluster_id: str | None) -> LogDirectory:
        return LogDirectory.open(
            path,
            disk=self._disk,
            clock=self._clock,
            node_id=self.config.node_id,
            cluster_id=cluster_id,
            new_uuid=self._new_id,
            config_for=lambda topic: self._live_config.log_config(self._follower.image, topic),
            open_files=self._open_files,
            boot_id=self._boot_id(),
        )

    async def _prepare_store(self, logs: list[LogDirectory]) -> MetadataStore:
        store = await self._open_store(logs[0].path)
        self._stack.push_async_callback(store.close)
        meta = logs[0].meta
        # A directory without a single partition has nothing to lose with its metadata: a first start that
        # was cut short is simply begun again.
        is_new = not any(len(each) for each in logs)
        remembered = None if is_new else meta.cluster_id
        cluster_id = await cluster.prepare(
            store,
            remembered=remembered,
            fresh_id=parse_uuid(meta.cluster_id),
            is_shared=not self._is_metadata_own,
        )
        if is_new and not self._is_metadata_own:
            for each in logs:
                each.join(cluster_id)
        check_owner(logs[0].meta, logs[0].path, self.config.node_id, cluster_id)
        return store

    async def _open_configured_store(self, directory: str) -> MetadataStore:
        return await open_configured_store(self.config, directory, self._executor("metadata", 1))

    async def _serve(
        self,
        store: MetadataStore,
        replicas: ReplicaSet,
        directories: DataDirectories,
        coordinators: Coordinators,
        producer_ids: ProducerIds,
        moves: LogMoves,
    ) -> None:
        follower = self._follower
        self.controller = controller = Controller(
            store,
            follower,
            self.config.node_id,
            rules=self._topic_rules,
            new_id=self._new_id,
            random=self._random,
            wall_ms=self._clock.wall_ms,
            election_rules=self._election_rules,
            metrics=self.metrics,
            is_alone=self._is_metadata_own,
        )
        self._stack.push_async_callback(self._close_controller, controller)
        turn, cold_reader = LoopTurn(), ColdReader(self._executor("cold-read", _COLD_READ_THREADS))
        routes = routes_of(
            Collaborators(
                config=self.config,
                replicas=replicas,
                follower=follower,
                controller=controller,
                producer_ids=producer_ids,
                groups=coordinators.groups,
                transactions=coordinators.transactions.coordinator,
                transaction_admission=coordinators.transactions.writes,
                markers=coordinators.transactions.markers,
                automatic_topics=coordinators.automatic_topics,
                directories=directories,
                moves=moves,
                layers=lambda: self._live_config.layers(follower.image),
                forwarding=self._forwarding(controller),
                fetch_sessions=self._fetch_sessions(),
                replica_fetches=self._replica_fetches(replicas, turn, cold_reader),
                turn=turn,
                cold_reader=cold_reader,
                clock=self._clock,
                metrics=self.metrics,
                new_id=self._new_id,
            )
        )
        door = self._make_door(routes.values(), self.metrics)
        self.dispatcher = Dispatcher(routes, door, self._clock, self.metrics)
        self._connections = Connections(
            self._interception.over(self.dispatcher),
            self._limits(follower.image),
            memory=ReceiveMemory(self.config.queued_request_bytes_max or _RECEIVE_BUDGET_BYTES),
            cold_reader=cold_reader,
            turn=turn,
            clock=self._clock,
            metrics=self.metrics,
            refuses=self._interception.refuses,
        )
        self._stack.callback(self._connections.close)
        follower.subscribe(self._follow_limits)
        self._listeners = Listeners(self._network, self._connections)
        self._stack.callback(self._listeners.close)
        self._listeners.bind(self.config.listeners, self.config.advertised_listeners)
        await self._register(store, directories, self._listeners.advertised)
        await controller.start()
        self._listeners.open()

    async def _register(
        self, store: MetadataStore, directories: DataDirectories, endpoints: Mapping[str, Address]
    ) -> None:
        config = self.config
        me = Registrant(
            config.node_id,
            endpoints,
            {listener.name: listener.protocol.value for listener in config.listeners},
            config.rack,
            config.host or host.host_id(),
            self._boot_id(),
            tuple(each.meta.directory_id for each in directories.online),
            directories.has_unusable,
            {} if self._is_metadata_own else by_topic(directories.offline()),
        )
        registrar = Registrar(
            store,
            self._follower,
            me,
            session_timeout_s=config.zookeeper_session_timeout_ms / 1000,
            wall_ms=self._clock.wall_ms,
            restart=None if self._is_metadata_own else self._restart(store, directories),
        )
        self._stack.push_async_callback(registrar.close)
        await registrar.start()
        self._registrar = registrar

    def _restart(self, store: MetadataStore, directories: DataDirectories) -> Restart:
        found = FoundData(
            self._boot_id(),
            {each.meta.directory_id: each.left_by for each in directories.online},
            directories.has_unusable,
            directories.holds_log,
        )
        return Restart(store, self._follower, self.config.node_id, found, self._topic_demands, self.metrics)

    def _topic_demands(self, image: ClusterImage, topic: str) -> TopicDemands:
        config = self._live_config.log_config(image, topic)
        return TopicDemands(config.min_insync_replicas, config.acks_fsync)

    def _start_following(self, replicas: ReplicaSet, directories: DataDirectories) -> None:
        """Copy from other brokers what they lead and this one has a replica of."""
        follower, registrar = self._follower, self._registrar
        assert registrar is not None
        self._following = following = following_of(
            self._settings,
            self.config,
            replicas,
            self._network,
            lambda: follower.image,
            broker_epoch=lambda: registrar.last_epoch,
            write_checkpoints=directories.write_checkpoints,
            chance=self._random.random,
            metrics=self.metrics,
        )
        self._stack.push_async_callback(following.close)
        follower.subscribe(following.apply)
        following.start(follower.image)

    def _watch_directories(self, replicas: ReplicaSet, directories: DataDirectories) -> None:
        assert self._registrar is not None
        failed = FailedDirectories(directories, replicas, self._registrar, self.has_failed.set)
        self._stack.push_async_callback(failed.close)
        failed.start()

    async def _hand_over(self) -> None:
        """The others see that this broker is about to go, if the store is there to tell them. It serves until
        it leads nothing that another could lead."""
        if self._registrar is None or self._is_metadata_own:
            return
        changed = asyncio.Event()
        self._follower.subscribe(lambda delta: changed.set())
        with suppress(StoreError, TimeoutError):
            await asyncio.wait_for(self._registrar.announce_shutdown(), _GOODBYE_S)
            async with asyncio.timeout(_HAND_OVER_S):
                while leads_what_others_could(self._follower.image, self.config.node_id):
                    await changed.wait()
                    changed.clear()

    async def _close_controller(self, controller: Controller) -> None:
        await controller.close(vacates=self._is_clean and not self._is_metadata_own)

    def _forwarding(self, controller: Controller) -> Forwarding | None:
        if self._is_metadata_own:
            return None
        timeout_s = self.config.request_timeout_ms / 1000
        return Forwarding(controller, self._follower, self._peers, self.config.node_id, timeout_s=timeout_s)

    def _fetch_sessions(self) -> FetchSessions:
        return FetchSessions(
            self.config.fetch_session_slots,
            now_ms=lambda: int(self._clock.monotonic_s() * 1000),
            random_id=self._random_session_id,
        )

    def _random_session_id(self) -> int:
        return self._random.randint(1, _FETCH_SESSION_ID_MAX)

    def _replica_fetches(
        self, replicas: ReplicaSet, turn: LoopTurn, cold_reader: ColdReader
    ) -> ReplicaFetches | None:
        """None for a node that has no followers."""
        if self._is_metadata_own:
            return None
        fetches = ReplicaFetches(
            replicas,
            ReplicaSessions(self._random_session_id),
            turn,
            cold_reader,
            self._clock,
            listener_name=self.config.inter_broker_listener,
            bytes_max=self.config.fetch_bytes_max,
            metrics=self.metrics,
        )
        self._follower.subscribe(fetches.apply)
        return fetches

    def _start_duties(self, directories: DataDirectories) -> None:
        config = self.config
        duties = Duties()
        self._stack.push_async_callback(duties.stop)
        delay_ms = config.initial_task_delay_ms
        for duty in (
            Duty("closing idle connections", self._idle_scan_ms(), self._connections.close_idle),
            Duty("retention", config.retention_check_interval_ms, directories.apply_retention, delay_ms),
            Duty("removing deleted files", _REMOVAL_MS, directories.remove_deleted),
            Duty("checkpoints", config.high_watermark_checkpoint_interval_ms, directories.write_checkpoints),
            Duty(
                "expiring producers",
                max(config.producer_id_expiration_check_interval_ms, _PRODUCER_EXPIRY_MIN_MS),
                directories.expire_producers,
            ),
        ):
            duties.start(duty)
        if config.rebalances_leaders and not self._is_metadata_own:
            interval_ms = config.leader_imbalance_check_interval_s * 1000
            duties.start(Duty("balancing leaders", interval_ms, self.controller.rebalance_leaders))
        flush_ms = config.flush_scheduler_interval_ms
        duties.start(Duty("flushing", min(flush_ms or _FLUSH_LOOK_MS, _FLUSH_LOOK_MS), directories.flush_due))

    def _start_cleaner(self, directories: DataDirectories) -> None:
        self._cleaner = cleaner = Cleaner(
            lambda: directories.online,
            lambda: self._live_config.cleaner_config(self._follower.image),
            executor=self._executor("cleaner", CLEANER_THREADS_MAX),
            clock=self._clock,
            metrics=self.metrics,
        )
        self._stack.push_async_callback(cleaner.close)
        cleaner.start()

    def _topic_rules(self) -> TopicRules:
        return TopicRules(
            self.config.num_partitions,
            self.config.default_replication_factor,
            lambda overrides: self._live_config.topic_problem(self._follower.image, overrides),
        )

    def _election_rules(self, image: ClusterImage, topic: str) -> ElectionRules:
        config = self._live_config.log_config(image, topic)
        return ElectionRules(config.min_insync_replicas, config.unclean_leader_election)

    def _idle_scan_ms(self) -> int:
        idle_ms = self.config.connections_max_idle_ms
        return _IDLE_SCAN_MS if idle_ms is None else max(min(idle_ms // 4, _IDLE_SCAN_MS), 100)

    def _give_up_peers(self, delta: ImageDelta) -> None:
        for node_id in delta.brokers_removed:
            self._peers.give_up(node_id)

    def _follow_limits(self, delta: ImageDelta) -> None:
        if delta.configs or delta.brokers_added or delta.brokers_removed:
            self._connections.limits = self._limits(delta.new)

    def _limits(self, image: ClusterImage) -> ConnectionLimits:
        config = self._live_config.server_config(image)
        return ConnectionLimits(
            request_bytes_max=config.socket_request_bytes_max,
            connections_max=self._shares.connections_under(config.max_connections),
            per_address_max=config.max_connections_per_ip,
            per_address_overrides=config.max_connections_per_ip_overrides,
            brokers_at=connections_of_peers(config, image),
            idle_ms_max=config.connections_max_idle_ms,
        )

    def _executor(self, name: str, threads: int) -> Executor:
        """One that is shut down after everything that was started later."""
        executor = self._new_executor(name, threads)
        self._stack.callback(executor.shutdown, cancel_futures=True)
        return executor

    def _hosted(self) -> Iterator[tuple[TopicPartition, UUID]]:
        for name, topic in self._follower.image.topics.items():
            for index, partition in enumerate(topic.partitions):
                if self.config.node_id in partition.replicas:
                    yield TopicPartition(name, index), topic.topic_id

    async def _close_directories(self, directories: DataDirectories) -> None:
        epoch = None if self._registrar is None or self._is_metadata_own else self._registrar.broker_epoch
        await directories.close(clean=self._is_clean, broker_epoch=epoch)


def _topic_id(image: ClusterImage, topic: str) -> UUID | None:
    found = image.topics.get(topic)
    return None if found is None else found.topic_id


def _network(settings: Settings, config: ServerConfig) -> AsyncNetwork:
    """Buffers grow as the kernel sees fit, unless somebody asks for a size.

    Send buffers of those who read in bulk do not: with one that had grown to megabytes they needed a quarter
    more CPU for the same bytes and were slower (see docs/performance.md).
    """
    asked_to_send = "socket.send.buffer.bytes" in settings
    return AsyncNetwork(
        backlog=config.socket_listen_backlog,
        send_buffer_bytes=config.socket_send_buffer_bytes if asked_to_send else None,
        long_reply_buffer_bytes=None if asked_to_send else _LONG_REPLY_BUFFER_BYTES,
        receive_buffer_bytes=(
            config.socket_receive_buffer_bytes if "socket.receive.buffer.bytes" in settings else None
        ),
    )
