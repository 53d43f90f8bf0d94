"""Requests that every broker takes, though the controller or a coordinator is another one."""

from __future__ import annotations

from typing import Any

from tests.differential.brokers.common import ALL, assigned, at, everywhere, metadata, placed
from tests.differential.sequences.common import VERSIONS
from tests.differential.steps import Call, Script, Step

Json = Any

COORDINATOR = 2
"""Of every group and every transaction."""


def scripts() -> list[Script]:
    return [
        Script("FindCoordinator", "internal topics are made", _internal()),
        *(Script("Metadata", f"version {v}", _metadata(v)) for v in VERSIONS["Metadata"]),
        *(Script("DescribeCluster", f"version {v}", _cluster(v)) for v in VERSIONS["DescribeCluster"]),
        *(Script("FindCoordinator", f"version {v}", _coordinator(v)) for v in VERSIONS["FindCoordinator"]),
        Script("FindCoordinator", "requests to others than the coordinator", _elsewhere()),
        *(Script("CreateTopics", f"version {v}", _created(v)) for v in VERSIONS["CreateTopics"]),
        Script("CreatePartitions", "with assignments", _grown()),
        *(Script("ElectLeaders", f"version {v}", _elected(v)) for v in VERSIONS["ElectLeaders"]),
        Script("DescribeTopicPartitions", "all in sync", _described()),
        *(Script("InitProducerId", f"version {v}", _producer_ids(v)) for v in VERSIONS["InitProducerId"]),
        Script("IncrementalAlterConfigs", "of brokers", _configs()),
    ]


def _internal() -> list[Step]:
    compacted = {"cleanup.policy": "compact"}
    return [
        *placed("__consumer_offsets", [[COORDINATOR, 3, 1]], compacted),
        *placed("__transaction_state", [[COORDINATOR, 3, 1]], compacted),
    ]


def _metadata(version: int) -> list[Step]:
    name = f"metadata-brokers-{version}"
    full = {f"topics.0.partitions.{index}.isr_nodes": [1, 2, 3] for index in range(3)}
    return [
        *placed(name, ALL, by=1 + version % 3),
        *(at(broker, metadata(name, until=full)) for broker in (1, 2, 3)),
        *everywhere(metadata(name, version)),
    ]


def _cluster(version: int) -> list[Step]:
    return [
        *everywhere(Call("DescribeCluster", version, {})),
        *everywhere(Call("DescribeCluster", version, {"include_fenced_brokers": True})),
    ]


def _coordinator(version: int) -> list[Step]:
    steps: list[Step] = []
    for key_type in (0, 1) if version else (0,):
        asked = {"key": "somebody", "coordinator_keys": ["somebody", "somebody else"], "key_type": key_type}
        steps += everywhere(Call("FindCoordinator", version, asked))
    return steps


def _elsewhere() -> list[Step]:
    group, transaction = "group-elsewhere", "transaction-elsewhere"
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    joining = {
        "group_id": group,
        "session_timeout_ms": 10000,
        "rebalance_timeout_ms": 10000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": {"$hex": ""}}],
    }
    mine = {"transactional_id": transaction, "producer_id": 900_000, "producer_epoch": 0}
    producer = {"transactional_id": transaction, "transaction_timeout_ms": 10000}
    beat = {"group_id": group, "member_id": "a", "generation_id": 1}
    calls = [
        Call("JoinGroup", 5, joining),
        Call("Heartbeat", 4, beat),
        Call("LeaveGroup", 3, {"group_id": group, "members": [{"member_id": "a"}]}),
        Call("OffsetCommit", 8, {"group_id": group, "topics": topics}),
        Call("OffsetFetch", 7, {"group_id": group, "topics": None}),
        Call("OffsetFetch", 8, {"groups": [{"group_id": group, "topics": None}]}),
        Call("DescribeGroups", 5, {"groups": [group]}),
        Call("DeleteGroups", 2, {"groups_names": [group]}),
        Call("InitProducerId", 4, producer),
        Call("AddOffsetsToTxn", 3, mine | {"group_id": group}),
        Call("EndTxn", 3, mine | {"committed": True}),
        Call("DescribeTransactions", 0, {"transactional_ids": [transaction]}),
        Call("ConsumerGroupDescribe", 0, {"group_ids": [group]}),
    ]
    return [at(broker, call) for call in calls for broker in (1, 3)]


