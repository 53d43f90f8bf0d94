"""InitProducerId without transactions."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS
from tests.differential.steps import Call, Script, Step

Json = Any


def scripts() -> list[Script]:
    return [Script("InitProducerId", f"version {v}", _version(v)) for v in VERSIONS["InitProducerId"]]


def _init(version: int, **fields: Json) -> Call:
    return Call(
        "InitProducerId", version, {"transactional_id": None, "transaction_timeout_ms": 1000} | fields
    )


def _version(version: int) -> list[Step]:
    steps: list[Step] = [
        _init(version),
        _init(version),
        _init(version, transaction_timeout_ms=0),
        _init(version, transaction_timeout_ms=-1),
        _init(version, transaction_timeout_ms=2**31 - 1),
        _init(version, transactional_id=""),
    ]
    if version >= 3:
        claims = [(900500, 3), (900500, -1), (-1, 3), (-1, -1), (-2, -2), (900500, 32767), (900500, 0)]
        steps += [_init(version, producer_id=producer, producer_epoch=epoch) for producer, epoch in claims]
    return steps
