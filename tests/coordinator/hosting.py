"""Shards on real partitions of a simulated disk; time is virtual."""

import asyncio
import zlib
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from riverlog.metadata.delta import ImageDelta, delta_between
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import FileSlice
from riverlog.model.errors import DiskFullError, StorageError
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.log import Log
from riverlog.storage.log.opening import LogEnvironment, LogToOpen
from riverlog.testing.simulated_disk import SimulatedDisk
from tests.virtual_time import LoopClock
from tests.waiting import loop_turns

NODE = NodeId(1)


class HeldExecutor(Executor):
    """Syncs happen when the test says so; until then nothing is committed."""

    def __init__(self) -> None:
        self.held: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self.held.append((future, lambda: fn(*args, **options)))
        return future

    async def release(self) -> None:
        """Let everything that is asked for be synced, and those who wait for it go on."""
        for _ in range(5):
            held, self.held = self.held, []
            for future, work in held:
                try:
                    future.set_result(work())
                except (StorageError, DiskFullError) as error:
                    future.set_exception(error)
            await loop_turns()


@dataclass
class Logs:
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    config: LogConfig = field(default_factory=LogConfig)
    changes: int = 0

    def open_log(self, topic_partition: TopicPartition, topic_id: TopicId) -> Log:
        if not self.disk.exists("/data"):
            self.disk.make_directories("/data")
            self.disk.sync_directory("/")
        directory = f"/data/{topic_partition}"
        environment = LogEnvironment.at(directory, self.disk, LoopClock())
        return Log(LogToOpen(directory, topic_partition, self.config, topic_id), environment)

    def holds_log(self, topic_partition: TopicPartition) -> bool:
        return self.disk.exists(f"/data/{topic_partition}")

    def facts_of(self, topic_partition: TopicPartition, topic_id: TopicId) -> None:
        """Every log is opened."""

    def look_inside(self, topic_partition: TopicPartition, topic_id: TopicId) -> AbstractContextManager[Log]:
        raise AssertionError("no log has facts")

    def delete_log(self, topic_partition: TopicPartition) -> None:
        self.disk.remove_tree(f"/data/{topic_partition}")


def image(topics: dict[str, int], *, leader: int = NODE, epoch: int = 0, ids: int = 1) -> ClusterImage:
    """Topics with so many partitions. Other `ids` make them other topics of the same names."""
    partition = PartitionImage((NODE, NodeId(2)), (NodeId(leader),), NodeId(leader), LeaderEpoch(epoch), 0)
    made = {
        name: TopicImage(name, TopicId(UUID(int=zlib.crc32(name.encode()) + ids)), (partition,) * count)
        for name, count in topics.items()
    }
    return ClusterImage(
        brokers={NODE: BrokerImage(NODE, {})},
        topics=made,
        topic_names={topic.topic_id: name for name, topic in made.items()},
    )


class Cluster:
    """The replicas of one node, following images."""

    def __init__(
        self, logs: Logs | None = None, executor: Executor | None = None, *, is_alone: bool = True
    ) -> None:
        self.logs = logs or Logs()
        self.flusher = Flusher(asyncio.get_running_loop(), executor=executor or ThreadPoolExecutor(2))
        self.replicas = ReplicaSet(
            NODE, self.logs, self.flusher, lambda image, topic: self.logs.config, is_alone=is_alone
        )
        self.image = ClusterImage()
        self._followers: list[Callable[[ImageDelta], None]] = [self.replicas.apply]

    def follow(self, follower: Callable[[ImageDelta], None]) -> None:
        self._followers.append(follower)

    def show(self, new: ClusterImage) -> None:
        delta = delta_between(self.image, new)
        self.image = new
        for follower in self._followers:
            follower(delta)


async def read_now(piece: FileSlice) -> bytes:
    await loop_turns()
    return piece.file.pread(piece.length, piece.position)