def _created(version: int) -> list[Step]:
    name = f"create-brokers-{version}"

    def asked(*topics: Json, only: bool = False) -> Call:
        fields = {"topics": list(topics), "timeout_ms": 10000, "validate_only": only}
        return Call("CreateTopics", version, fields)

    def sized(partitions: int, factor: int, suffix: str = "x") -> Json:
        return {"name": f"{name}-{suffix}", "num_partitions": partitions, "replication_factor": factor}

    steps: list[Step] = []
    for broker in (1, 2, 3):
        steps += [
            at(broker, asked(sized(2, 3, f"three-{broker}"))),
            at(broker, asked(sized(2, 2, f"two-{broker}"))),
            at(broker, asked(sized(1, 4))),
            at(broker, asked(sized(1, 0))),
            at(broker, asked(sized(1, -2))),
            at(broker, asked(sized(1, 3), only=True)),
            at(broker, asked(assigned(f"{name}-told-{broker}", ALL))),
            at(broker, asked(assigned(f"{name}-x", [[1, 2, 9]]))),
            at(broker, asked(assigned(f"{name}-x", [[9]]))),
            at(broker, asked(assigned(f"{name}-x", [[1, 1]]))),
            at(broker, asked(assigned(f"{name}-x", [[]]))),
            at(broker, asked(assigned(f"{name}-x", [[1, 2], [1]]))),
            at(broker, asked(assigned(f"{name}-x", [[-1]]))),
            at(broker, asked(assigned(f"{name}-told-{broker}", ALL))),
        ]
    gap = assigned(f"{name}-x", [[1, 2]])
    gap["assignments"][0]["partition_index"] = 1
    both = assigned(f"{name}-x", [[1, 2]])
    both |= {"num_partitions": 1, "replication_factor": 2}
    return [*steps, at(3, asked(gap)), at(3, asked(both))]


def _grown() -> list[Step]:
    steps: list[Step] = []
    for version in VERSIONS["CreatePartitions"]:
        name = f"grow-brokers-{version}"

        def asked(
            count: int, replicas: list[list[int]] | None, name: str = name, version: int = version
        ) -> Call:
            told = None if replicas is None else [{"broker_ids": ids} for ids in replicas]
            topics = [{"name": name, "count": count, "assignments": told}]
            return Call("CreatePartitions", version, {"topics": topics, "timeout_ms": 10000})

        steps += [
            *placed(name, [[1, 2]]),
            at(3, asked(2, [[2, 9]])),
            at(3, asked(2, [[2, 2]])),
            at(3, asked(2, [[2, 3, 1]])),
            at(3, asked(2, [[2]])),
            at(3, asked(3, [[2, 3]])),
            at(1, asked(2, [[2, 3]])),
            at(2, asked(4, [[3, 1], [1, 2]])),
            at(3, asked(5, None)),
            at(1, asked(1, None)),
        ]
    return steps


def _elected(version: int) -> list[Step]:
    name = f"elect-brokers-{version}"
    here = [{"topic": name, "partitions": [0, 1, 2]}]
    asked: Json = {"topic_partitions": here, "timeout_ms": 10000}
    steps: list[Step] = [
        *placed(name, ALL),
        *everywhere(Call("ElectLeaders", version, asked)),
        at(
            2,
            Call("ElectLeaders", version, asked | {"topic_partitions": [{"topic": name, "partitions": [9]}]}),
        ),
    ]
    if version:
        steps += everywhere(Call("ElectLeaders", version, asked | {"election_type": 1}))
    return steps


def _described() -> list[Step]:
    name = "described-brokers"
    full = {f"topics.0.partitions.{index}.isr_nodes": [1, 2, 3] for index in range(3)}
    asked = {"topics": [{"name": name}], "response_partition_limit": 2000, "cursor": None}
    return [
        *placed(name, ALL),
        *everywhere(metadata(name, until=full)),
        *everywhere(Call("DescribeTopicPartitions", 0, asked)),
    ]


def _producer_ids(version: int) -> list[Step]:
    asked = {"transactional_id": None, "transaction_timeout_ms": 1000}
    return everywhere(Call("InitProducerId", version, asked, until={"error_code": "NONE"}))


def _configs() -> list[Step]:
    """Of a broker, asked for at others: Kafka refuses settings of another broker where it can be told."""

    def altered(broker: str, value: str) -> Call:
        change = {"name": "log.cleaner.threads", "config_operation": 0, "value": value}
        resource = {"resource_type": 4, "resource_name": broker, "configs": [change]}
        return Call("IncrementalAlterConfigs", 1, {"resources": [resource], "validate_only": False})

    def described(broker: str) -> Call:
        resource = {
            "resource_type": 4,
            "resource_name": broker,
            "configuration_keys": ["log.cleaner.threads"],
        }
        return Call("DescribeConfigs", 4, {"resources": [resource], "include_synonyms": True})

    return [
        *everywhere(described("1")),
        *everywhere(described("9")),
        at(2, altered("9", "2")),
        at(2, altered("x", "2")),
    ]
