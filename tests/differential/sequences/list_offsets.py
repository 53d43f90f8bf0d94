"""ListOffsets: the ends, by time, by largest time, and questions about tiers that are not there."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created, produce
from tests.differential.steps import Call, Script, Step, batch, replace

Json = Any

_VERSIONS = VERSIONS["ListOffsets"]


def scripts() -> list[Script]:
    return [
        *(Script("ListOffsets", f"version {v}", _version(v)) for v in _VERSIONS),
        *(Script("ListOffsets", f"an empty partition, version {v}", _empty(v)) for v in _VERSIONS),
        *(Script("ListOffsets", f"leader epochs, version {v}", _epochs(v)) for v in _VERSIONS if v >= 4),
        Script("ListOffsets", "after records were deleted", _trimmed()),
        Script("ListOffsets", "log append time", _append_time()),
        Script("ListOffsets", "counts that lie", _hostile()),
    ]


def asked(version: int, topic: str, *partitions: Json, **fields: Json) -> Call:
    base = {"replica_id": -1, "topics": [{"name": topic, "partitions": list(partitions)}], "timeout_ms": 1000}
    return Call("ListOffsets", version, base | fields)


def _at(timestamp: int, partition: int = 0, **more: Json) -> Json:
    return {"partition_index": partition, "timestamp": timestamp} | more


def _filled(name: str) -> list[Step]:
    times = [[1000, 2000], [1500, 1500, 9000], [4000]]
    sent = [batch(records=[{"value": "v", "timestamp": time} for time in group]) for group in times]
    packed = batch(
        records=[{"value": "v", "timestamp": 9500}, {"value": "v", "timestamp": 9100}], codec="gzip"
    )
    return [*created(name, 2), *(produce(9, name, records) for records in [*sent, packed])]


def _version(version: int) -> list[Step]:
    name = f"list-offsets-{version}"
    times = (
        -1,
        -2,
        -3,
        -4,
        -5,
        -6,
        -7,
        -100,
        0,
        999,
        1000,
        1001,
        1500,
        2000,
        2001,
        9000,
        9001,
        9500,
        9501,
        2**62,
    )
    return [
        *_filled(name),
        *(asked(version, name, _at(time)) for time in times),
        asked(version, name, _at(-1), _at(-2, 1), _at(-1, 7)),
        asked(version, name, _at(-1), _at(-2)),
        asked(version, name, _at(-1), isolation_level=1),
        asked(version, name, _at(1000), isolation_level=1),
        asked(version, name, _at(-1), replica_id=1),
        asked(version, name, _at(-1), replica_id=-2),
        asked(version, name, _at(-1), replica_id=77),
        asked(version, "list-offsets-nowhere", _at(-1)),
        asked(version, "not/valid", _at(-1)),
        asked(version, name, _at(-1, -1)),
        Call("ListOffsets", version, {"replica_id": -1, "topics": []}),
        asked(version, name),
    ]


def _empty(version: int) -> list[Step]:
    name = f"list-offsets-empty-{version}"
    return [*created(name), *(asked(version, name, _at(time)) for time in (-1, -2, -3, -4, -5, 0, 1000))]


def _epochs(version: int) -> list[Step]:
    name = f"list-offsets-epochs-{version}"
    calls = [
        asked(version, name, _at(time, current_leader_epoch=epoch))
        for epoch in (0, 1, -1, -2)
        for time in (-1, 1000)
    ]
    return [*_filled(name), *calls]


def _trimmed() -> list[Step]:
    name = "list-offsets-trimmed"
    trim = {
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "offset": 4}]}],
        "timeout_ms": 5000,
    }
    steps: list[Step] = [*_filled(name), Call("DeleteRecords", 2, trim)]
    for version in (1, 5, 7, 11):
        steps += [asked(version, name, _at(time)) for time in (-1, -2, -3, -4, 0, 1000, 4000, 9200)]
    return steps


def _append_time() -> list[Step]:
    name = "list-offsets-append-time"
    steps: list[Step] = [*created(name, 1, {"message.timestamp.type": "LogAppendTime"})]
    steps += [produce(9, name, batch("a", "b")), produce(9, name, batch("c", codec="lz4"))]
    for version in (1, 4, 7, 11):
        steps += [asked(version, name, _at(time)) for time in (0, 1000, 2**61)]
    return steps


def _hostile() -> list[Step]:
    call = asked(4, "lies", _at(-1))
    marker = b"\x00\x00\x00\x01\x00\x04lies\x00\x00\x00\x01"
    steps: list[Step] = []
    for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x02"):
        edits = (replace(marker, count + marker[4:]), replace(marker, marker[:-4] + count))
        steps += [Call(call.api, call.version, call.fields, edits=(edit,)) for edit in edits]
    return steps
