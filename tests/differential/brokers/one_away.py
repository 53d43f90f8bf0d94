"""A broker is stopped, which leaves partitions with too few replicas or none, and comes back."""

from __future__ import annotations

from typing import Any

from tests.differential.brokers.common import ALL, at, everywhere, leads, metadata, placed
from tests.differential.sequences.common import TOPIC, VERSIONS, fetch, produce, wanted
from tests.differential.steps import Call, Control, Script, Step, batch

Json = Any

SHRUNK, PAIR, ALONE, STRICT = "away-all", "away-pair", "away-alone", "away-strict"
"""On all brokers; on 2 and 3 with a minimum of two; on 3 alone; on all with a minimum of three."""
_ERROR = "responses.0.partition_responses.0.error_code"


def scripts() -> list[Script]:
    return [
        Script("DescribeTopicPartitions", "a broker stops and comes back", _away()),
        Script("DescribeTopicPartitions", "the only replica is away", _alone()),
    ]


def _away() -> list[Step]:
    return [
        *placed(SHRUNK, ALL),
        *placed(PAIR, [[2, 3], [3, 2]], {"min.insync.replicas": "2"}),
        *placed(STRICT, [[1, 2, 3]], {"min.insync.replicas": "3"}),
        at(1, produce(9, STRICT, batch("a"))),
        at(2, produce(9, PAIR, batch("a"))),
        Control("stop", 3),
        *_gone(),
        *_told(),
        *_written(),
        *_elections((SHRUNK, [0, 1, 2]), (PAIR, [0, 1])),
        at(2, _created("away-two", 2)),
        at(1, _created("away-four", 4)),
        at(2, _created("away-only", -1, [3])),
        Control("start", 3),
        *_back(),
    ]


def _alone() -> list[Step]:
    """Nobody leads, until it is back. Topics are made that it shall hold a replica of."""
    # A broker that is gone is no leader for those who have not heard yet that nobody was elected.
    nobody = {"topics.0.partitions.0.leader_id": -1, "topics.0.partitions.0.leader_epoch": 1}
    return [
        *placed(ALONE, [[3]]),
        at(3, produce(9, ALONE, batch("a"))),
        Control("stop", 3),
        *(at(broker, metadata(ALONE, until=nobody)) for broker in (1, 2)),
        *(at(broker, _described(ALONE)) for broker in (1, 2)),
        *(at(1, metadata(ALONE, version)) for version in VERSIONS["Metadata"]),
        *(at(1, Call("DescribeCluster", v, {"include_fenced_brokers": True})) for v in range(3)),
        at(1, produce(9, ALONE, batch("b"))),
        at(1, produce(13, ALONE, batch("b"))),
        at(1, fetch(10, ALONE, wanted(0, 0))),
        at(1, fetch(12, ALONE, wanted(0, 0))),
        at(1, fetch(17, ALONE, wanted(0, 0))),
        at(1, Call("ListOffsets", 7, _offsets(ALONE))),
        *_elections((ALONE, [0])),
        at(2, _created("away-three", 3)),
        at(1, _created("away-first", -1, [3, 1])),
        at(1, _created("away-second", -1, [1, 3])),
        Control("start", 3),
        *everywhere(metadata(ALONE, until={"topics.0.partitions.0.leader_id": 3})),
        *everywhere(_described(ALONE)),
        at(3, leads(ALONE, 0)),
        at(3, fetch(12, ALONE, wanted(0, 0))),
    ]


def _gone() -> list[Step]:
    """Waits until both see that broker 3 leads nothing any more and is in no ISR that has others."""
    seen = [
        metadata(SHRUNK, until=_isr([1, 2], [1, 2], [1, 2])),
        metadata(PAIR, until=_isr([2], [2])),
        metadata(STRICT, until=_isr([1, 2])),
    ]
    return [
        *(at(broker, each) for broker in (1, 2) for each in seen),
        at(1, leads(SHRUNK, 2)),
        at(2, leads(PAIR, 1)),
    ]


def _isr(*nodes: list[int]) -> dict[str, Json]:
    return {f"topics.0.partitions.{index}.isr_nodes": ids for index, ids in enumerate(nodes)}


def _described(*names: str) -> Call:
    topics = [{"name": name} for name in names]
    return Call(
        "DescribeTopicPartitions", 0, {"topics": topics, "response_partition_limit": 2000, "cursor": None}
    )


