"""The one list of what this broker serves. What is not in it is neither answered nor advertised.

A row says which request, who handles it with which collaborators, which rights it can need, and what is out
of the ordinary: whether later requests may overtake it, and what is read or written by hand. The versions are
those of `wire.apis`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from riverlog.broker.dispatch.controller_routes import by_the_controller, envelope_of
from riverlog.broker.dispatch.route import AnyRoute, route
from riverlog.broker.exchange.turn import LoopTurn
from riverlog.broker.fetch.handler import FetchHandler
from riverlog.broker.fetch.nearest_replica import NearestReplica
from riverlog.broker.fetch.reads import FetchReader
from riverlog.broker.fetch.replica_fetches import ReplicaFetches
from riverlog.broker.fetch.sessions import FetchSessions
from riverlog.broker.handlers.add_offsets_to_txn import AddOffsetsToTxnHandler
from riverlog.broker.handlers.add_partitions_to_txn import AddPartitionsToTxnHandler
from riverlog.broker.handlers.alter_configs import AlterConfigsHandler
from riverlog.broker.handlers.alter_partition_reassignments import AlterPartitionReassignmentsHandler
from riverlog.broker.handlers.alter_replica_log_dirs import AlterReplicaLogDirsHandler, ReplicaPlaces
from riverlog.broker.handlers.api_versions import ApiVersionsHandler
from riverlog.broker.handlers.consumer_group_describe import ConsumerGroupDescribeHandler
from riverlog.broker.handlers.consumer_group_heartbeat import ConsumerGroupHeartbeatHandler
from riverlog.broker.handlers.create_acls import CreateAclsHandler
from riverlog.broker.handlers.create_partitions import CreatePartitionsHandler
from riverlog.broker.handlers.create_topics import CreateTopicsHandler
from riverlog.broker.handlers.delete_acls import DeleteAclsHandler
from riverlog.broker.handlers.delete_groups import DeleteGroupsHandler
from riverlog.broker.handlers.delete_records import DeleteRecordsHandler
from riverlog.broker.handlers.delete_topics import DeleteTopicsHandler
from riverlog.broker.handlers.describe_acls import DescribeAclsHandler
from riverlog.broker.handlers.describe_cluster import DescribeClusterHandler
from riverlog.broker.handlers.describe_configs import DescribeConfigsHandler
from riverlog.broker.handlers.describe_groups import DescribeGroupsHandler
from riverlog.broker.handlers.describe_log_dirs import DescribeLogDirsHandler, LogDirectories
from riverlog.broker.handlers.describe_producers import DescribeProducersHandler
from riverlog.broker.handlers.describe_topic_partitions import DescribeTopicPartitionsHandler
from riverlog.broker.handlers.describe_transactions import DescribeTransactionsHandler
from riverlog.broker.handlers.elect_leaders import ElectLeadersHandler
from riverlog.broker.handlers.end_txn import EndTxnHandler
from riverlog.broker.handlers.find_coordinator import FindCoordinatorHandler
from riverlog.broker.handlers.heartbeat import HeartbeatHandler
from riverlog.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler
from riverlog.broker.handlers.init_producer_id import InitProducerIdHandler
from riverlog.broker.handlers.join_group import JoinGroupHandler
from riverlog.broker.handlers.leave_group import LeaveGroupHandler
from riverlog.broker.handlers.list_config_resources import ListConfigResourcesHandler
from riverlog.broker.handlers.list_groups import ListGroupsHandler
from riverlog.broker.handlers.list_offsets import ListOffsetsHandler
from riverlog.broker.handlers.list_partition_reassignments import ListPartitionReassignmentsHandler
from riverlog.broker.handlers.list_transactions import ListTransactionsHandler
from riverlog.broker.handlers.metadata import MetadataHandler
from riverlog.broker.handlers.offset_commit import OffsetCommitHandler
from riverlog.broker.handlers.offset_delete import OffsetDeleteHandler
from riverlog.broker.handlers.offset_fetch import OffsetFetchHandler
from riverlog.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from riverlog.broker.handlers.sync_group import SyncGroupHandler
from riverlog.broker.handlers.txn_offset_commit import TxnOffsetCommitHandler
from riverlog.broker.handlers.unregister_broker import UnregisterBrokerHandler
from riverlog.broker.handlers.update_features import UpdateFeaturesHandler
from riverlog.broker.handlers.write_txn_markers import WriteTxnMarkersHandler
from riverlog.broker.net.cold_reads import ColdReader
from riverlog.broker.produce.handler import SERVED_VERSION_MIN, ProduceHandler
from riverlog.broker.produce.transaction_admission import ProduceAdmission, TransactionAdmission
from riverlog.broker.shared.config_alterations import ConfigAlterations, Layers
from riverlog.broker.shared.coordinator_locator import CoordinatorLocator
from riverlog.broker.shared.forwarding import Forwarding
from riverlog.broker.shared.leader_hints import LeaderHints
from riverlog.broker.shared.log_levels import LogLevels
from riverlog.broker.shared.topic_making import TopicMaking
from riverlog.controller.client import ControllerClient
from riverlog.controller.internal_topics import AutomaticTopics
from riverlog.coordinator.groups.coordinator import GroupCoordinator
from riverlog.coordinator.transactions.coordinator import TransactionCoordinator
from riverlog.coordinator.transactions.markers import MarkerWriter
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.requirements import RACK_AWARE_SELECTORS
from riverlog.model.config.slices import ServerConfig
from riverlog.model.metrics import Metrics
from riverlog.model.rights import (
    NO_RIGHTS,
    AclOperation,
    Rights,
    on_cluster,
    on_group,
    on_topic,
    on_transactional_id,
)
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.by_hand.fetch_request import decode_fetch
from riverlog.wire.by_hand.produce_request import decode_produce
from riverlog.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from riverlog.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from riverlog.wire.messages.alter_configs import AlterConfigsRequest
from riverlog.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from riverlog.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from riverlog.wire.messages.api_versions import ApiVersionsRequest
from riverlog.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from riverlog.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from riverlog.wire.messages.create_acls import CreateAclsRequest
from riverlog.wire.messages.create_partitions import CreatePartitionsRequest
from riverlog.wire.messages.create_topics import CreateTopicsRequest
from riverlog.wire.messages.delete_acls import DeleteAclsRequest
from riverlog.wire.messages.delete_groups import DeleteGroupsRequest
from riverlog.wire.messages.delete_records import DeleteRecordsRequest
from riverlog.wire.messages.delete_topics import DeleteTopicsRequest
from riverlog.wire.messages.describe_acls import DescribeAclsRequest
from riverlog.wire.messages.describe_cluster import DescribeClusterRequest
from riverlog.wire.messages.describe_configs import DescribeConfigsRequest
from riverlog.wire.messages.describe_groups import DescribeGroupsRequest
from riverlog.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from riverlog.wire.messages.describe_producers import DescribeProducersRequest
from riverlog.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from riverlog.wire.messages.describe_transactions import DescribeTransactionsRequest
from riverlog.wire.messages.elect_leaders import ElectLeadersRequest
from riverlog.wire.messages.end_txn import EndTxnRequest
from riverlog.wire.messages.fetch import FetchRequest
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.heartbeat import HeartbeatRequest
from riverlog.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from riverlog.wire.messages.init_producer_id import InitProducerIdRequest
from riverlog.wire.messages.join_group import JoinGroupRequest
from riverlog.wire.messages.leave_group import LeaveGroupRequest
from riverlog.wire.messages.list_config_resources import ListConfigResourcesRequest
from riverlog.wire.messages.list_groups import ListGroupsRequest
from riverlog.wire.messages.list_offsets import ListOffsetsRequest
from riverlog.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from riverlog.wire.messages.list_transactions import ListTransactionsRequest
from riverlog.wire.messages.metadata import MetadataRequest
from riverlog.wire.messages.offset_commit import OffsetCommitRequest
from riverlog.wire.messages.offset_delete import OffsetDeleteRequest
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest
from riverlog.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from riverlog.wire.messages.produce import ProduceRequest
from riverlog.wire.messages.sync_group import SyncGroupRequest
from riverlog.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from riverlog.wire.messages.unregister_broker import UnregisterBrokerRequest
from riverlog.wire.messages.update_features import UpdateFeaturesRequest
from riverlog.wire.messages.write_txn_markers import WriteTxnMarkersRequest

READ, WRITE = AclOperation.READ, AclOperation.WRITE
CREATE, DELETE = AclOperation.CREATE, AclOperation.DELETE
ALTER, DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
ALTER_CONFIGS, DESCRIBE_CONFIGS = AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE
TWO_PHASE_COMMIT = AclOperation.TWO_PHASE_COMMIT


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What handlers are made with."""

    config: ServerConfig
    replicas: ReplicaSet
    follower: MetadataFollower
    controller: ControllerClient
    producer_ids: ProducerIds
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    transaction_admission: TransactionAdmission
    markers: MarkerWriter
    automatic_topics: AutomaticTopics
    directories: LogDirectories
    moves: ReplicaPlaces
    layers: Layers
    forwarding: Forwarding | None
    """None for a node that is its own controller for good."""
    fetch_sessions: FetchSessions
    replica_fetches: ReplicaFetches | None
    """None for a node that is alone."""
    turn: LoopTurn
    cold_reader: ColdReader
    clock: Clock
    metrics: Metrics
    new_id: Callable[[], UUID]


