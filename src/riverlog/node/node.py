"""A node: settings in, a running broker out.

Starts from the disk upwards (directories, metadata, recovery, partitions, network) and stops in reverse.
Connections are served only once everything that answers them is there. Nothing that was started survives a
failed start.
"""

import asyncio
import logging
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

from riverlog.broker.cold_reads import ColdReader
from riverlog.broker.connections import ConnectionLimits, Connections
from riverlog.broker.dispatch import Dispatcher
from riverlog.broker.network import AsyncNetwork
from riverlog.broker.receive_memory import ReceiveMemory
from riverlog.broker.turn import Turn
from riverlog.controller.controller import Controller
from riverlog.controller.topics import TopicRules
from riverlog.metadata import cluster, layout
from riverlog.metadata.embedded_store import FILE_NAME, EmbeddedStore
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.payloads import parse_uuid
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.settings import Settings
from riverlog.model.config.slices import ServerConfig
from riverlog.model.disk import Disk
from riverlog.model.errors import StorageError
from riverlog.model.ids import TopicPartition
from riverlog.model.metadata_store import MetadataStore
from riverlog.model.metrics import Metrics
from riverlog.model.network import Address, Network
from riverlog.node.coordinators import Coordinators
from riverlog.node.data_directories import DataDirectories
from riverlog.node.descriptors import DescriptorShares
from riverlog.node.duties import Duties, Duty
from riverlog.node.front_door import FrontDoor
from riverlog.node.handlers import make_routes
from riverlog.node.live_config import LiveConfig
from riverlog.node.log_moves import LogMoves
from riverlog.node.metrics import InMemoryMetrics
from riverlog.node.storage_gauges import measure_storage
from riverlog.node.system_clock import SystemClock
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.cleaning.cleaner import Cleaner
from riverlog.storage.flusher import Flusher
from riverlog.storage.local_disk import LocalDisk
from riverlog.storage.log_directory import LogDirectory
from riverlog.storage.meta_properties import check_owner
from riverlog.storage.open_files import OpenFiles

_logger = logging.getLogger(__name__)
_IDLE_SCAN_MS = 5_000
_RECEIVE_BUDGET_BYTES = 256 * 1024**2
_LONG_REPLY_BUFFER_BYTES = 200 * 1024  # Within what any Linux allows by default.
_REMOVAL_MS = 5_000
_FLUSH_LOOK_MS = 1_000
_PRODUCER_EXPIRY_MIN_MS = 1_000


