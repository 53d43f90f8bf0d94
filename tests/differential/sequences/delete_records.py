"""DeleteRecords: moving the start of a log."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created, produce
from tests.differential.sequences.list_offsets import asked
from tests.differential.steps import Call, Script, Step, batch

Json = Any


def scripts() -> list[Script]:
    return [Script("DeleteRecords", f"version {v}", _version(v)) for v in VERSIONS["DeleteRecords"]]


def _trim(version: int, topic: str, *partitions: tuple[int, int], timeout_ms: int = 5000) -> Call:
    wanted = [{"partition_index": partition, "offset": offset} for partition, offset in partitions]
    return Call(
        "DeleteRecords",
        version,
        {"topics": [{"name": topic, "partitions": wanted}], "timeout_ms": timeout_ms},
    )


def _version(version: int) -> list[Step]:
    name, compacted, mixed = f"trim-{version}", f"trim-compact-{version}", f"trim-mixed-{version}"
    start = {"partition_index": 0, "timestamp": -2}
    keyed = batch(records=[{"key": "k", "value": "v"}])
    return [
        *created(name, 2),
        produce(9, name, batch("a", "b", "c")),
        produce(9, name, batch("d", "e")),
        _trim(version, name, (0, 2)),
        asked(5, name, start),
        _trim(version, name, (0, 1)),
        _trim(version, name, (0, 6)),
        _trim(version, name, (0, -2)),
        _trim(version, name, (0, 5)),
        asked(5, name, start),
        produce(9, name, batch("f")),
        _trim(version, name, (0, -1), (1, -1)),
        asked(5, name, start),
        _trim(version, name, (1, 0), (7, 0), (-1, 0)),
        _trim(version, name, (0, 6), (0, 6)),
        _trim(version, "trim-nowhere", (0, 0)),
        _trim(version, "not/valid", (0, 0)),
        _trim(version, name),
        _trim(version, name, (0, 6), timeout_ms=0),
        Call("DeleteRecords", version, {"topics": [], "timeout_ms": 1000}),
        *created(compacted, 1, {"cleanup.policy": "compact"}),
        produce(9, compacted, keyed),
        _trim(version, compacted, (0, 1)),
        *created(mixed, 1, {"cleanup.policy": "compact,delete"}),
        produce(9, mixed, keyed),
        _trim(version, mixed, (0, 1)),
    ]
