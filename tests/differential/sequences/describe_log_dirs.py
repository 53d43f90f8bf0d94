"""DescribeLogDirs: how large the partitions are, and where."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created, deleted, produce
from tests.differential.steps import Call, Script, Step, batch

Json = Any

_VERSIONS = VERSIONS["DescribeLogDirs"]


def scripts() -> list[Script]:
    return [
        Script("DescribeLogDirs", "all topics and none", _all(), empty_broker=True),
        *(Script("DescribeLogDirs", f"version {v}", _version(v)) for v in _VERSIONS),
    ]


def _asked(version: int, *topics: tuple[str, list[int]]) -> Call:
    wanted = [{"topic": name, "partitions": partitions} for name, partitions in topics]
    return Call("DescribeLogDirs", version, {"topics": wanted})


def _all() -> list[Step]:
    name = "log-dirs-all"
    return [
        *created(name),
        produce(9, name, batch("a")),
        *(Call("DescribeLogDirs", v, {"topics": None}) for v in _VERSIONS),
        *(Call("DescribeLogDirs", v, {"topics": []}) for v in _VERSIONS),
        *deleted(name),
    ]


def _version(version: int) -> list[Step]:
    name = f"log-dirs-{version}"
    return [
        *created(name, 2),
        _asked(version, (name, [0])),
        produce(9, name, batch("a")),
        produce(9, name, batch("b", "c")),
        _asked(version, (name, [0])),
        _asked(version, (name, [1])),
        _asked(version, (name, [7])),
        _asked(version, (name, [])),
        _asked(version, ("log-dirs-nowhere", [0])),
        _asked(version, ("not/valid", [0])),
        _asked(version, (name, [0, 0])),
    ]
