"""Fetch: offsets, limits, leader epochs, waiting, and clients that say they are brokers."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import (
    NO_SUCH_ID,
    VERSIONS,
    created,
    fetch,
    fetched_topic,
    produce,
    wanted,
)
from tests.differential.steps import Call, Collect, Later, Script, Step, batch, replace

Json = Any

_VERSIONS = VERSIONS["Fetch"]


def scripts() -> list[Script]:
    return [
        *(Script("Fetch", f"offsets, version {v}", _offsets(v)) for v in _VERSIONS),
        *(Script("Fetch", f"limits, version {v}", _limits(v)) for v in _VERSIONS),
        *(Script("Fetch", f"places that do not exist, version {v}", _nowhere(v)) for v in _VERSIONS),
        *(Script("Fetch", f"leader epochs, version {v}", _epochs(v)) for v in _VERSIONS if v >= 9),
        *(
            Script("Fetch", f"a client that says it is a broker, version {v}", _forged(v))
            for v in (4, 9, 13, 15, 18)
        ),
        *(Script("Fetch", f"waiting, version {v}", _waiting(v)) for v in (4, 12, 18)),
        Script("Fetch", "after records were deleted", _trimmed()),
        Script("Fetch", "counts that lie", _hostile()),
    ]


def _filled(name: str, partitions: int = 1) -> list[Step]:
    """Offsets 0-1, 2-4 and 5 in three batches."""
    sent = [batch("a", "b"), batch("c", "d", "e"), batch("f", codec="gzip")]
    return [*created(name, partitions), *(produce(9, name, records) for records in sent)]


def _offsets(version: int) -> list[Step]:
    name = f"fetch-offsets-{version}"
    offsets = (0, 1, 2, 3, 5, 6, 7, 100, -1, -2, 2**63 - 1)
    return [
        *_filled(name, 2),
        *(fetch(version, name, wanted(0, offset)) for offset in offsets),
        *(fetch(version, name, wanted(0, offset), isolation_level=1) for offset in (0, 6, 7)),
        fetch(version, name, wanted(0, 3), wanted(1, 0)),
        fetch(version, name, wanted(1, 0)),
        fetch(version, name),
    ]


def _limits(version: int) -> list[Step]:
    """The first batch comes whole whatever the limits say; later ones only if there is room (KIP-74)."""
    name = f"fetch-limits-{version}"
    big = batch(records=[{"value": {"$repeat": ["x", 300]}}])
    steps: list[Step] = [*created(name, 2)]
    steps += [produce(9, name, big, partition=partition) for partition in (0, 0, 1)]
    for limit in (0, 1, 100, 380, 1000):
        steps.append(fetch(version, name, wanted(0, 0), wanted(1, 0), max_bytes=limit))
        small = [wanted(partition, 0, partition_max_bytes=limit) for partition in (0, 1)]
        steps.append(fetch(version, name, *small))
    return [*steps, fetch(version, name, wanted(0, 0), max_bytes=-1)]


def _nowhere(version: int) -> list[Step]:
    name = f"fetch-nowhere-{version}"
    steps: list[Step] = [
        *_filled(name),
        fetch(version, name, wanted(4, 0)),
        fetch(version, name, wanted(-1, 0)),
    ]
    steps.append(fetch(version, name, wanted(0, 0), wanted(4, 0)))
    if version < 13:
        steps += [fetch(version, other, wanted(0, 0)) for other in ("fetch-no-such-topic", "not/valid", "")]
    else:
        for topic_id in (NO_SUCH_ID, None):
            topics = [
                {"topic_id": topic_id, "partitions": [wanted(0, 0)]},
                fetched_topic(version, name, wanted(0, 0)),
            ]
            steps.append(Call("Fetch", version, {"max_wait_ms": 0, "max_bytes": 1000, "topics": topics}))
    return steps


def _epochs(version: int) -> list[Step]:
    name = f"fetch-epochs-{version}"
    claims = [{"current_leader_epoch": epoch} for epoch in (0, 1, 100, -1, -2)]
    if version >= 12:
        claims += [{"last_fetched_epoch": epoch} for epoch in (0, 1, -1)]
        claims += [{"current_leader_epoch": 7, "last_fetched_epoch": 0}]
    steps: list[Step] = [*_filled(name)]
    for claim in claims:
        steps += [fetch(version, name, wanted(0, offset, **claim)) for offset in (2, 6, 50)]
    return steps


def _forged(version: int) -> list[Step]:
    """Replica ids from a connection that has not shown to be a broker."""
    name = f"fetch-forged-{version}"
    steps: list[Step] = [*_filled(name)]
    for replica in (0, 1, 2, 7, -2, -3, 2**31 - 1):
        claim: Json = {"replica_id": replica} if version < 15 else {"replica_state": {"replica_id": replica}}
        steps.append(fetch(version, name, wanted(0, 0), **claim))
        steps.append(fetch(version, name, wanted(0, 6), **claim))
    if version >= 12:
        steps.append(fetch(version, name, wanted(0, 0), cluster_id="not-this-cluster"))
    if version >= 15:
        steps.append(fetch(version, name, wanted(0, 0), replica_state={"replica_id": 1, "replica_epoch": 99}))
    return [*steps, fetch(version, name, wanted(0, 0))]


def _waiting(version: int) -> list[Step]:
    name = f"fetch-waiting-{version}"
    long = fetch(version, name, wanted(0, 0), max_wait_ms=8000, min_bytes=1)
    more = fetch(version, name, wanted(0, 0), max_wait_ms=300, min_bytes=100000)
    missing = fetch(version, name, wanted(0, 0), wanted(9, 0), max_wait_ms=8000, min_bytes=1)
    return [
        *created(name),
        fetch(version, name, wanted(0, 0), max_wait_ms=200, min_bytes=1),
        Later("waits", long),
        produce(9, name, batch("a"), on="producer"),
        Collect("waits"),
        more,
        missing,
        fetch(version, name, wanted(0, 9), max_wait_ms=8000, min_bytes=1),
        fetch(version, name, max_wait_ms=8000, min_bytes=1),
        fetch(version, name, wanted(0, 1), max_wait_ms=-1, min_bytes=1),
        fetch(version, name, wanted(0, 0), max_wait_ms=0, min_bytes=-1),
    ]


def _trimmed() -> list[Step]:
    name = "fetch-trimmed"
    trim = {
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "offset": 3}]}],
        "timeout_ms": 5000,
    }
    steps: list[Step] = [*_filled(name), Call("DeleteRecords", 2, trim)]
    for version in (4, 5, 11, 12, 13, 18):
        steps += [fetch(version, name, wanted(0, offset)) for offset in (0, 2, 3, 4, 6, 7)]
    return steps


def _hostile() -> list[Step]:
    name = "fetch-lies"
    legacy = b"\x00\x00\x00\x01\x00\x0a" + name.encode() + b"\x00\x00\x00\x01"
    steps: list[Step] = [*_filled(name)]
    for count in (
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\x80\x00\x00\x00",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x09",
    ):
        edits = (replace(legacy, count + legacy[4:]), replace(legacy, legacy[:-4] + count))
        steps += [_edited(fetch(4, name, wanted(0, 0)), edit) for edit in edits]
    compact = b"\x02\x0b" + name.encode() + b"\x02"
    for count in (b"\x00", b"\x01", b"\x40", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\x01"):
        edits = (replace(compact, count + compact[1:]), replace(compact, compact[:-1] + count))
        steps += [_edited(fetch(12, name, wanted(0, 0)), edit) for edit in edits]
    return steps


def _edited(call: Call, edit: Any) -> Call:
    return Call(call.api, call.version, call.fields, edits=(edit,))
