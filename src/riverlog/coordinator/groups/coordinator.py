"""The group coordinator of this node: requests by group id, changes of the cluster, loading and closing.

A thin front of the runtime for handlers, which know groups and not partitions of an internal topic.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from riverlog.coordinator.effects import Effects, Producer, Token
from riverlog.coordinator.groups.shard import GroupShard
from riverlog.coordinator.hosted_shard import Answer, HostingRules
from riverlog.coordinator.runtime import CoordinatorRuntime
from riverlog.metadata.image import ClusterImage
from riverlog.model.clock import Clock
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.disk import FileSlice
from riverlog.records.compression import Codec
from riverlog.replication.replica_set import ReplicaSet

R = TypeVar("R")

OFFSETS_TOPIC: Final = "__consumer_offsets"


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
            lambda _: GroupShard(config, image()),
            clock=clock,
            read=read,
            rules=HostingRules(
                commit_timeout_ms=config.offsets_commit_timeout_ms, codec=Codec(config.offsets_topic_codec)
            ),
        )

    def run(self, group_id: str, decide: Callable[[GroupShard, Token[R], int], Effects]) -> Answer[R]:
        """Decide a request about a group: `decide` gets the shard, the request's token and the wall time."""
        return self._runtime.run(self._runtime.partition_for(group_id), decide)

    def ask(self, group_id: str, query: Callable[[GroupShard], R]) -> Answer[R]:
        return self._runtime.ask(self._runtime.partition_for(group_id), query)

    def ask_each(self, query: Callable[[GroupShard], R]) -> list[Answer[R]]:
        """Look something up in every shard that this node leads."""
        return self._runtime.ask_each(query)

    def write_marker(
        self, partition: int, producer: Producer, coordinator_epoch: int, *, commit: bool
    ) -> Answer[None]:
        """End a transaction in a partition of the offsets topic; its offsets count from then on, or never."""
        return self._runtime.write_marker(partition, producer, coordinator_epoch, commit=commit)

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        self._runtime.apply(old, new)
        if old.topics is not new.topics or old.configs is not new.configs:
            self._runtime.for_each(lambda shard, now_ms: shard.on_image(new, now_ms))

    async def load_all(self) -> None:
        await self._runtime.load_all()

    async def close(self) -> None:
        await self._runtime.close()