def routes_of(parts: Collaborators) -> Mapping[int, AnyRoute]:
    """By API key."""
    routes = [
        *_records(parts),
        *_topics(parts),
        *_administration(parts),
        *_groups(parts),
        *_transactions(parts),
    ]
    if parts.forwarding is not None:
        routes.append(
            route(UnregisterBrokerRequest, UnregisterBrokerHandler(parts.controller), on_cluster(ALTER))
        )
    advertised = [each.api for each in routes]
    if parts.forwarding is not None:
        envelope = envelope_of(routes, parts.forwarding, parts.config.inter_broker_listener)
        routes = [*by_the_controller(routes, parts.forwarding), envelope]
    routes.append(
        route(
            ApiVersionsRequest,
            ApiVersionsHandler(advertised, lambda: parts.follower.image),
            NO_RIGHTS,
        )
    )
    return {int(each.api.key): each for each in routes}


def _records(parts: Collaborators) -> list[AnyRoute]:
    replicas, follower = parts.replicas, parts.follower
    hints = None if parts.forwarding is None else LeaderHints(lambda: follower.image)
    admitted = ProduceAdmission(parts.transaction_admission, replicas)
    produced = ProduceHandler(replicas, admitted, parts.turn, parts.clock, parts.metrics, hints)
    nearest = NearestReplica(parts.config.node_id, replicas.standing, parts.clock)
    fetched = FetchHandler(
        FetchReader(replicas, nearest if parts.config.replica_selector in RACK_AWARE_SELECTORS else None),
        parts.fetch_sessions,
        parts.turn,
        parts.cold_reader,
        fetch_bytes_max=parts.config.fetch_bytes_max,
        metrics=parts.metrics,
        hints=hints,
        replica_fetches=parts.replica_fetches,
    )
    deleted = DeleteRecordsHandler(replicas, parts.turn)
    follower.subscribe(deleted.apply)
    return [
        route(
            ProduceRequest,
            produced,
            on_topic(WRITE) + on_transactional_id(WRITE),
            decode=decode_produce,
            served_version_min=SERVED_VERSION_MIN,
            may_be_overtaken=True,
            make_template=produced.template,
        ),
        route(
            FetchRequest,
            fetched,
            on_topic(READ) + on_cluster(CLUSTER_ACTION),
            decode=decode_fetch,
            may_be_overtaken=True,
        ),
        route(ListOffsetsRequest, ListOffsetsHandler(replicas), on_topic(DESCRIBE)),
        route(
            OffsetForLeaderEpochRequest,
            OffsetForLeaderEpochHandler(replicas),
            on_topic(DESCRIBE) + on_cluster(CLUSTER_ACTION),
        ),
        route(DeleteRecordsRequest, deleted, on_topic(DELETE)),
        route(DescribeProducersRequest, DescribeProducersHandler(replicas, follower), on_topic(READ)),
    ]


