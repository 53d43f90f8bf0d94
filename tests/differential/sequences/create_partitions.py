"""CreatePartitions: more, fewer, placed, tried."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created
from tests.differential.steps import Call, Script, Step

Json = Any


def scripts() -> list[Script]:
    return [Script("CreatePartitions", f"version {v}", _version(v)) for v in VERSIONS["CreatePartitions"]]


def _grow(version: int, *topics: Json, **fields: Json) -> Call:
    return Call("CreatePartitions", version, {"topics": list(topics), "timeout_ms": 10000} | fields)


def _to(name: str, count: int, placed: list[list[int]] | None = None) -> Json:
    assignments = None if placed is None else [{"broker_ids": brokers} for brokers in placed]
    return {"name": name, "count": count, "assignments": assignments}


def _version(version: int) -> list[Step]:
    name = f"grow-{version}"
    seen = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return [
        *created(name, 2),
        _grow(version, _to(name, 3)),
        Call("Metadata", 12, seen, until={"topics.0.partitions.2.leader_id": 1}),
        _grow(version, _to(name, 3)),
        _grow(version, _to(name, 2)),
        _grow(version, _to(name, 0)),
        _grow(version, _to(name, -1)),
        _grow(version, _to("grow-nowhere", 3)),
        _grow(version, _to("not/valid", 3)),
        _grow(version, _to("", 3)),
        _grow(version, _to(name, 5), validate_only=True),
        _grow(version, _to(name, 1), _to("grow-nowhere", 2), validate_only=True),
        Call("Metadata", 12, seen),
        _grow(version, _to(name, 4, [[1]])),
        Call("Metadata", 12, seen, until={"topics.0.partitions.3.leader_id": 1}),
        _grow(version, _to(name, 5, [])),
        _grow(version, _to(name, 6, [[1]])),
        _grow(version, _to(name, 5, [[1], [1]])),
        _grow(version, _to(name, 5, [[2]])),
        _grow(version, _to(name, 5, [[1, 1]])),
        _grow(version, _to(name, 5, [[]])),
        _grow(version, _to(name, 6, [[1], [1, 2]])),
        _grow(version, _to(name, 5), _to(name, 6)),
        _grow(version, _to(name, 5), _to("grow-nowhere", 6)),
        _grow(version),
        _grow(version, _to(name, 7), timeout_ms=0),
    ]
