"""DeleteTopics: by name and by id."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import NO_SUCH_ID, VERSIONS, created, fetch, produce, wanted
from tests.differential.steps import Call, Script, Step, batch, var

Json = Any


def scripts() -> list[Script]:
    return [
        *(Script("DeleteTopics", f"by name, version {v}", _by_name(v)) for v in VERSIONS["DeleteTopics"]),
        Script("DeleteTopics", "by id", _by_id()),
        Script("DeleteTopics", "what is left of a deleted topic", _left()),
    ]


def _delete(version: int, *names: str) -> Call:
    fields: Json = {
        "timeout_ms": 10000,
        "topic_names": list(names),
        "topics": [{"name": name} for name in names],
    }
    return Call("DeleteTopics", version, fields)


def _by_name(version: int) -> list[Step]:
    name = f"delete-{version}"
    return [
        *created(name),
        *created(f"{name}-b", 2),
        *created(f"{name}-c"),
        _delete(version),
        _delete(version, "delete-nowhere"),
        _delete(version, "not/valid"),
        _delete(version, ""),
        _delete(version, name),
        _gone(name),
        _delete(version, name),
        _delete(version, f"{name}-b", "delete-nowhere"),
        _delete(version, f"{name}-c", f"{name}-c"),
    ]


def _gone(name: str) -> Call:
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return Call("Metadata", 12, asked, until={"topics.0.error_code": "UNKNOWN_TOPIC_OR_PARTITION"})


def _by_id() -> list[Step]:
    first, second, third = "delete-id-a", "delete-id-b", "delete-id-c"

    def call(*topics: Json) -> Call:
        return Call("DeleteTopics", 6, {"topics": list(topics), "timeout_ms": 10000})

    def by_id(name: str) -> Json:
        return {"topic_id": var(f"topic_id:{name}"), "name": None}

    return [
        *created(first),
        *created(second),
        *created(third),
        call({"topic_id": NO_SUCH_ID, "name": None}),
        call({"topic_id": None, "name": None}),
        call({"topic_id": var(f"topic_id:{first}"), "name": first}),
        call(by_id(first)),
        _gone(first),
        call(by_id(first)),
        call(by_id(second), {"name": second}),
        call(by_id(third), by_id(third)),
        call(by_id(third), {"topic_id": NO_SUCH_ID, "name": None}),
    ]


def _left() -> list[Step]:
    name = "delete-left"
    asked = {
        "replica_id": -1,
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    }
    gone = {"topics.0.partitions.0.error_code": "UNKNOWN_TOPIC_OR_PARTITION"}
    return [
        *created(name),
        produce(9, name, batch("a")),
        _delete(4, name),
        _gone(name),
        Call("ListOffsets", 5, asked, until=gone),
        produce(9, name, batch("a")),
        produce(13, name, batch("a")),
        fetch(11, name, wanted(0, 0)),
        fetch(13, name, wanted(0, 0)),
        *created(name),
        fetch(11, name, wanted(0, 0)),
        produce(9, name, batch("b")),
        fetch(11, name, wanted(0, 0)),
        fetch(13, name, wanted(0, 0)),
    ]
