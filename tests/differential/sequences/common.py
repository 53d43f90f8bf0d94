"""Phrases that many sequences use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.steps import Call, Step, var

Json = Any

VERSIONS = {
    "Produce": range(3, 14),
    "Fetch": range(4, 19),
    "ListOffsets": range(1, 12),
    "Metadata": range(14),
    "ApiVersions": range(5),
    "CreateTopics": range(2, 8),
    "DeleteTopics": range(1, 7),
    "DeleteRecords": range(3),
    "CreatePartitions": range(4),
    "DescribeConfigs": range(1, 5),
    "AlterConfigs": range(3),
    "IncrementalAlterConfigs": range(2),
    "DescribeCluster": range(3),
    "DescribeTopicPartitions": range(1),
    "DescribeLogDirs": range(1, 6),
    "OffsetForLeaderEpoch": range(2, 5),
    "InitProducerId": range(6),
    "FindCoordinator": range(7),
    "JoinGroup": range(10),
    "SyncGroup": range(6),
    "Heartbeat": range(5),
    "LeaveGroup": range(6),
    "ListGroups": range(6),
    "DescribeGroups": range(7),
    "DeleteGroups": range(3),
    "OffsetCommit": range(2, 11),
    "OffsetFetch": range(1, 11),
    "OffsetDelete": range(1),
    "ConsumerGroupHeartbeat": range(2),
    "ConsumerGroupDescribe": range(2),
    "AddPartitionsToTxn": range(6),
    "AddOffsetsToTxn": range(5),
    "EndTxn": range(6),
    "WriteTxnMarkers": range(1, 3),
    "TxnOffsetCommit": range(6),
    "DescribeTransactions": range(1),
    "ListTransactions": range(3),
    "DescribeProducers": range(1),
    "DescribeAcls": range(1, 4),
    "CreateAcls": range(1, 4),
    "DeleteAcls": range(1, 4),
    "AlterReplicaLogDirs": range(1, 3),
    "ElectLeaders": range(3),
    "AlterPartitionReassignments": range(2),
    "ListPartitionReassignments": range(1),
    "UpdateFeatures": range(3),
    "ListConfigResources": range(2),
}
"""The versions that are played; Produce 0-2 exist only to be refused, see ``produce``."""

NO_SUCH_ID = "00000000-0000-4000-8000-00000000beef"
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def created(
    name: str, partitions: int = 1, configs: Mapping[str, str] | None = None, learn_id: bool = True
) -> list[Step]:
    """Creates a topic, learns its id and waits until each partition can be read."""
    wanted = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": wanted}
    steps: list[Step] = [Call("CreateTopics", 4, {"topics": [topic], "timeout_ms": 10000})]
    if learn_id:
        steps.append(learned(name))
    steps.append(ready(name, partitions))
    return steps


def learned(name: str) -> Call:
    """Binds ``topic_id:NAME``."""
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return Call("Metadata", 12, asked, until={"topics.0.error_code": "NONE"})


def ready(name: str, partitions: int = 1) -> Call:
    asked = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
    fields = {"replica_id": -1, "topics": [{"name": name, "partitions": asked}]}
    until = {f"topics.0.partitions.{index}.error_code": "NONE" for index in range(partitions)}
    return Call("ListOffsets", 7, fields, until=until)


def produce(
    version: int, topic: str, records: Json, *, partition: int = 0, acks: int = -1, **more: Any
) -> Call:
    data = [{"index": partition, "records": records}]
    return produce_to(version, [(topic, data)], acks=acks, **more)


def produce_to(
    version: int,
    topics: list[tuple[str, Json]],
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    **more: Any,
) -> Call:
    named = [
        {"name": name, "topic_id": var(f"topic_id:{name}"), "partition_data": data} for name, data in topics
    ]
    if version < 13:
        for topic in named:
            del topic["topic_id"]
    fields = {"acks": acks, "timeout_ms": 5000, "topic_data": named, "transactional_id": transactional_id}
    return Call("Produce", version, fields, **more)


def wanted(partition: int, offset: int, **more: Json) -> Json:
    """One partition of a fetch request."""
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20} | more


def fetch(
    version: int,
    topic: str,
    *partitions: Json,
    on: str = "main",
    until: Mapping[str, Json] | None = None,
    **fields: Json,
) -> Call:
    """A fetch that does not wait, unless it is told to."""
    topics = [fetched_topic(version, topic, *partitions)] if partitions else []
    base = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": topics}
    return Call("Fetch", version, base | fields, on=on, until=until)


def fetched_topic(version: int, topic: str, *partitions: Json) -> Json:
    if version < 13:
        return {"topic": topic, "partitions": list(partitions)}
    return {"topic_id": var(f"topic_id:{topic}"), "partitions": list(partitions)}


def deleted(*names: str) -> list[Step]:
    """Deletes topics and waits until they are gone."""
    gone: list[Step] = [Call("DeleteTopics", 4, {"topic_names": list(names), "timeout_ms": 10000})]
    for name in names:
        asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        gone.append(Call("Metadata", 12, asked, until={"topics.0.error_code": "UNKNOWN_TOPIC_OR_PARTITION"}))
    return gone
