"""The coordinators of a node with their handlers, as the composition of a node wants them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from riverlog.controller.internal_topics import AutomaticTopics, InternalShape
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.transactions.batched_requests import AskPeer
from riverlog.metadata.delta import ImageDelta, delta_between
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.config.settings import Settings
from riverlog.model.disk import FileSlice
from riverlog.model.ids import NodeId, TopicPartition
from riverlog.model.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from riverlog.node.transaction_parts import TransactionParts
from riverlog.replication.replica_set import ReplicaSet

_logger = logging.getLogger(__name__)


class Coordinators:
    def __init__(
        self,
        settings: Settings,
        node_id: NodeId,
        replicas: ReplicaSet,
        follower: MetadataFollower,
        producer_ids: ProducerIds,
        ask: AskPeer,
        *,
        clock: Clock,
        transaction_clock: Clock,
        is_alone: bool,
        read: Callable[[FileSlice], Awaitable[bytes]],
    ) -> None:
        config = GroupConfig.from_settings(settings)
        self.groups = GroupCoordinator(config, replicas, lambda: follower.image, clock=clock, read=read)
        self.transactions = TransactionParts(
            settings,
            node_id,
            replicas,
            self.groups,
            producer_ids,
            ask,
            lambda: follower.image,
            clock=clock,
            transaction_clock=transaction_clock,
            read=read,
        )
        self.automatic_topics = AutomaticTopics(
            {
                TRANSACTIONS_TOPIC: self.transactions.topic_shape,
                OFFSETS_TOPIC: InternalShape(
                    config.offsets_topic_partitions,
                    config.offsets_topic_replication_factor,
                    config.offsets_topic_segment_bytes,
                ),
            },
            is_alone=is_alone,
        )
        self._follower = follower
        self._loading: asyncio.Task[None] | None = None
        self.apply(delta_between(ClusterImage(), follower.image))
        follower.subscribe(self.apply)

    def apply(self, delta: ImageDelta) -> None:
        self.groups.apply(delta)
        self.transactions.apply(delta)

    def start(
        self, has_open_transactions: Iterable[TopicPartition] = (), *, was_switched_off: bool = True
    ) -> None:
        """Load what the logs hold, in the background: requests may come meanwhile. Recovered partitions in
        which a transaction is open are looked at then; `was_switched_off`: the machine, since they were
        written."""
        for shortcoming in self.automatic_topics.short_of_replicas(self._follower.image):
            _logger.warning("%s", shortcoming)
        loading = self._load(has_open_transactions, was_switched_off)
        self._loading = asyncio.create_task(loading, name="load coordinators")

    async def run_what_is_due(self) -> None:
        """End and expire now what the clocks say is over, in every shard; return when it is done."""
        if self._loading is not None:
            await asyncio.wait([self._loading])
        await self.transactions.coordinator.run_what_is_due()
        await self.groups.run_what_is_due()

    async def _load(self, has_open_transactions: Iterable[TopicPartition], was_switched_off: bool) -> None:
        await self.groups.load_all()
        await self.transactions.coordinator.load_all(has_open_transactions, was_switched_off=was_switched_off)

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        await self.transactions.coordinator.close()
        await self.groups.close()
