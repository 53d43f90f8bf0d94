"""The coordinators of a node with their handlers, as the composition of a node wants them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from uuid import uuid4

from riverlog.broker.coordinator_places import CoordinatorPlaces
from riverlog.broker.handlers.consumer_group_describe import ConsumerGroupDescribeHandler
from riverlog.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
from riverlog.broker.handlers.delete_groups import DeleteGroupsHandler
from riverlog.broker.handlers.describe_groups import DescribeGroupsHandler
from riverlog.broker.handlers.find_coordinator import FindCoordinatorHandler
from riverlog.broker.handlers.heartbeat import HeartbeatHandler
from riverlog.broker.handlers.join_group import JoinGroupHandler
from riverlog.broker.handlers.leave_group import LeaveGroupHandler
from riverlog.broker.handlers.list_groups import ListGroupsHandler
from riverlog.broker.handlers.offset_commit import OffsetCommitHandler
from riverlog.broker.handlers.offset_delete import OffsetDeleteHandler
from riverlog.broker.handlers.offset_fetch import OffsetFetchHandler
from riverlog.broker.handlers.sync_group import SyncGroupHandler
from riverlog.broker.route import Handler
from riverlog.controller.controller import Controller
from riverlog.controller.internal_topics import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    AutomaticTopics,
    InternalShape,
)
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.group_config import GroupConfig
from riverlog.model.config.settings import Settings
from riverlog.model.disk import FileSlice
from riverlog.model.ids import NodeId
from riverlog.node.transaction_parts import TransactionParts
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.apis import ApiKey


class Coordinators:
    def __init__(
        self,
        settings: Settings,
        node_id: NodeId,
        replicas: ReplicaSet,
        follower: MetadataFollower,
        producer_ids: ProducerIds,
        *,
        clock: Clock,
        read: Callable[[FileSlice], Awaitable[bytes]],
    ) -> None:
        config = GroupConfig.from_settings(settings)
        self.groups = GroupCoordinator(config, replicas, lambda: follower.image, clock=clock, read=read)
        self.transactions = TransactionParts(
            settings, node_id, replicas, self.groups, producer_ids, clock=clock, read=read
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
            lambda: len(follower.image.brokers),
        )
        self._follower = follower
        self._loading: asyncio.Task[None] | None = None
        self.apply(ClusterImage(), follower.image)
        follower.subscribe(self.apply)

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        self.groups.apply(old, new)
        self.transactions.apply(old, new)

    def start(self) -> None:
        """Load what the logs hold, in the background: requests may come meanwhile."""
        self._loading = asyncio.create_task(self._load(), name="load coordinators")

    async def _load(self) -> None:
        await self.groups.load_all()
        await self.transactions.coordinator.load_all()

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        await self.transactions.coordinator.close()
        await self.groups.close()

    def handlers(self, controller: Controller) -> Mapping[ApiKey, Handler]:
        places = CoordinatorPlaces(self._follower, controller, self.automatic_topics)
        return {
            ApiKey.FIND_COORDINATOR: FindCoordinatorHandler(places),
            ApiKey.JOIN_GROUP: JoinGroupHandler(self.groups, lambda: str(uuid4())),
            ApiKey.SYNC_GROUP: SyncGroupHandler(self.groups),
            ApiKey.HEARTBEAT: HeartbeatHandler(self.groups),
            ApiKey.LEAVE_GROUP: LeaveGroupHandler(self.groups),
            ApiKey.LIST_GROUPS: ListGroupsHandler(self.groups),
            ApiKey.DESCRIBE_GROUPS: DescribeGroupsHandler(self.groups),
            ApiKey.DELETE_GROUPS: DeleteGroupsHandler(self.groups),
            ApiKey.OFFSET_COMMIT: OffsetCommitHandler(self.groups, self._follower),
            ApiKey.OFFSET_FETCH: OffsetFetchHandler(self.groups, self._follower),
            ApiKey.OFFSET_DELETE: OffsetDeleteHandler(self.groups, self._follower),
            ApiKey.CONSUMER_GROUP_HEARTBEAT: ConsumerGroupHeartbeatHandler(
                self.groups, self._follower, uuid4
            ),
            ApiKey.CONSUMER_GROUP_DESCRIBE: ConsumerGroupDescribeHandler(self.groups, self._follower),
            **self.transactions.handlers(places, self._follower),
        }
