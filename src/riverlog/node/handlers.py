"""Every handler with its collaborators, as the list of routes wants them."""

import random
from collections.abc import Callable, Mapping

from riverlog.broker.fetch_reads import FetchReader
from riverlog.broker.fetch_sessions import FetchSessions
from riverlog.broker.handlers.alter_configs import AlterConfigsHandler
from riverlog.broker.handlers.alter_partition_reassignments import AlterPartitionReassignmentsHandler
from riverlog.broker.handlers.alter_replica_log_dirs import AlterReplicaLogDirsHandler
from riverlog.broker.handlers.config_alterations import ConfigAlterations
from riverlog.broker.handlers.create_acls import CreateAclsHandler
from riverlog.broker.handlers.create_partitions import CreatePartitionsHandler
from riverlog.broker.handlers.create_topics import CreateTopicsHandler
from riverlog.broker.handlers.delete_acls import DeleteAclsHandler
from riverlog.broker.handlers.delete_records import DeleteRecordsHandler
from riverlog.broker.handlers.delete_topics import DeleteTopicsHandler
from riverlog.broker.handlers.describe_acls import DescribeAclsHandler
from riverlog.broker.handlers.describe_cluster import DescribeClusterHandler
from riverlog.broker.handlers.describe_configs import DescribeConfigsHandler
from riverlog.broker.handlers.describe_log_dirs import DescribeLogDirsHandler
from riverlog.broker.handlers.describe_topic_partitions import DescribeTopicPartitionsHandler
from riverlog.broker.handlers.elect_leaders import ElectLeadersHandler
from riverlog.broker.handlers.fetch import FetchHandler
from riverlog.broker.handlers.incremental_alter_configs import IncrementalAlterConfigsHandler
from riverlog.broker.handlers.init_producer_id import InitProducerIdHandler
from riverlog.broker.handlers.list_config_resources import ListConfigResourcesHandler
from riverlog.broker.handlers.list_offsets import ListOffsetsHandler
from riverlog.broker.handlers.list_partition_reassignments import ListPartitionReassignmentsHandler
from riverlog.broker.handlers.log_levels import LogLevels
from riverlog.broker.handlers.metadata import MetadataHandler
from riverlog.broker.handlers.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from riverlog.broker.handlers.produce import ProduceHandler
from riverlog.broker.handlers.update_features import UpdateFeaturesHandler
from riverlog.broker.route import Handler, Route
from riverlog.broker.routes import routes_of
from riverlog.broker.turn import Turn
from riverlog.controller.controller import Controller
from riverlog.metadata.follower import MetadataFollower
from riverlog.metadata.producer_ids import ProducerIds
from riverlog.model.clock import Clock
from riverlog.model.config.describe import created_topic_entries
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.config.slices import ServerConfig
from riverlog.model.metrics import Metrics
from riverlog.node.coordinators import Coordinators
from riverlog.node.data_directories import DataDirectories
from riverlog.node.log_moves import LogMoves
from riverlog.replication.replica_set import ReplicaSet
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.create_topics import CreatableTopicConfigs

_SESSION_ID_MAX = 2**31 - 1


def make_routes(
    config: ServerConfig,
    *,
    replicas: ReplicaSet,
    follower: MetadataFollower,
    controller: Controller,
    producer_ids: ProducerIds,
    coordinators: Coordinators,
    directories: DataDirectories,
    moves: LogMoves,
    layers: Callable[[], BrokerLayers],
    turn: Turn,
    clock: Clock,
    metrics: Metrics,
) -> Mapping[int, Route]:
    sessions = FetchSessions(
        config.fetch_session_slots,
        now_ms=lambda: int(clock.monotonic_s() * 1000),
        random_id=lambda: random.randint(1, _SESSION_ID_MAX),
    )
    log_levels = LogLevels()
    alterations = ConfigAlterations(controller, layers, log_levels, config.node_id)
    admin: dict[ApiKey, Handler] = {
        ApiKey.METADATA: MetadataHandler(
            follower, controller, coordinators.automatic_topics, auto_create=config.auto_create_topics
        ),
        ApiKey.CREATE_TOPICS: CreateTopicsHandler(
            controller, lambda overrides: _created_entries(layers(), overrides)
        ),
        ApiKey.DELETE_TOPICS: DeleteTopicsHandler(controller, is_enabled=config.delete_topics),
        ApiKey.DELETE_RECORDS: DeleteRecordsHandler(replicas),
        ApiKey.CREATE_PARTITIONS: CreatePartitionsHandler(controller),
        ApiKey.DESCRIBE_CLUSTER: DescribeClusterHandler(follower),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: DescribeTopicPartitionsHandler(
            follower, partitions_max=config.request_partitions_max
        ),
        ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsHandler(directories),
        ApiKey.DESCRIBE_CONFIGS: DescribeConfigsHandler(follower, layers, log_levels, config.node_id),
        ApiKey.ALTER_CONFIGS: AlterConfigsHandler(alterations),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: IncrementalAlterConfigsHandler(alterations),
        ApiKey.LIST_CONFIG_RESOURCES: ListConfigResourcesHandler(follower),
        ApiKey.ALTER_REPLICA_LOG_DIRS: AlterReplicaLogDirsHandler(follower, moves),
        ApiKey.ELECT_LEADERS: ElectLeadersHandler(follower),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: AlterPartitionReassignmentsHandler(follower),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: ListPartitionReassignmentsHandler(),
        ApiKey.UPDATE_FEATURES: UpdateFeaturesHandler(controller),
        ApiKey.DESCRIBE_ACLS: DescribeAclsHandler(),
        ApiKey.CREATE_ACLS: CreateAclsHandler(),
        ApiKey.DELETE_ACLS: DeleteAclsHandler(),
        **coordinators.handlers(controller),
    }
    return routes_of(
        produce=ProduceHandler(replicas, coordinators.transactions.produced, clock, metrics),
        fetch=FetchHandler(
            FetchReader(replicas), sessions, turn, fetch_bytes_max=config.fetch_bytes_max, metrics=metrics
        ),
        list_offsets=ListOffsetsHandler(replicas),
        offset_for_leader_epoch=OffsetForLeaderEpochHandler(replicas),
        init_producer_id=InitProducerIdHandler(producer_ids, coordinators.transactions.coordinator),
        admin=admin,
        features=lambda: follower.image,
    )


def _created_entries(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in created_topic_entries(layers, overrides)
    ]