def _topics(parts: Collaborators) -> list[AnyRoute]:
    follower, controller = parts.follower, parts.controller
    return [
        route(
            MetadataRequest,
            MetadataHandler(
                follower, _making(parts), parts.automatic_topics, auto_create=parts.config.auto_create_topics
            ),
            on_topic(DESCRIBE, CREATE) + on_cluster(CREATE),
        ),
        route(DescribeClusterRequest, DescribeClusterHandler(follower), on_cluster(DESCRIBE)),
        route(
            DescribeTopicPartitionsRequest,
            DescribeTopicPartitionsHandler(follower, partitions_max=parts.config.request_partitions_max),
            on_topic(DESCRIBE),
        ),
        route(
            CreateTopicsRequest,
            CreateTopicsHandler(controller, parts.layers),
            on_topic(CREATE, DESCRIBE_CONFIGS) + on_cluster(CREATE),
        ),
        route(
            DeleteTopicsRequest,
            DeleteTopicsHandler(controller, is_enabled=parts.config.delete_topics),
            on_topic(DELETE, DESCRIBE) + on_cluster(DELETE),
        ),
        route(CreatePartitionsRequest, CreatePartitionsHandler(controller), on_topic(ALTER)),
        route(ElectLeadersRequest, ElectLeadersHandler(controller, follower), on_cluster(ALTER)),
        route(
            AlterPartitionReassignmentsRequest,
            AlterPartitionReassignmentsHandler(follower),
            on_cluster(ALTER),
        ),
        route(ListPartitionReassignmentsRequest, ListPartitionReassignmentsHandler(), on_cluster(DESCRIBE)),
    ]


