"""Produce: batches of every kind, and batches that lie about themselves."""

from __future__ import annotations

from typing import Any

from tests.differential.batches import varint
from tests.differential.sequences.common import created, fetch, produce, wanted
from tests.differential.steps import Script, Step, batch, batches, hexed

Json = Any

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_VERSIONS = (7, 8, 13)
"""Without and with record errors in the reply, and by topic id."""


def scripts() -> list[Script]:
    return [
        *(Script("Produce", f"batches compressed with {codec}", _compressed(codec)) for codec in _CODECS),
        Script("Produce", "records of every shape", _shapes()),
        Script("Produce", "header fields that lie", _forced()),
        Script("Produce", "attributes", _attributes()),
        Script("Produce", "more than one batch", _several()),
        Script("Produce", "bytes that are no batch", _garbage()),
        Script("Produce", "records that lie", _records()),
    ]


def _each(name: str, parts: list[Json]) -> list[Step]:
    steps: list[Step] = [*created(name)]
    for version in _VERSIONS:
        steps += [produce(version, name, part) for part in parts]
    steps.append(fetch(11, name, wanted(0, 0)))
    return steps


def _compressed(codec: str) -> list[Step]:
    records = [{"key": f"k{i}", "value": "v" * i, "timestamp": 1000 + i} for i in range(20)]
    parts = [
        batch(records=records, codec=codec),
        batch(records=[{"value": {"$repeat": ["z", 3000]}}], codec=codec),
        batch(records=[{"value": None}], codec=codec),
    ]
    if codec != "none":
        parts.append(batch(records=[{"value": "a"}], force={"attributes": _CODECS.index(codec)}))
    return _each(f"batches-{codec}", parts)


def _shapes() -> list[Step]:
    every = [
        {"key": None, "value": None},
        {"key": "", "value": ""},
        {"key": "k", "value": None},
        {"key": {"$hex": "00ff"}, "value": {"$hex": "c328"}},
        {"value": "v", "headers": [["h", "1"], ["h", "2"], ["empty", ""], ["null", None]]},
        {"value": "v", "headers": [["", "no name"]]},
        {"value": "later", "timestamp": 999999},
        {"value": "earlier", "timestamp": 5},
    ]
    parts = [batch(records=[record]) for record in every]
    return _each("batches-shapes", [*parts, batch(records=every)])


def _forced() -> list[Step]:
    lies: list[dict[str, int]] = [
        {"crc": 0},
        {"magic": 0},
        {"magic": 1},
        {"magic": 3},
        {"magic": -1},
        {"base_offset": 77},
        {"base_offset": -1},
        {"leader_epoch": 12},
        {"batch_length": 49},
        {"batch_length": 48},
        {"batch_length": 0},
        {"batch_length": -1},
        {"batch_length": 1000},
        {"batch_length": 2**31 - 1},
        {"batch_length": -(2**31)},
        {"last_offset_delta": 5},
        {"last_offset_delta": 0},
        {"last_offset_delta": -1},
        {"record_count": 3},
        {"record_count": 1},
        {"record_count": 0},
        {"record_count": -1},
        {"record_count": 2**31 - 1},
        {"max_timestamp": 5},
        {"max_timestamp": -1},
        {"max_timestamp": 999999},
        {"base_timestamp": -1},
        {"base_sequence": 5},
        {"producer_epoch": 3},
        {"producer_id": -2},
    ]
    return _each("batches-forced", [batch("a", "b", force=lie) for lie in lies])


def _attributes() -> list[Step]:
    kinds = [batch("a", attributes=bits) for bits in (5, 6, 7, 8, 32, 48, 64, 128, 0x4000)]
    packed = [batch("a", codec=codec, attributes=8) for codec in _CODECS]
    return _each("batches-attributes", [*kinds, *packed])


def _several() -> list[Step]:
    good, bad = batch("a"), batch("b", force={"crc": 1})
    packed = batch("c", codec="lz4")
    parts = [
        batches(good, good),
        batches(good, bad),
        batches(packed, packed),
        batches(good, hexed(bytes(61))),
    ]
    parts += [batches(good, hexed(bytes(20))), batches(good, hexed(b"\x00"))]
    return _each("batches-several", parts)


def _garbage() -> list[Step]:
    parts = [hexed(bytes(size)) for size in (1, 11, 12, 16, 17, 60, 61, 100)]
    parts += [hexed(b"\xff" * size) for size in (1, 17, 61, 100)]
    legacy_0 = "0000000000000000" + "00000010" + "d2a9b6fe" + "0000" + "ffffffff" + "00000002" + "6869"
    legacy_1 = (
        "0000000000000000"
        + "00000018"
        + "11111111"
        + "0100"
        + "00000000000003e8"
        + "ffffffff"
        + "00000002"
        + "6869"
    )
    parts += [hexed(bytes.fromhex(text)) for text in (legacy_0, legacy_1)]
    return _each("batches-garbage", parts)


def _records() -> list[Step]:
    """Batches whose checksum is right and whose records are not.

    Lengths that lie inside a compressed batch are left out: Kafka stores those, and we do not.
    """
    body = b"\x00" + varint(0) + varint(0) + varint(-1) + varint(1) + b"v" + varint(0)
    whole = varint(len(body)) + body
    wrong_delta = b"\x00" + varint(0) + varint(3) + varint(-1) + varint(1) + b"v" + varint(0)
    sections = {
        "ends early": whole[:-2],
        "one byte more": whole + b"\x00",
        "length too long": varint(len(body) + 5) + body,
        "length too short": varint(len(body) - 1) + body,
        "length negative": varint(-1) + body,
        "length huge": varint(2**30) + body,
        "offset delta": varint(len(wrong_delta)) + wrong_delta,
        "key longer than the record": _sized(b"\x00\x00\x00" + varint(100) + b"abc"),
        "key length -5": _sized(b"\x00\x00\x00" + varint(-5) + varint(1) + b"v" + varint(0)),
        "two thousand million headers": _sized(
            b"\x00\x00\x00" + varint(-1) + varint(1) + b"v" + varint(2**31 - 1)
        ),
        "headers -1": _sized(b"\x00\x00\x00" + varint(-1) + varint(1) + b"v" + varint(-1)),
        "header without a name": _sized(
            b"\x00\x00\x00" + varint(-1) + varint(1) + b"v" + varint(1) + varint(-1) + varint(-1)
        ),
        "attributes": varint(len(body)) + b"\x7f" + body[1:],
        "an endless varint": b"\xff" * 12,
        "nothing": b"",
    }
    parts: list[Json] = []
    for codec in ("none", "gzip"):
        for about, section in sections.items():
            if codec != "none" and about.startswith("length"):
                continue
            counts = {
                "record_count": 1,
                "last_offset_delta": 0,
                "base_timestamp": 1000,
                "max_timestamp": 1000,
            }
            parts.append(batch(section=section.hex(), codec=codec, force=counts))
    return _each("batches-records", parts)


def _sized(body: bytes) -> bytes:
    return varint(len(body)) + body
