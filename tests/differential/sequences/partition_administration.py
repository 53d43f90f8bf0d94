"""Leaders, replicas and their directories on a cluster of one."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import VERSIONS, created, produce
from tests.differential.steps import Call, Script, Step, batch, var

Json = Any

_PREFERRED, _UNCLEAN = 0, 1


def scripts() -> list[Script]:
    return [
        Script("ElectLeaders", "of all, where there are none", _election_of_all(), empty_broker=True),
        *(Script("ElectLeaders", f"version {v}", _election(v)) for v in VERSIONS["ElectLeaders"]),
        *(
            Script("AlterPartitionReassignments", f"version {v}", _reassignment(v))
            for v in VERSIONS["AlterPartitionReassignments"]
        ),
        Script("ListPartitionReassignments", "version 0", _listing()),
        *(Script("AlterReplicaLogDirs", f"version {v}", _move(v)) for v in VERSIONS["AlterReplicaLogDirs"]),
    ]


def _elect(version: int, topics: list[Json] | None, **fields: Json) -> Call:
    return Call("ElectLeaders", version, {"topic_partitions": topics, "timeout_ms": 10000} | fields)


def _election(version: int) -> list[Step]:
    name = f"elect-{version}"
    here = {"topic": name, "partitions": [0, 1]}
    steps: list[Step] = [
        *created(name, 2),
        _elect(version, [here]),
        _elect(version, [here, {"topic": "elect-nowhere", "partitions": [0]}]),
        _elect(version, [{"topic": name, "partitions": [7, -1]}]),
        _elect(version, [{"topic": name, "partitions": []}]),
        _elect(version, [{"topic": "not/valid", "partitions": [0]}]),
        _elect(version, [{"topic": name, "partitions": [0, 0]}]),
        _elect(version, []),
        _elect(version, [here], timeout_ms=0),
    ]
    if version >= 1:
        steps += [
            _elect(version, [here], election_type=_UNCLEAN),
            _elect(version, [{"topic": "elect-nowhere", "partitions": [0]}], election_type=_UNCLEAN),
            _elect(version, [here], election_type=2),
        ]
    return steps


def _election_of_all() -> list[Step]:
    """With topics the answer would name those of all sequences."""
    return [
        *(_elect(version, None) for version in VERSIONS["ElectLeaders"]),
        _elect(2, None, election_type=_UNCLEAN),
    ]


def _reassign(version: int, *topics: Json, **fields: Json) -> Call:
    return Call(
        "AlterPartitionReassignments", version, {"topics": list(topics), "timeout_ms": 10000} | fields
    )


def _to(name: str, *placed: tuple[int, list[int] | None]) -> Json:
    partitions = [{"partition_index": index, "replicas": replicas} for index, replicas in placed]
    return {"name": name, "partitions": partitions}


def _reassignment(version: int) -> list[Step]:
    name = f"reassign-{version}"
    steps: list[Step] = [
        *created(name, 2),
        _reassign(version, _to(name, (0, [1]))),
        _reassign(version, _to(name, (0, [1]), (1, [1]))),
        _reassign(version, _to(name, (0, None), (1, [1]))),
        _reassign(version, _to(name, (0, [2]))),
        _reassign(version, _to(name, (0, [1, 2]))),
        _reassign(version, _to(name, (0, []))),
        _reassign(version, _to(name, (0, [1, 1]))),
        _reassign(version, _to(name, (0, [-1]))),
        _reassign(version, _to(name, (2, [1]), (-1, [1]))),
        _reassign(version, _to(name, (2, None))),
        _reassign(version, _to("reassign-nowhere", (0, [1])), _to(name, (0, [1]))),
        _reassign(version, _to("reassign-nowhere", (0, None))),
        _reassign(version, _to("not/valid", (0, [1]))),
        _reassign(version, _to("", (0, [1]))),
        _reassign(version, _to(name)),
        _reassign(version, _to(name, (0, [1]), (0, [1]))),
        _reassign(version, _to(name, (0, [1])), _to(name, (1, [1]))),
        _reassign(version),
        _reassign(version, _to(name, (0, [1])), timeout_ms=0),
    ]
    if version >= 1:
        fixed = {"allow_replication_factor_change": False}
        steps += [
            _reassign(version, _to(name, (0, [1])), **fixed),
            _reassign(version, _to(name, (0, [1, 2])), **fixed),
            _reassign(version, _to(name, (0, None)), **fixed),
            _reassign(version, _to(name, (0, [])), **fixed),
        ]
    return steps


def _listing() -> list[Step]:
    name = "reassigned"

    def asked(topics: list[Json] | None) -> Call:
        return Call("ListPartitionReassignments", 0, {"topics": topics, "timeout_ms": 10000})

    return [
        *created(name, 2),
        asked(None),
        asked([]),
        asked([{"name": name, "partition_indexes": [0, 1]}]),
        asked([{"name": name, "partition_indexes": []}]),
        asked([{"name": name, "partition_indexes": [7]}]),
        asked([{"name": "reassigned-nowhere", "partition_indexes": [0]}]),
    ]


def _moved(version: int, path: Json, *topics: Json) -> Call:
    return Call("AlterReplicaLogDirs", version, {"dirs": [{"path": path, "topics": list(topics)}]})


def _move(version: int) -> list[Step]:
    name = f"move-{version}"
    here = {"name": name, "partitions": [0, 1]}
    all_of_it = {"topics": [{"topic": name, "partitions": [0, 1]}]}
    return [
        *created(name, 2),
        produce(9, name, batch("a")),
        Call("DescribeLogDirs", 4, all_of_it),
        _moved(version, var("log_dir"), here),
        _moved(version, var("log_dir"), {"name": name, "partitions": [7]}),
        _moved(version, var("log_dir"), {"name": "move-nowhere", "partitions": [0]}, here),
        _moved(version, "/nowhere/at/all", here),
        _moved(version, "/nowhere/at/all", {"name": "move-nowhere", "partitions": [0]}),
        _moved(version, "not-absolute", here),
        _moved(version, "", here),
        _moved(version, var("log_dir"), {"name": "not/valid", "partitions": [0]}),
        _moved(version, var("log_dir"), {"name": name, "partitions": []}),
        _moved(version, var("log_dir")),
        Call("AlterReplicaLogDirs", version, {"dirs": []}),
        Call(
            "AlterReplicaLogDirs",
            version,
            {
                "dirs": [
                    {"path": var("log_dir"), "topics": [{"name": name, "partitions": [0]}]},
                    {"path": "/nowhere/at/all", "topics": [{"name": name, "partitions": [0, 1]}]},
                ]
            },
        ),
        Call("DescribeLogDirs", 4, all_of_it),
    ]
