"""Produce with a producer id: duplicates, gaps, epochs, requests in flight."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import created, fetch, produce, wanted
from tests.differential.steps import Call, Script, Step, Together, batch, batches, var

Json = Any

_VERSIONS = (3, 7, 9, 12, 13)


def scripts() -> list[Script]:
    made = []
    for version in _VERSIONS:
        made += [
            Script("Produce", f"idempotent duplicates and gaps, version {version}", _window(version)),
            Script("Produce", f"idempotent epochs, version {version}", _epochs(version)),
            Script("Produce", f"idempotent in flight, version {version}", _in_flight(version)),
        ]
    return [
        *made,
        Script("Produce", "idempotent oddities", _odd()),
        Script("Produce", "sequences wrap around", _wrap()),
    ]


def _allotted() -> Call:
    fields = {"transactional_id": None, "transaction_timeout_ms": 1000}
    return Call("InitProducerId", 1, fields, until={"error_code": "NONE"})


def _numbered(sequence: int, *values: str, epoch: int = 0, producer: Json = None, **more: Json) -> Json:
    identity = {
        "producer_id": producer or var("producer:1"),
        "producer_epoch": epoch,
        "base_sequence": sequence,
    }
    return batch(*(values or ("v",)), **identity, **more)


def _window(version: int) -> list[Step]:
    name = f"idempotent-window-{version}"
    sends = [
        _numbered(0, "a", "b"),
        _numbered(0, "a", "b"),
        _numbered(2, "c"),
        _numbered(2, "c"),
        _numbered(0, "a", "b"),
        _numbered(4, "gap"),
        _numbered(1, "overlap"),
        _numbered(3, "d"),
        *(_numbered(sequence) for sequence in range(4, 10)),
        _numbered(9),
        _numbered(5),
        _numbered(4),
        _numbered(0, "a", "b"),
        _numbered(8, "longer", "than before"),
        _numbered(10),
    ]
    return [
        *created(name),
        _allotted(),
        *(produce(version, name, send) for send in sends),
        fetch(11, name, wanted(0, 0)),
    ]


def _epochs(version: int) -> list[Step]:
    name = f"idempotent-epochs-{version}"
    sends = [
        _numbered(0),
        _numbered(1),
        _numbered(2, epoch=1),
        _numbered(0, epoch=1),
        _numbered(1, epoch=1),
        _numbered(2, epoch=0),
        _numbered(0, epoch=0),
        _numbered(0, epoch=5),
        _numbered(0, epoch=4),
        _numbered(0, epoch=32767),
    ]
    return [
        *created(name),
        _allotted(),
        *(produce(version, name, send) for send in sends),
        fetch(11, name, wanted(0, 0)),
    ]


def _in_flight(version: int) -> list[Step]:
    name = f"idempotent-flight-{version}"
    five = tuple(produce(version, name, _numbered(sequence)) for sequence in range(5))
    hole = tuple(produce(version, name, _numbered(sequence)) for sequence in (5, 7, 6, 7, 8))
    many = tuple(produce(version, name, _numbered(sequence)) for sequence in range(9, 17))
    return [
        *created(name),
        _allotted(),
        Together(five),
        Together(five),
        Together(hole),
        Together(many),
        fetch(11, name, wanted(0, 0)),
    ]


def _odd() -> list[Step]:
    name = "idempotent-odd"
    unknown = 900001
    sends: list[Json] = [
        _numbered(5, producer=unknown),
        _numbered(0, producer=unknown + 1),
        _numbered(-1, producer=unknown + 2),
        _numbered(0, epoch=-1, producer=unknown + 3),
        _numbered(0, producer=-1),
        _numbered(-2, producer=unknown + 4),
        _numbered(3, epoch=2, producer=unknown + 5),
        batches(_numbered(0), _numbered(1)),
        _numbered(0, codec="zstd"),
        _numbered(1, force={"crc": 5}),
        _numbered(1, attributes=16),
        batch("plain"),
        _numbered(1),
    ]
    return [
        *created(name),
        _allotted(),
        *(produce(9, name, send) for send in sends),
        fetch(11, name, wanted(0, 0)),
    ]


def _wrap() -> list[Step]:
    name = "idempotent-wrap"
    last = 2**31 - 1
    sends = [
        _numbered(last - 1, "a", "b", producer=900100),
        _numbered(last - 1, "a", "b", producer=900100),
        _numbered(0, "c", producer=900100),
        _numbered(last, "a", "b", "c", producer=900101),
        _numbered(2, "d", producer=900101),
        _numbered(1, "e", producer=900101),
    ]
    return [*created(name), *(produce(9, name, send) for send in sends), fetch(11, name, wanted(0, 0))]
