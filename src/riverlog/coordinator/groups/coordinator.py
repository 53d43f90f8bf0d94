"""The group coordinator of this node: requests by group id, changes of the cluster, loading and closing.

A thin front of the runtime for handlers, which know groups and not partitions of an internal topic.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from riverlog.coordinator.groups.offsets.offsets import SweepTimer
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.runtime.effects import Effects, Token
from riverlog.coordinator.runtime.runtime import CoordinatorRuntime
from riverlog.coordinator.runtime.shard_runtime import ShardAnswer, ShardLimits
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage, ResourceType
from riverlog.model.clock import Clock
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.model.internal_topics import OFFSETS_TOPIC
from riverlog.records.compression import Codec
from riverlog.replication.replica_set import ReplicaSet

R = TypeVar("R")


class GroupCoordinator:
    def __init__(
        self,
        config: GroupConfig,
        replicas: ReplicaSet,
        image: Callable[[], ClusterImage],
        *,
        clock: Clock,
        read: Callable[[FileSlice], Awaitable[bytes]],
    ) -> None:
        self.config = config
        self._runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            OFFSETS_TOPIC,
            replicas,
            lambda: GroupShard(config, image()),
            clock=clock,
            read=read,
            rules=ShardLimits(
                commit_timeout_ms=config.offsets_commit_timeout_ms,
                codec=Codec(config.offsets_topic_codec),
                load_bytes=config.offsets_load_bytes,
            ),
        )

    def run(self, group_id: str, decide: Callable[[GroupShard, Token[R], int], Effects]) -> ShardAnswer[R]:
        """Decide a request about a group: `decide` gets the shard, the request's token and the wall time."""
        return self._runtime.run(self._runtime.partition_for(group_id), decide)

    def delete(self, group_id: str) -> ShardAnswer[ErrorCode]:
        return self.run(group_id, lambda shard, token, _: shard.decide_deletion(group_id, token))

    def ask(self, group_id: str, query: Callable[[GroupShard], R]) -> ShardAnswer[R]:
        return self._runtime.ask(self._runtime.partition_for(group_id), query)

    def ask_each(self, query: Callable[[GroupShard], R]) -> list[ShardAnswer[R]]:
        """Look something up in every shard that this node leads."""
        return self._runtime.ask_each(query)

    def write_marker(
        self, partition: int, producer: ProducerIdAndEpoch, coordinator_epoch: int, *, commit: bool
    ) -> ShardAnswer[None]:
        """End a transaction in a partition of the offsets topic; its offsets count from then on, or never."""
        return self._runtime.write_marker(partition, producer, coordinator_epoch, commit=commit)

    def apply(self, delta: ImageDelta) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        self._runtime.apply(delta)
        if delta.resized_topics or delta.changes_configs_of(ResourceType.GROUP, ResourceType.BROKER):
            self._runtime.for_each(lambda shard, now_ms: shard.on_image(delta, now_ms))

    async def load_all(self) -> None:
        await self._runtime.load_all()

    async def run_what_is_due(self) -> None:
        """Expire now the offsets and groups that are over; return when they are gone."""
        await self._runtime.ring_until_done(SweepTimer())

    async def close(self) -> None:
        await self._runtime.close()