def _told() -> list[Step]:
    steps: list[Step] = [at(broker, _described(SHRUNK, PAIR, STRICT)) for broker in (1, 2)]
    for version in VERSIONS["Metadata"]:
        steps += [at(1, metadata(name, version)) for name in (SHRUNK, PAIR)]
    steps += [at(1, Call("DescribeCluster", version, {})) for version in range(3)]
    return steps


def _written() -> list[Step]:
    """Below the minimum nothing is taken with acks=all; what a single replica takes is not committed."""
    steps: list[Step] = [at(1, produce(version, STRICT, batch("b"))) for version in (3, 7, 9, 10, 12, 13)]
    steps += [
        at(1, produce(9, STRICT, batch("c"), acks=1)),
        at(1, fetch(12, STRICT, wanted(0, 0))),
        at(2, produce(9, PAIR, batch("b"))),
        at(2, produce(9, PAIR, batch("c"), acks=1)),
        at(2, fetch(12, PAIR, wanted(0, 0))),
        at(1, _minimum(STRICT, "2")),
        at(1, _minimum_seen(STRICT, "2")),
        at(1, produce(9, STRICT, batch("d"), until={_ERROR: "NONE"})),
        at(1, fetch(12, STRICT, wanted(0, 0))),
    ]
    return steps


def _offsets(name: str) -> Json:
    return {
        "replica_id": -1,
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    }


def _minimum(name: str, value: str) -> Call:
    change = {"name": "min.insync.replicas", "config_operation": 0, "value": value}
    resource = {"resource_type": TOPIC, "resource_name": name, "configs": [change]}
    return Call("IncrementalAlterConfigs", 1, {"resources": [resource], "validate_only": False})


def _minimum_seen(name: str, value: str) -> Call:
    resource = {
        "resource_type": TOPIC,
        "resource_name": name,
        "configuration_keys": ["min.insync.replicas"],
    }
    until = {"results.0.configs.0.value": value}
    return Call("DescribeConfigs", 4, {"resources": [resource]}, until=until)


def _elections(*asked_for: tuple[str, list[int]]) -> list[Step]:
    steps: list[Step] = []
    for version in VERSIONS["ElectLeaders"]:
        for kind in (0, 1) if version else (0,):
            for name, partitions in asked_for:
                asked = {
                    "election_type": kind,
                    "topic_partitions": [{"topic": name, "partitions": partitions}],
                    "timeout_ms": 10000,
                }
                steps.append(at(1 + version % 2, Call("ElectLeaders", version, asked)))
    return steps


def _created(name: str, factor: int, replicas: list[int] | None = None) -> Call:
    told = [] if replicas is None else [{"partition_index": 0, "broker_ids": replicas}]
    topic = {
        "name": name,
        "num_partitions": 1 if replicas is None else -1,
        "replication_factor": factor,
        "assignments": told,
        "configs": [],
    }
    return Call("CreateTopics", 7, {"topics": [topic], "timeout_ms": 10000})


def _back() -> list[Step]:
    """It follows again, and leads what it is preferred for once that is asked for."""
    preferred = {"topic_partitions": [{"topic": SHRUNK, "partitions": [0, 1, 2]}], "timeout_ms": 10000}
    whole = _isr([1, 2, 3], [1, 2, 3], [1, 2, 3])
    leaders = {f"topics.0.partitions.{index}.leader_id": index + 1 for index in range(3)}
    return [
        *everywhere(metadata(SHRUNK, until=whole)),
        *everywhere(metadata(PAIR, until=_isr([2, 3], [2, 3]))),
        *everywhere(_described(SHRUNK, PAIR)),
        at(2, fetch(12, PAIR, wanted(0, 0), until={"responses.0.partitions.0.high_watermark": 2})),
        at(3, Call("ElectLeaders", 2, preferred)),
        *everywhere(metadata(SHRUNK, until=leaders)),
        at(3, leads(SHRUNK, 2)),
        at(1, produce(13, SHRUNK, batch("e"), partition=2)),
        at(1, produce(13, SHRUNK, batch("e"), partition=0)),
        at(1, fetch(17, SHRUNK, wanted(2, 0, current_leader_epoch=0))),
        at(3, fetch(17, SHRUNK, wanted(2, 0, current_leader_epoch=0))),
    ]
