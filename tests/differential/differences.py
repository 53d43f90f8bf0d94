"""All that may differ between Apache Kafka's reply and ours: one list, by API, versions and field path.

A path names fields from the top of the reply; list positions are left out, and an entry of a list that is a
map in truth is named by its key (``results.configs{log.dirs}.value``). There are no wildcards. A row that
no reply of the whole replay needs is an error: what agrees must be compared.

Four kinds of row:

* ``CAPTURED``: an identity that each run makes anew. The first sight binds a variable, every later sight
  must be the same variable in the same place, and requests send it back.
* ``TEXT``: words for people. Kafka's sentences are not copied into this repository; that there is none, an
  empty one or one at all is recorded and compared.
* ``BORN``: a number or path that the run or the machine gives. Its presence is compared.
* ``DIFFERS``: we answer otherwise on purpose. The reason says why. It excuses all that stands below its
  path. A value that would change with every recording is hidden in it. A row may be for one value of
  Kafka's only, or for one sequence.

A path that ends in ``{append time}`` covers a time only when it was set by the broker's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    CAPTURED = "captured"
    TEXT = "text"
    BORN = "born"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Difference:
    api: str
    first_version: int
    last_version: int
    path: str
    kind: Kind
    reason: str
    variable: str = ""
    hidden: bool = False
    when_kafka_says: str | None = None
    only_in: str | None = None
    """The sequence in which it counts; None for all of them."""

    def covers(self, version: int) -> bool:
        return self.first_version <= version <= self.last_version


def _captured(api: str, versions: tuple[int, int], path: str, variable: str, reason: str) -> Difference:
    return Difference(api, *versions, path, Kind.CAPTURED, reason, variable)


def _text(
    api: str, versions: tuple[int, int], path: str, reason: str = "a sentence for people"
) -> Difference:
    return Difference(api, *versions, path, Kind.TEXT, reason)


def _born(api: str, versions: tuple[int, int], path: str, reason: str) -> Difference:
    return Difference(api, *versions, path, Kind.BORN, reason)


def _differs(
    api: str,
    versions: tuple[int, int],
    path: str,
    reason: str,
    hidden: bool = False,
    when_kafka_says: str | None = None,
    only_in: str | None = None,
) -> Difference:
    return Difference(
        api,
        *versions,
        path,
        Kind.DIFFERS,
        reason,
        hidden=hidden,
        when_kafka_says=when_kafka_says,
        only_in=only_in,
    )


TOPIC_ID = "the broker draws a topic's id at random"
ADDRESS = "the port that was free when the broker started"
ADVERTISED = "the oracle sets it; ours follows the port that the system gives"
LOG_DIR = "the default directory, which is not that of another product"
MEMBER_ID = "the broker draws a member's id at random"
CLUSTER = "drawn at random when the storage is formatted"
ALLOTTED = "allotted by the broker"

NOT_YET = {
    "SaslHandshake": 17,
    "SaslAuthenticate": 36,
    "CreateDelegationToken": 38,
    "RenewDelegationToken": 39,
    "ExpireDelegationToken": 40,
    "DescribeDelegationToken": 41,
    "DescribeClientQuotas": 48,
    "AlterClientQuotas": 49,
    "DescribeUserScramCredentials": 50,
    "AlterUserScramCredentials": 51,
    "DescribeQuorum": 55,
    "UnregisterBroker": 64,
    "ShareGroupHeartbeat": 76,
    "ShareGroupDescribe": 77,
    "ShareFetch": 78,
    "ShareAcknowledge": 79,
    "AddRaftVoter": 80,
    "RemoveRaftVoter": 81,
    "InitializeShareGroupState": 83,
    "ReadShareGroupState": 84,
    "WriteShareGroupState": 85,
    "DeleteShareGroupState": 86,
    "ReadShareGroupStateSummary": 87,
    "StreamsGroupHeartbeat": 88,
    "StreamsGroupDescribe": 89,
    "DescribeShareGroupOffsets": 90,
    "AlterShareGroupOffsets": 91,
    "DeleteShareGroupOffsets": 92,
}
"""What Kafka offers and we do not, yet or ever. Whoever adds one takes it out here and adds its sequences."""

FEATURES_SINCE = {
    "eligible.leader.replicas.version": 4,
    "kraft.version": 4,
    "metadata.version": 3,
    "share.version": 4,
    "streams.version": 4,
}
"""Features that Kafka reports, and the version of ApiVersions from which on it does."""

OUR_TOPIC_KEYS = ("riverlog.acks.fsync", "riverlog.validate.records")
OUR_BROKER_KEYS = (
    "riverlog.2pc.warn.ms",
    "riverlog.decompressed.max.bytes",
    "riverlog.insecure",
    "riverlog.lease.strict",
    "riverlog.open.files.max",
    "riverlog.open.logs.max",
    "riverlog.replica.lag.max.messages",
    "riverlog.strays.accept",
)
KRAFT = "of KRaft, which we do not have"
OURS = "a key of ours that Kafka does not have"
NO_FEATURES = "features are levels of KRaft's metadata; we offer what we support by version ranges alone"

DIFFERENCES: tuple[Difference, ...] = (
    *(
        _differs("ApiVersions", (0, 4), f"api_keys{{{key}}}", f"{name} is not offered by us")
        for name, key in NOT_YET.items()
    ),
    *(
        _differs("ApiVersions", (since, 4), f"supported_features{{{name}}}", NO_FEATURES)
        for name, since in FEATURES_SINCE.items()
    ),
    *(
        _differs("ApiVersions", (3, 4), f"finalized_features{{{name}}}", NO_FEATURES)
        for name in FEATURES_SINCE
        if name != "kraft.version"
    ),
    _differs("ApiVersions", (3, 4), "finalized_features_epoch", NO_FEATURES, hidden=True),
    _differs(
        "ApiVersions",
        (0, 4),
        "api_keys{22}.max_version",
        "we serve InitProducerId 6 (KIP-939), which Kafka keeps back; clients use the newest they know",
    ),
    *(_differs("CreateTopics", (5, 7), f"topics.configs{{{key}}}", OURS) for key in OUR_TOPIC_KEYS),
    *(
        _differs("DescribeConfigs", (1, 4), f"results.configs{{{key}}}", OURS)
        for key in OUR_TOPIC_KEYS + OUR_BROKER_KEYS
    ),
    _born("DescribeConfigs", (1, 4), "results.configs{listeners}.value", ADDRESS),
    _born("DescribeConfigs", (1, 4), "results.configs{listeners}.synonyms.value", ADDRESS),
    _differs("DescribeConfigs", (1, 4), "results.configs{advertised.listeners}.value", ADVERTISED, True),
    _differs("DescribeConfigs", (1, 4), "results.configs{advertised.listeners}.config_source", ADVERTISED),
    _differs("DescribeConfigs", (1, 4), "results.configs{advertised.listeners}.synonyms", ADVERTISED, True),
    _born("DescribeConfigs", (1, 4), "results.configs{controller.quorum.voters}.value", KRAFT),
    _born("DescribeConfigs", (1, 4), "results.configs{controller.quorum.voters}.synonyms.value", KRAFT),
    _born("DescribeConfigs", (1, 4), "results.configs{log.dir}.value", LOG_DIR),
    _born("DescribeConfigs", (1, 4), "results.configs{log.dir}.synonyms.value", LOG_DIR),
    _differs(
        "DescribeConfigs",
        (1, 4),
        "results.configs{transaction.two.phase.commit.enable}.synonyms",
        "on by default here, see docs/adr/0008-two-phase-commit-on-by-default.md",
    ),
    _born("DescribeConfigs", (1, 4), "results.configs{log.dirs}.value", "a temporary directory"),
    _born("DescribeConfigs", (1, 4), "results.configs{log.dirs}.synonyms.value", "a temporary directory"),
    _differs(
        "Fetch",
        (4, 18),
        "responses.partitions.incomplete_batch_bytes",
        "Kafka cuts at the byte limit, in the middle of a batch, which clients drop; we end with a whole one",
    ),
    _differs(
        "Produce",
        (3, 13),
        "responses.partition_responses.error_code",
        "Kafka stumbles over such a batch; a client would send it again for ever, so we call it invalid",
        when_kafka_says="UNKNOWN_SERVER_ERROR",
    ),
    _captured("Metadata", (10, 13), "topics.topic_id", "topic_id", TOPIC_ID),
    _captured("Metadata", (0, 13), "brokers.port", "port", ADDRESS),
    _captured("Metadata", (2, 13), "cluster_id", "cluster_id", CLUSTER),
    _captured("DescribeCluster", (0, 2), "cluster_id", "cluster_id", CLUSTER),
    _captured("DescribeCluster", (0, 2), "brokers.port", "port", ADDRESS),
    _text("DescribeCluster", (0, 2), "error_message"),
    _captured("CreateTopics", (7, 7), "topics.topic_id", "topic_id", TOPIC_ID),
    _text("CreateTopics", (2, 7), "topics.error_message"),
    _captured("DeleteTopics", (6, 6), "responses.topic_id", "topic_id", TOPIC_ID),
    _text("DeleteTopics", (5, 6), "responses.error_message"),
    _text("CreatePartitions", (0, 3), "results.error_message"),
    _text("DescribeConfigs", (1, 4), "results.error_message"),
    _text("DescribeConfigs", (3, 4), "results.configs.documentation"),
    _text("AlterConfigs", (0, 2), "responses.error_message"),
    _text("IncrementalAlterConfigs", (0, 1), "responses.error_message"),
    _captured("DescribeTopicPartitions", (0, 0), "topics.topic_id", "topic_id", TOPIC_ID),
    _captured("DescribeLogDirs", (1, 5), "results.log_dir", "log_dir", "a temporary directory"),
    _born("DescribeLogDirs", (4, 5), "results.total_bytes", "the size of the machine's disk"),
    _born("DescribeLogDirs", (4, 5), "results.usable_bytes", "the free space of the machine's disk"),
    _captured("Fetch", (13, 18), "responses.topic_id", "topic_id", TOPIC_ID),
    _captured("Fetch", (7, 18), "session_id", "session", "drawn at random for each fetch session"),
    _captured(
        "Fetch", (4, 18), "responses.partitions.records.producer_id", "producer", "allotted by the broker"
    ),
    _born(
        "Fetch", (4, 18), "responses.partitions.records.max_timestamp{append time}", "the time of the append"
    ),
    _captured("Produce", (13, 13), "responses.topic_id", "topic_id", TOPIC_ID),
    _born("Produce", (3, 13), "responses.partition_responses.log_append_time_ms", "the time of the append"),
    _text("Produce", (8, 13), "responses.partition_responses.error_message"),
    _text("Produce", (8, 13), "responses.partition_responses.record_errors.batch_index_error_message"),
    _born("ListOffsets", (1, 11), "topics.partitions.timestamp{append time}", "the time of the append"),
    _captured("InitProducerId", (0, 5), "producer_id", "producer", "allotted by the broker"),
    _captured("FindCoordinator", (0, 3), "port", "port", ADDRESS),
    _captured("FindCoordinator", (4, 6), "coordinators.port", "port", ADDRESS),
    _text("FindCoordinator", (1, 3), "error_message"),
    _text("FindCoordinator", (4, 6), "coordinators.error_message"),
    _captured("JoinGroup", (0, 9), "member_id", "member", MEMBER_ID),
    _captured("JoinGroup", (0, 9), "leader", "member", MEMBER_ID),
    _captured("JoinGroup", (0, 9), "members.member_id", "member", MEMBER_ID),
    _captured("LeaveGroup", (3, 5), "members.member_id", "member", MEMBER_ID),
    _captured("DescribeGroups", (0, 6), "groups.members.member_id", "member", MEMBER_ID),
    _text("DescribeGroups", (6, 6), "groups.error_message"),
    _captured("ConsumerGroupHeartbeat", (0, 0), "member_id", "member", MEMBER_ID),
    _captured("ConsumerGroupHeartbeat", (0, 1), "assignment.topic_partitions.topic_id", "topic_id", TOPIC_ID),
    _text("ConsumerGroupHeartbeat", (0, 1), "error_message"),
    _captured("ConsumerGroupDescribe", (0, 0), "groups.members.member_id", "member", MEMBER_ID),
    *(
        _captured(
            "ConsumerGroupDescribe",
            (0, 1),
            f"groups.members.{which}.topic_partitions.topic_id",
            "topic_id",
            TOPIC_ID,
        )
        for which in ("assignment", "target_assignment")
    ),
    _text("ConsumerGroupDescribe", (0, 1), "groups.error_message"),
    _born("ListGroups", (0, 3), "groups", "cannot be asked for the groups of one sequence alone"),
    _captured("OffsetCommit", (10, 10), "topics.topic_id", "topic_id", TOPIC_ID),
    _captured("OffsetFetch", (10, 10), "groups.topics.topic_id", "topic_id", TOPIC_ID),
    _captured("EndTxn", (5, 5), "producer_id", "producer", ALLOTTED),
    _captured("DescribeTransactions", (0, 0), "transaction_states.producer_id", "producer", ALLOTTED),
    _born(
        "DescribeTransactions",
        (0, 0),
        "transaction_states.transaction_start_time_ms{append time}",
        "the time of the first addition",
    ),
    _captured("ListTransactions", (0, 2), "transaction_states.producer_id", "producer", ALLOTTED),
    _captured(
        "DescribeProducers", (0, 0), "topics.partitions.active_producers.producer_id", "producer", ALLOTTED
    ),
    _text("DescribeProducers", (0, 0), "topics.partitions.error_message"),
    _born(
        "DescribeProducers",
        (0, 0),
        "topics.partitions.active_producers.last_timestamp{append time}",
        "the time of the marker",
    ),
    _born(
        "Fetch", (4, 18), "responses.partitions.records.base_timestamp{append time}", "the time of the marker"
    ),
    _text("DescribeAcls", (1, 3), "error_message"),
    _text("CreateAcls", (1, 3), "results.error_message"),
    _text("DeleteAcls", (1, 3), "filter_results.error_message"),
    _text("ElectLeaders", (0, 2), "replica_election_results.partition_result.error_message"),
    _text("AlterPartitionReassignments", (0, 1), "responses.partitions.error_message"),
    _text("UpdateFeatures", (0, 2), "error_message"),
    _text("UpdateFeatures", (0, 1), "results.error_message"),
    _captured("WriteTxnMarkers", (1, 2), "markers.producer_id", "producer", ALLOTTED),
    _captured(
        "Fetch", (4, 18), "responses.partitions.aborted_transactions.producer_id", "producer", ALLOTTED
    ),
)

KRAFT_CONTROLLER = (
    "any broker, drawn at random for each reply: Kafka's controllers are not for clients to know"
)

NOT_OUR_FOLLOWER = (
    "our followers tell their broker's registration and the leader's epoch (Fetch 15 and newer), and whoever"
    " does not is no follower; they are told what they need, not the last stable offset or the leader"
)
ALONE = "the only replica is away"
ISR_STAYS = "the last in the ISR stays in it when it dies; KRaft makes it an eligible leader replica instead"
NOT_REGISTERED = (
    "a broker that is away has no registration here, as with ZooKeeper, and gets no replicas of new topics"
)

OF_BROKERS: tuple[Difference, ...] = (
    *(row for row in DIFFERENCES if row.kind in (Kind.CAPTURED, Kind.TEXT, Kind.BORN)),
    _born("Metadata", (1, 13), "controller_id", KRAFT_CONTROLLER),
    _born("DescribeCluster", (0, 2), "controller_id", KRAFT_CONTROLLER),
    _captured("Produce", (10, 13), "node_endpoints.port", "port", ADDRESS),
    _captured("Fetch", (16, 18), "node_endpoints.port", "port", ADDRESS),
    *(_differs("CreateTopics", (5, 7), f"topics.configs{{{key}}}", OURS) for key in OUR_TOPIC_KEYS),
    *(
        _differs("Fetch", (4, 18), "responses.partitions", NOT_OUR_FOLLOWER, only_in=f"as a replica, {epoch}")
        for epoch in (
            "without an epoch of the leader",
            "with an epoch of the leader",
        )
    ),
    _differs("Metadata", (1, 13), "topics.partitions.isr_nodes", ISR_STAYS, only_in=ALONE),
    _differs("DescribeTopicPartitions", (0, 0), "topics.partitions.isr_nodes", ISR_STAYS, only_in=ALONE),
    _differs(
        "DescribeTopicPartitions",
        (0, 0),
        "topics.partitions.eligible_leader_replicas",
        ISR_STAYS,
        only_in=ALONE,
    ),
    _differs("DescribeTopicPartitions", (0, 0), "topics.partitions.last_known_elr", ISR_STAYS, only_in=ALONE),
    _differs("CreateTopics", (7, 7), "topics", NOT_REGISTERED, only_in=ALONE),
)
"""Of what is asked of several brokers. Only the rows of its own must be needed."""
