"""The same damage to a valid request of every version of every API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.sequences.common import BROKER, NO_SUCH_ID, VERSIONS
from tests.differential.sequences.offsets import group_ready
from tests.differential.steps import Call, Script, Step, append, truncate

Json = Any

_ACL_FILTER: Json = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}

_SAMPLES: Mapping[str, Json] = {
    "Produce": {
        "acks": -1,
        "timeout_ms": 1000,
        "topic_data": [
            {
                "name": "nowhere",
                "topic_id": NO_SUCH_ID,
                "partition_data": [{"index": 0, "records": {"$batch": {"records": [{"value": "a"}]}}}],
            }
        ],
    },
    "Fetch": {
        "max_wait_ms": 0,
        "topics": [
            {"topic": "nowhere", "topic_id": NO_SUCH_ID, "partitions": [{"partition": 0, "fetch_offset": 0}]}
        ],
    },
    "ListOffsets": {
        "replica_id": -1,
        "topics": [{"name": "nowhere", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    },
    "Metadata": {"topics": [{"name": "no/where"}], "allow_auto_topic_creation": False},
    "ApiVersions": {"client_software_name": "a", "client_software_version": "b"},
    "CreateTopics": {"topics": [{"name": "no/where", "num_partitions": 1, "replication_factor": 1}]},
    "DeleteTopics": {"topic_names": ["nowhere"], "topics": [{"name": "nowhere"}]},
    "DeleteRecords": {
        "topics": [{"name": "nowhere", "partitions": [{"partition_index": 0, "offset": 0}]}],
        "timeout_ms": 1000,
    },
    "CreatePartitions": {
        "topics": [{"name": "nowhere", "count": 2, "assignments": None}],
        "timeout_ms": 1000,
    },
    "DescribeConfigs": {
        "resources": [
            {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["num.partitions"]}
        ]
    },
    "AlterConfigs": {
        "resources": [
            {
                "resource_type": 2,
                "resource_name": "nowhere",
                "configs": [{"name": "retention.ms", "value": "1"}],
            }
        ]
    },
    "IncrementalAlterConfigs": {
        "resources": [
            {
                "resource_type": 2,
                "resource_name": "nowhere",
                "configs": [{"name": "retention.ms", "config_operation": 0, "value": "1"}],
            }
        ]
    },
    "DescribeCluster": {"include_cluster_authorized_operations": False, "endpoint_type": 1},
    "DescribeTopicPartitions": {"topics": [{"name": "nowhere"}], "response_partition_limit": 10},
    "DescribeLogDirs": {"topics": [{"topic": "nowhere", "partitions": [0]}]},
    "OffsetForLeaderEpoch": {
        "replica_id": -1,
        "topics": [
            {
                "topic": "nowhere",
                "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}],
            }
        ],
    },
    "InitProducerId": {"transactional_id": None, "transaction_timeout_ms": 1000},
    "FindCoordinator": {"key": "nobody", "key_type": 9, "coordinator_keys": ["nobody"]},
    "JoinGroup": {
        "group_id": "nobody",
        "session_timeout_ms": 1,
        "rebalance_timeout_ms": 1,
        "member_id": "nobody",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": {"$hex": "00"}}],
    },
    "SyncGroup": {
        "group_id": "nobody",
        "generation_id": 1,
        "member_id": "nobody",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "nobody", "assignment": {"$hex": "00"}}],
    },
    "Heartbeat": {"group_id": "nobody", "generation_id": 1, "member_id": "nobody"},
    "LeaveGroup": {
        "group_id": "nobody",
        "member_id": "nobody",
        "members": [{"member_id": "nobody", "group_instance_id": None}],
    },
    "ListGroups": {"states_filter": ["Nonsense"], "types_filter": ["classic"]},
    "DescribeGroups": {"groups": ["nobody"]},
    "ConsumerGroupHeartbeat": {"group_id": "nobody", "member_id": "ann", "member_epoch": 5},
    "ConsumerGroupDescribe": {"group_ids": ["nobody"]},
    "DeleteGroups": {"groups_names": ["nobody"]},
    "OffsetCommit": {
        "group_id": "nobody",
        "topics": [
            {
                "name": "nowhere",
                "topic_id": NO_SUCH_ID,
                "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "note"}],
            }
        ],
    },
    "OffsetFetch": {"group_id": "nobody", "topics": [], "groups": []},
    "OffsetDelete": {
        "group_id": "",
        "topics": [{"name": "nowhere", "partitions": [{"partition_index": 0}]}],
    },
    "AddPartitionsToTxn": {
        "v3_and_below_transactional_id": "nobody",
        "v3_and_below_producer_id": 900900,
        "v3_and_below_producer_epoch": 0,
        "v3_and_below_topics": [{"name": "nowhere", "partitions": [0]}],
        "transactions": [
            {
                "transactional_id": "nobody",
                "producer_id": 900900,
                "producer_epoch": 0,
                "verify_only": False,
                "topics": [{"name": "nowhere", "partitions": [0]}],
            }
        ],
    },
    "AddOffsetsToTxn": {"transactional_id": "", "producer_id": 900900, "producer_epoch": 0, "group_id": "g"},
    "EndTxn": {"transactional_id": "", "producer_id": 900900, "producer_epoch": 0, "committed": True},
    "WriteTxnMarkers": {
        "markers": [
            {
                "producer_id": 900900,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": [{"name": "nowhere", "partition_indexes": [0]}],
                "coordinator_epoch": 0,
            }
        ]
    },
    "TxnOffsetCommit": {
        "transactional_id": "nobody",
        "group_id": "nobody",
        "producer_id": 900900,
        "producer_epoch": 0,
        "topics": [
            {
                "name": "nowhere",
                "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": "note"}],
            }
        ],
    },
    "DescribeTransactions": {"transactional_ids": []},
    "ListTransactions": {"state_filters": ["Bogus"], "producer_id_filters": []},
    "DescribeProducers": {"topics": [{"name": "nowhere", "partition_indexes": [0]}]},
    "DescribeAcls": _ACL_FILTER,
    "CreateAcls": {
        "creations": [
            {
                "resource_type": 2,
                "resource_name": "nowhere",
                "resource_pattern_type": 3,
                "principal": "User:nobody",
                "host": "*",
                "operation": 3,
                "permission_type": 3,
            }
        ]
    },
    "DeleteAcls": {"filters": [_ACL_FILTER]},
    "AlterReplicaLogDirs": {
        "dirs": [{"path": "/nowhere", "topics": [{"name": "nowhere", "partitions": [0]}]}]
    },
    "ElectLeaders": {"topic_partitions": [{"topic": "nowhere", "partitions": [0]}], "timeout_ms": 1000},
    "AlterPartitionReassignments": {
        "topics": [{"name": "nowhere", "partitions": [{"partition_index": 0, "replicas": [1]}]}],
        "timeout_ms": 1000,
    },
    "ListPartitionReassignments": {
        "topics": [{"name": "nowhere", "partition_indexes": [0]}],
        "timeout_ms": 1000,
    },
    "UpdateFeatures": {
        "feature_updates": [{"feature": "no.such.feature", "max_version_level": 1}],
        "timeout_ms": 1000,
    },
    "ListConfigResources": {"resource_types": [99]},
}

_OF_GROUPS = {
    "FindCoordinator",
    "OffsetCommit",
    "OffsetFetch",
    "OffsetDelete",
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "LeaveGroup",
    "ListGroups",
    "DescribeGroups",
    "DeleteGroups",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
}
"""Their answers depend on whether a coordinator has been looked for before."""


def scripts() -> list[Script]:
    made = []
    for api, versions in VERSIONS.items():
        first: list[Step] = group_ready("nobody") if api in _OF_GROUPS else []
        made.append(
            Script(api, "every version, whole", [*first, *(Call(api, v, _SAMPLES[api]) for v in versions)])
        )
        for about, edits in _DAMAGE.items():
            steps: list[Step] = [
                Call(api, v, _SAMPLES[api], edits=edits) for v in versions if _can(api, v, about)
            ]
            made.append(Script(api, f"every version, {about}", first + steps))
    return made


_DAMAGE = {
    "the last byte cut off": (truncate(1),),
    "five bytes cut off": (truncate(5),),
    "bytes after the end": (append(b"\x00\x01\x02"),),
}


def _can(api: str, version: int, about: str) -> bool:
    """A body without fields has no byte to cut: the damage would be to the header, which framing covers."""
    return not (api in ("ApiVersions", "ListGroups") and version < 3 and "cut" in about)
