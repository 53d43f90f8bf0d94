"""The transaction coordinator of a node with its handlers."""

from collections.abc import Awaitable, Callable

from riverlog.broker.produce.transaction_admission import TransactionAdmission
from riverlog.controller.internal_topics import InternalShape
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.transactions.batched_requests import AskPeer
from riverlog.coordinator.transactions.cluster_transactions import ClusterTransactions
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.coordinator.transactions.remote_markers import ClusterMarkerWriter
from riverlog.metadata.delta import ImageDelta
from riverlog.metadata.image import ClusterImage, ResourceType
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.settings import Settings
from riverlog.model.config.transaction_config import ALTERABLE, TransactionConfig
from riverlog.model.disk import FileSlice
from riverlog.model.ids import NodeId
from riverlog.replication.replica_set import ReplicaSet


class TransactionParts:
    def __init__(
        self,
        settings: Settings,
        node_id: NodeId,
        replicas: ReplicaSet,
        groups: GroupCoordinator,
        producer_ids: ProducerIds,
        ask: AskPeer,
        image: Callable[[], ClusterImage],
        *,
        clock: Clock,
        transaction_clock: Clock,
        read: Callable[[FileSlice], Awaitable[bytes]],
    ) -> None:
        config = TransactionConfig.from_settings(settings)
        self.topic_shape = InternalShape(
            config.log_partitions,
            config.log_replication_factor,
            config.log_segment_bytes,
            config.log_min_insync_replicas,
        )
        self._node_id = node_id
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self.markers = LocalMarkerWriter(replicas, groups, clock)
        self.coordinator = TransactionCoordinator(
            config,
            replicas,
            producer_ids,
            ClusterMarkerWriter(self.markers, ask, image, node_id),
            clock=transaction_clock,
            read=read,
        )
        self._settings = settings
        cluster = ClusterTransactions(self.coordinator, ask, image, node_id)
        self.writes = TransactionAdmission(cluster, replicas, verifies=config.verifies_partitions)

    def apply(self, delta: ImageDelta) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        self.coordinator.apply(delta)
        if delta.changes_configs_of(ResourceType.BROKER):
            image = delta.new
            altered = {**image.broker_config(None), **image.broker_config(self._node_id)}
            settings = self._settings.altered(altered, only=ALTERABLE)
            self.writes.verifies = TransactionConfig.from_settings(settings).verifies_partitions
