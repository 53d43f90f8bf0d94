"""The transaction coordinator of a node with its handlers."""

from collections.abc import Awaitable, Callable, Mapping

from riverlog.broker.coordinator_places import CoordinatorPlaces
from riverlog.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler
from riverlog.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from riverlog.broker.handlers.describe_producers import DescribeProducersHandler
from riverlog.broker.handlers.describe_transactions import DescribeTransactionsHandler
from riverlog.broker.handlers.end_txn import EndTxnHandler
from riverlog.broker.handlers.list_transactions import ListTransactionsHandler
from riverlog.broker.handlers.txn_offset_commit import TxnOffsetCommitHandler
from riverlog.broker.handlers.write_txn_markers import WriteTxnMarkersHandler
from riverlog.broker.produced_transactions import ProducedTransactions
from riverlog.broker.route import Handler
from riverlog.broker.transactional_writes import TransactionalWrites
from riverlog.controller.internal_topics import InternalShape
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.local_markers import LocalMarkerWriter
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.image import ClusterImage
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.settings import Settings
from riverlog.model.config.transaction_config import ALTERABLE, TransactionConfig
from riverlog.model.disk import FileSlice
from riverlog.model.ids import NodeId
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.apis import ApiKey


class TransactionParts:
    def __init__(
        self,
        settings: Settings,
        node_id: NodeId,
        replicas: ReplicaSet,
        groups: GroupCoordinator,
        producer_ids: ProducerIds,
        *,
        clock: Clock,
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
        self._markers = LocalMarkerWriter(replicas, groups, clock)
        self.coordinator = TransactionCoordinator(
            config, replicas, producer_ids, self._markers, clock=clock, read=read
        )
        self._settings = settings
        self._writes = TransactionalWrites(self.coordinator, replicas, verifies=config.verifies_partitions)
        self.produced = ProducedTransactions(self._writes, replicas)

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the cluster image; call after the replicas have taken it over."""
        self.coordinator.apply(old, new)
        if old.configs is not new.configs:
            altered = {**new.broker_config(None), **new.broker_config(self._node_id)}
            settings = self._settings.altered(altered, only=ALTERABLE)
            self._writes.verifies = TransactionConfig.from_settings(settings).verifies_partitions

    def handlers(self, places: CoordinatorPlaces, follower: MetadataFollower) -> Mapping[ApiKey, Handler]:
        transactions = self.coordinator
        return {
            ApiKey.ADD_PARTITIONS_TO_TXN: AddPartitionsToTxnHandler(transactions, follower),
            ApiKey.ADD_OFFSETS_TO_TXN: AddOffsetsToTxnHandler(transactions, places),
            ApiKey.END_TXN: EndTxnHandler(transactions, follower),
            ApiKey.WRITE_TXN_MARKERS: WriteTxnMarkersHandler(self._markers),
            ApiKey.TXN_OFFSET_COMMIT: TxnOffsetCommitHandler(self._groups, self._writes, places, follower),
            ApiKey.DESCRIBE_TRANSACTIONS: DescribeTransactionsHandler(transactions),
            ApiKey.LIST_TRANSACTIONS: ListTransactionsHandler(transactions, self._clock),
            ApiKey.DESCRIBE_PRODUCERS: DescribeProducersHandler(self._replicas, follower),
        }