def _administration(parts: Collaborators) -> list[AnyRoute]:
    log_levels = LogLevels()
    alterations = ConfigAlterations(
        parts.controller, parts.layers, log_levels, parts.config.node_id, parts.forwarding
    )
    return [
        route(
            DescribeConfigsRequest,
            DescribeConfigsHandler(
                parts.follower, parts.layers, log_levels, parts.config.node_id, parts.clock
            ),
            _of_every_kind(DESCRIBE_CONFIGS),
        ),
        route(AlterConfigsRequest, AlterConfigsHandler(alterations), _of_every_kind(ALTER_CONFIGS)),
        route(
            IncrementalAlterConfigsRequest,
            IncrementalAlterConfigsHandler(alterations),
            _of_every_kind(ALTER_CONFIGS),
        ),
        route(
            ListConfigResourcesRequest,
            ListConfigResourcesHandler(parts.follower),
            on_cluster(DESCRIBE_CONFIGS),
        ),
        route(DescribeLogDirsRequest, DescribeLogDirsHandler(parts.directories), on_cluster(DESCRIBE)),
        route(
            AlterReplicaLogDirsRequest,
            AlterReplicaLogDirsHandler(parts.follower, parts.moves),
            on_cluster(ALTER),
        ),
        route(UpdateFeaturesRequest, UpdateFeaturesHandler(parts.controller), on_cluster(ALTER)),
        route(DescribeAclsRequest, DescribeAclsHandler(), on_cluster(DESCRIBE)),
        route(CreateAclsRequest, CreateAclsHandler(), on_cluster(ALTER)),
        route(DeleteAclsRequest, DeleteAclsHandler(), on_cluster(ALTER)),
    ]


