"""Produce: every version, acknowledgements, places that do not exist, limits."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import (
    NO_SUCH_ID,
    VERSIONS,
    created,
    fetch,
    produce,
    produce_to,
    wanted,
)
from tests.differential.sequences.framing import header
from tests.differential.steps import Call, Frame, Script, Step, Together, batch, batches, hexed, replace

Json = Any


def scripts() -> list[Script]:
    return [
        Script("Produce", "versions 0 to 2 are offered and refused", _refused()),
        *(Script("Produce", f"version {v}", _version(v)) for v in VERSIONS["Produce"]),
        *(Script("Produce", f"no acknowledgement, version {v}", _silent(v)) for v in VERSIONS["Produce"]),
        Script("Produce", "the same place twice in a request", _twice()),
        Script("Produce", "limits of a topic", _limits()),
        Script("Produce", "time bounds", _times()),
        Script("Produce", "log append time", _append_time()),
        Script("Produce", "compacted topics", _compacted()),
        Script("Produce", "recompression", _recompressed()),
        Script("Produce", "a topic that does not exist", _nowhere()),
        Script("Produce", "counts that lie", _hostile()),
    ]


def _refused() -> list[Step]:
    body = b"\x00\x01\x00\x00\x03\xe8\x00\x00\x00\x00"
    frames: list[Step] = [Frame(header(0, v, tail=body), f"Produce version {v}") for v in range(3)]
    return [*frames, Call("ApiVersions", 0)]


def _version(version: int) -> list[Step]:
    name = f"produce-{version}"
    two = [{"index": 0, "records": batch("c")}, {"index": 1, "records": batch("d", "e")}]
    mixed = [{"index": 1, "records": batch("f")}, {"index": 9, "records": batch("g")}]
    return [
        *created(name, 2),
        produce(version, name, batch("a")),
        produce(version, name, batch("b"), acks=1),
        produce_to(version, [(name, two)]),
        produce_to(version, [(name, mixed)]),
        produce(version, name, batch("h"), partition=-1),
        produce(version, name, batch("i"), acks=2),
        produce(version, name, batch("i"), acks=-2),
        produce(version, name, batch("j", force={"crc": 12345})),
        produce(version, name, hexed(b"")),
        produce_to(version, []),
        produce_to(version, [(name, [])]),
        fetch(11, name, wanted(0, 0), wanted(1, 0)),
    ]


def _silent(version: int) -> list[Step]:
    """Nothing answers acks=0 while it goes well; what follows on the connection is answered."""
    name = f"produce-silent-{version}"
    after = Call("Metadata", 1, {"topics": []})
    return [
        *created(name),
        Together((produce(version, name, batch("a"), acks=0), after)),
        Together(
            (produce(version, name, batch("b"), acks=0), produce(version, name, batch("c"), acks=0), after)
        ),
        Together((produce(version, name, batch("d"), acks=0), produce(version, name, batch("e"), acks=1))),
        Together((produce(version, name, batch("f"), partition=7, acks=0), after)),
        Together((produce(version, name, batch("g", force={"crc": 1}), acks=0), after)),
        fetch(11, name, wanted(0, 0)),
    ]


def _twice() -> list[Step]:
    name = "produce-twice"
    steps: list[Step] = [*created(name, 2)]
    for version in (7, 9, 13):
        same = [{"index": 0, "records": batch("a")}, {"index": 0, "records": batch("b")}]
        steps.append(produce_to(version, [(name, same)]))
        once = [{"index": 0, "records": batch("c")}]
        other = [{"index": 1, "records": batch("d")}]
        steps.append(produce_to(version, [(name, once), (name, other)]))
    return [*steps, fetch(11, name, wanted(0, 0), wanted(1, 0))]


def _limits() -> list[Step]:
    name = "produce-limits"
    steps: list[Step] = [*created(name, 1, {"max.message.bytes": "200"})]
    for version in (3, 8, 12, 13):
        for size in (100, 131, 132, 133, 500):
            value = {"$repeat": ["x", size]}
            steps.append(produce(version, name, batch(records=[{"value": value}])))
        packed = batch(records=[{"value": {"$repeat": ["x", 5000]}}], codec="gzip")
        steps.append(produce(version, name, packed))
    return steps


def _times() -> list[Step]:
    """Bounds are relative to now, so the early one is wide and the late one is crossed by far."""
    early, late, open_ended = "produce-early", "produce-late", "produce-open"
    far = 9_000_000_000_000
    old = batch(records=[{"value": "old", "timestamp": 1000}])
    future = batch(records=[{"value": "new", "timestamp": far}])
    mixed = batch(records=[{"value": "a", "timestamp": 1000}, {"value": "b", "timestamp": far}])
    negative = batch(records=[{"value": "a", "timestamp": -1}])
    below = batch(records=[{"value": "a", "timestamp": -5}])
    steps: list[Step] = [
        *created(early, 1, {"message.timestamp.before.max.ms": "1000"}),
        *created(late, 1, {"message.timestamp.after.max.ms": "1000"}),
        *created(open_ended),
    ]
    for version in (3, 8, 13):
        for topic in (early, late, open_ended):
            steps += [produce(version, topic, records) for records in (old, future, mixed, negative, below)]
    return steps


def _append_time() -> list[Step]:
    name = "produce-append-time"
    steps: list[Step] = [*created(name, 1, {"message.timestamp.type": "LogAppendTime"})]
    for version in (3, 8, 13):
        steps.append(produce(version, name, batch("a", "b")))
        steps.append(produce(version, name, batch("c", codec="gzip")))
    far = batch(records=[{"value": "a", "timestamp": 9_000_000_000_000}])
    already = batch("d", attributes=8)
    plain = "produce-append-time-not"
    return [
        *steps,
        produce(8, name, far),
        produce(8, name, already),
        fetch(11, name, wanted(0, 0)),
        *created(plain),
        produce(8, plain, already),
        fetch(11, plain, wanted(0, 0)),
    ]


def _compacted() -> list[Step]:
    steps: list[Step] = []
    for name, policy in (("produce-compact", "compact"), ("produce-compact-delete", "compact,delete")):
        steps += created(name, 1, {"cleanup.policy": policy})
        for version in (3, 7, 8, 13):
            keyed = batch(records=[{"key": "k", "value": "v"}])
            tombstone = batch(records=[{"key": "k", "value": None}])
            second = batch(records=[{"key": "k", "value": "v"}, {"value": "v"}, {"key": "", "value": ""}])
            packed = batch(records=[{"key": "k", "value": "v"}, {"value": "v"}], codec="zstd")
            for records in (keyed, tombstone, batch("no key"), second, packed):
                steps.append(produce(version, name, records))
        steps.append(fetch(11, name, wanted(0, 0)))
    return steps


def _recompressed() -> list[Step]:
    steps: list[Step] = []
    for codec in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        name = f"produce-to-{codec}"
        steps += created(name, 1, {"compression.type": codec})
        for sent in ("none", "gzip", "snappy", "lz4", "zstd"):
            steps.append(produce(9, name, batch(f"{sent} to {codec}", "x" * 40, codec=sent)))
        steps.append(fetch(11, name, wanted(0, 0)))
    return steps


def _nowhere() -> list[Step]:
    steps: list[Step] = []
    for version in range(3, 13):
        steps += [produce(version, name, batch("a")) for name in ("produce-nowhere", "not/valid", "")]
    data = [{"index": 0, "records": batch("a")}]
    for topic_id in (NO_SUCH_ID, None):
        fields = {
            "acks": -1,
            "timeout_ms": 1000,
            "topic_data": [{"topic_id": topic_id, "partition_data": data}],
        }
        steps.append(Call("Produce", 13, fields))
    steps.append(
        Call("Metadata", 12, {"topics": [{"name": "produce-nowhere"}], "allow_auto_topic_creation": False})
    )
    return steps


def _hostile() -> list[Step]:
    """Records of length -1 are not among them: Kafka 4.3.1 never answers those."""
    name = "produce-lies"
    marker = bytes.fromhex("00000001") + b"\x00\x0c" + name.encode()
    steps: list[Step] = [*created(name)]
    for count in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\x00", b"\x00\x00\x00\x03"):
        edit = replace(marker, count + marker[4:])
        steps.append(produce(8, name, batch("a"), edits=(edit,)))
    compact = b"\x02\x0d" + name.encode()
    for count in (b"\x00", b"\xff\xff\xff\xff\x0f", b"\x04"):
        edit = replace(compact, count + compact[1:])
        steps.append(produce(9, name, batch("a"), edits=(edit,)))
    size = bytes.fromhex("00000000" + "0000004b" + "0000000000000000")
    small = batch(records=[{"value": "abcdefg"}])
    for length in ("7fffffff", "0000004c", "0000004a", "00000000"):
        edit = replace(size, size[:4] + bytes.fromhex(length) + size[8:])
        steps.append(produce(8, name, small, edits=(edit,)))
    return [*steps, produce(8, name, batches(batch("a"), batch("b"))), fetch(11, name, wanted(0, 0))]