class Node:
    def __init__(
        self,
        settings: Settings,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        network: Network | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = ServerConfig.from_settings(settings)
        self.metrics = metrics or InMemoryMetrics()
        self._settings = settings
        self._disk = disk or LocalDisk()
        self._clock = clock or SystemClock()
        self._network = network or _network(settings, self.config)
        self._live_config = LiveConfig(settings, self.config.node_id)
        self._shares = DescriptorShares(self.config.open_files_max)
        self._open_files = OpenFiles(self._shares.open_files)
        self._stack = AsyncExitStack()
        self._is_clean = True
        self._door: FrontDoor | None = None

    @property
    def addresses(self) -> Mapping[str, Address]:
        """What each listener is bound to, by name, with the port that was really taken."""
        assert self._door is not None, "the node has not been started"
        return self._door.bound

    @property
    def advertised(self) -> Mapping[str, Address]:
        """What clients are told, by listener name."""
        assert self._door is not None, "the node has not been started"
        return self._door.advertised

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
        await self._stack.aclose()

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="riverlog-storage")
        self._stack.callback(thread.shutdown)
        logs, unusable = await loop.run_in_executor(thread, self._open_directories)
        measure_storage(self.metrics, logs, self._open_files, unusable_count=len(unusable))
        flusher = Flusher(loop)
        directories = DataDirectories(logs, flusher, thread, self._clock, self._hosted, unusable=unusable)
        self._stack.push_async_callback(self._close_directories, directories)
        self._stack.push_async_callback(flusher.close)
        store = await self._open_store(logs)
        self._follower = follower = MetadataFollower(store)
        self._stack.push_async_callback(follower.close)
        replicas = ReplicaSet(self.config.node_id, directories, flusher, self._live_config.log_config)
        follower.subscribe(replicas.apply)
        await follower.start()
        directories.remove_strays(follower.image, self.config.node_id)
        directories.note_missing()
        await directories.recover()
        producer_ids = ProducerIds(store, self.config.node_id)
        coordinators = Coordinators(
            self._settings,
            self.config.node_id,
            replicas,
            follower,
            producer_ids,
            clock=self._clock,
            read=lambda piece: loop.run_in_executor(thread, piece.file.pread, piece.length, piece.position),
        )
        self._stack.callback(replicas.close)
        self._stack.push_async_callback(coordinators.close)
        rate = self._live_config.move_bytes_per_second_max
        moves = LogMoves(directories, replicas, flusher, lambda: rate(follower.image))
        self._stack.push_async_callback(moves.close)
        moves.resume(lambda topic: _topic_id(follower.image, topic))
        await self._serve(store, replicas, directories, coordinators, producer_ids, moves)
        coordinators.start()
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
                try:
                    opened.append(self._open_directory(path, opened[0].meta.cluster_id if opened else None))
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

    def _open_directory(self, path: str, cluster_id: str | None) -> LogDirectory:
        return LogDirectory.open(
            path,
            disk=self._disk,
            clock=self._clock,
            node_id=self.config.node_id,
            cluster_id=cluster_id,
            new_uuid=uuid4,
            config_for=lambda topic: self._live_config.log_config(self._follower.image, topic),
            open_files=self._open_files,
        )

    async def _open_store(self, logs: list[LogDirectory]) -> MetadataStore:
        store = await EmbeddedStore.open(f"{logs[0].path}/{FILE_NAME}")
        self._stack.push_async_callback(store.close)
        meta = logs[0].meta
        # A directory without a single partition has nothing to lose with its metadata: a first start that
        # was cut short is simply begun again.
        remembered = meta.cluster_id if any(len(each) for each in logs) else None
        cluster_id = await cluster.prepare(store, remembered=remembered, fresh_id=parse_uuid(meta.cluster_id))
        check_owner(meta, logs[0].path, self.config.node_id, cluster_id)
        return store

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
            new_id=uuid4,
            random=random.Random(),
            wall_ms=self._clock.wall_ms,
        )
        self._stack.push_async_callback(controller.close)
        turn = Turn()
        routes = make_routes(
            self.config,
            replicas=replicas,
            follower=follower,
            controller=controller,
            producer_ids=producer_ids,
            coordinators=coordinators,
            directories=directories,
            moves=moves,
            layers=lambda: self._live_config.layers(follower.image),
            turn=turn,
            clock=self._clock,
            metrics=self.metrics,
        )
        cold_reader = ColdReader()
        self._stack.callback(cold_reader.close)
        self._connections = Connections(
            Dispatcher(routes, self._clock, self.metrics),
            self._limits(follower.image),
            memory=ReceiveMemory(self.config.queued_request_bytes_max or _RECEIVE_BUDGET_BYTES),
            cold_reader=cold_reader,
            turn=turn,
            clock=self._clock,
            metrics=self.metrics,
        )
        self._stack.callback(self._connections.close)
        follower.subscribe(self._follow_limits)
        self._door = FrontDoor(self._network, self._connections)
        self._stack.callback(self._door.close)
        self._door.bind(self.config.listeners, self.config.advertised_listeners)
        await cluster.register_broker(
            store,
            self.config.node_id,
            self._door.advertised,
            security={listener.name: listener.protocol.value for listener in self.config.listeners},
            rack=self.config.rack,
            now_ms=self._clock.wall_ms(),
        )
        await follower.refresh([layout.broker(self.config.node_id)])
        await controller.start()
        self._door.open()

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
        flush_ms = config.flush_scheduler_interval_ms
        duties.start(Duty("flushing", min(flush_ms or _FLUSH_LOOK_MS, _FLUSH_LOOK_MS), directories.flush_due))

    def _start_cleaner(self, directories: DataDirectories) -> None:
        cleaner = Cleaner(
            lambda: directories.online,
            lambda: self._live_config.cleaner_config(self._follower.image),
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

    def _idle_scan_ms(self) -> int:
        idle_ms = self.config.connections_max_idle_ms
        return _IDLE_SCAN_MS if idle_ms is None else max(min(idle_ms // 4, _IDLE_SCAN_MS), 100)

    def _follow_limits(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.configs is not new.configs:
            self._connections.limits = self._limits(new)

    def _limits(self, image: ClusterImage) -> ConnectionLimits:
        config = self._live_config.server_config(image)
        return ConnectionLimits(
            request_bytes_max=config.socket_request_bytes_max,
            connections_max=self._shares.connections_under(config.max_connections),
            per_address_max=config.max_connections_per_ip,
            per_address_overrides=config.max_connections_per_ip_overrides,
            idle_ms_max=config.connections_max_idle_ms,
        )

    def _hosted(self) -> Iterator[tuple[TopicPartition, UUID]]:
        for name, topic in self._follower.image.topics.items():
            for index, partition in enumerate(topic.partitions):
                if self.config.node_id in partition.replicas:
                    yield TopicPartition(name, index), topic.topic_id

    async def _close_directories(self, directories: DataDirectories) -> None:
        await directories.close(clean=self._is_clean)


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