def _groups(parts: Collaborators) -> list[AnyRoute]:
    groups, follower = parts.groups, parts.follower
    locator = CoordinatorLocator(follower, _making(parts), parts.automatic_topics)
    return [
        route(
            FindCoordinatorRequest,
            FindCoordinatorHandler(locator),
            on_group(DESCRIBE) + on_transactional_id(DESCRIBE),
        ),
        route(JoinGroupRequest, JoinGroupHandler(groups, lambda: str(parts.new_id())), on_group(READ)),
        route(SyncGroupRequest, SyncGroupHandler(groups), on_group(READ)),
        route(HeartbeatRequest, HeartbeatHandler(groups), on_group(READ)),
        route(LeaveGroupRequest, LeaveGroupHandler(groups), on_group(READ)),
        route(
            ConsumerGroupHeartbeatRequest,
            ConsumerGroupHeartbeatHandler(groups, follower, parts.new_id),
            on_group(READ) + on_topic(DESCRIBE),
        ),
        route(
            ConsumerGroupDescribeRequest,
            ConsumerGroupDescribeHandler(groups, follower),
            on_group(DESCRIBE) + on_topic(DESCRIBE),
        ),
        route(ListGroupsRequest, ListGroupsHandler(groups), on_cluster(DESCRIBE) + on_group(DESCRIBE)),
        route(DescribeGroupsRequest, DescribeGroupsHandler(groups), on_group(DESCRIBE)),
        route(DeleteGroupsRequest, DeleteGroupsHandler(groups), on_group(DELETE)),
        route(OffsetCommitRequest, OffsetCommitHandler(groups, follower), on_group(READ) + on_topic(READ)),
        route(
            OffsetFetchRequest, OffsetFetchHandler(groups, follower), on_group(DESCRIBE) + on_topic(DESCRIBE)
        ),
        route(OffsetDeleteRequest, OffsetDeleteHandler(groups, follower), on_group(DELETE) + on_topic(READ)),
    ]


def _transactions(parts: Collaborators) -> list[AnyRoute]:
    transactions, follower = parts.transactions, parts.follower
    locator = CoordinatorLocator(follower, _making(parts), parts.automatic_topics)
    return [
        route(
            InitProducerIdRequest,
            InitProducerIdHandler(parts.producer_ids, transactions),
            on_transactional_id(WRITE, TWO_PHASE_COMMIT) + on_cluster(IDEMPOTENT_WRITE) + on_topic(WRITE),
        ),
        route(
            AddPartitionsToTxnRequest,
            AddPartitionsToTxnHandler(transactions, follower),
            on_transactional_id(WRITE) + on_topic(WRITE) + on_cluster(CLUSTER_ACTION),
        ),
        route(
            AddOffsetsToTxnRequest,
            AddOffsetsToTxnHandler(transactions, locator),
            on_transactional_id(WRITE) + on_group(READ),
        ),
        route(EndTxnRequest, EndTxnHandler(transactions, follower), on_transactional_id(WRITE)),
        route(
            WriteTxnMarkersRequest, WriteTxnMarkersHandler(parts.markers), on_cluster(ALTER, CLUSTER_ACTION)
        ),
        route(
            TxnOffsetCommitRequest,
            TxnOffsetCommitHandler(parts.groups, parts.transaction_admission, locator, follower),
            on_transactional_id(WRITE) + on_group(READ) + on_topic(READ),
        ),
        route(
            DescribeTransactionsRequest,
            DescribeTransactionsHandler(transactions),
            on_transactional_id(DESCRIBE) + on_topic(DESCRIBE),
        ),
        route(
            ListTransactionsRequest,
            ListTransactionsHandler(transactions, parts.clock),
            on_transactional_id(DESCRIBE),
        ),
    ]


def _making(parts: Collaborators) -> TopicMaking:
    return TopicMaking(parts.controller, parts.follower, parts.forwarding, parts.clock)


def _of_every_kind(operation: AclOperation) -> Rights:
    return on_topic(operation) + on_group(operation) + on_cluster(operation)
