"""OffsetForLeaderEpoch: where a leader's epoch ended."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created, produce
from tests.differential.steps import Call, Script, Step, batch

Json = Any


def scripts() -> list[Script]:
    versions = VERSIONS["OffsetForLeaderEpoch"]
    return [Script("OffsetForLeaderEpoch", f"version {v}", _version(v)) for v in versions]


def _asked(version: int, topic: str, *partitions: Json, replica_id: int = -1) -> Call:
    topics = [{"topic": topic, "partitions": list(partitions)}]
    return Call("OffsetForLeaderEpoch", version, {"replica_id": replica_id, "topics": topics})


def _epoch(epoch: int, current: int = -1, partition: int = 0) -> Json:
    return {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}


def _version(version: int) -> list[Step]:
    name = f"leader-epoch-{version}"
    questions = [_epoch(epoch) for epoch in (0, 1, 100, -1, -2)]
    questions += [_epoch(0, current) for current in (0, 1, 9, -2)]
    return [
        *created(name, 2),
        _asked(version, name, _epoch(0)),
        produce(9, name, batch("a", "b")),
        *(_asked(version, name, question) for question in questions),
        _asked(version, name, _epoch(0), _epoch(0, partition=1), _epoch(0, partition=5)),
        _asked(version, name, _epoch(0), _epoch(0)),
        _asked(version, name, _epoch(0, partition=-1)),
        _asked(version, "leader-epoch-nowhere", _epoch(0)),
        _asked(version, "not/valid", _epoch(0)),
        *(_asked(version, name, _epoch(0), replica_id=replica) for replica in (-2, 1, 7)),
        _asked(version, name),
        Call("OffsetForLeaderEpoch", version, {"replica_id": -1, "topics": []}),
    ]
