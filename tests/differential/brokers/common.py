"""Phrases of the sequences for several brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.differential.brokers.settings import BROKERS
from tests.differential.steps import Call, Step

Json = Any

ALL = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
"""Three partitions on all brokers, of which each leads the one before its own number."""


def at(broker: int, call: Call) -> Call:
    return replace(call, on=str(broker))


def everywhere(call: Call) -> list[Step]:
    return [at(broker, call) for broker in BROKERS]


def assigned(name: str, replicas: list[list[int]], configs: Mapping[str, str] | None = None) -> Json:
    """A topic of CreateTopics whose replicas are told."""
    return {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [{"partition_index": index, "broker_ids": ids} for index, ids in enumerate(replicas)],
        "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
    }


def placed(
    name: str, replicas: list[list[int]], configs: Mapping[str, str] | None = None, by: int = 2
) -> list[Step]:
    """Creates a topic with these replicas, and waits until all brokers know who leads."""
    request = {"topics": [assigned(name, replicas, configs)], "timeout_ms": 10000}
    return [at(by, Call("CreateTopics", 7, request)), *in_sync(name, replicas)]


def in_sync(name: str, replicas: list[list[int]], alive: tuple[int, ...] = BROKERS) -> list[Step]:
    """Waits until every broker tells of the preferred leaders; every broker knows the topic's id then."""
    until: dict[str, Json] = {"topics.0.error_code": "NONE"}
    for index, ids in enumerate(replicas):
        until[f"topics.0.partitions.{index}.leader_id"] = ids[0]
    return [
        *(at(broker, metadata(name, until=until)) for broker in alive),
        *(at(ids[0], leads(name, index)) for index, ids in enumerate(replicas)),
    ]


def metadata(name: str, version: int = 12, until: Mapping[str, Json] | None = None) -> Call:
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return Call("Metadata", version, asked, until=until)


def leads(name: str, partition: int) -> Call:
    """Waits until the broker takes itself for the leader."""
    asked = [{"partition_index": partition, "timestamp": -1}]
    fields = {"replica_id": -1, "topics": [{"name": name, "partitions": asked}]}
    return Call("ListOffsets", 7, fields, until={"topics.0.partitions.0.error_code": "NONE"})
