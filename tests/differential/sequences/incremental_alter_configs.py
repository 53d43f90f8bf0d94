"""IncrementalAlterConfigs: one key at a time; set, delete, append, subtract."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.alter_configs import shown
from tests.differential.sequences.common import BROKER, TOPIC, VERSIONS, created
from tests.differential.sequences.describe_configs import resource
from tests.differential.steps import Call, Script, Step

Json = Any

SET, DELETE, APPEND, SUBTRACT = range(4)


def scripts() -> list[Script]:
    versions = VERSIONS["IncrementalAlterConfigs"]
    return [
        *(Script("IncrementalAlterConfigs", f"topics, version {v}", _topics(v)) for v in versions),
        *(Script("IncrementalAlterConfigs", f"lists, version {v}", _lists(v)) for v in versions),
        *(Script("IncrementalAlterConfigs", f"brokers, version {v}", _brokers(v)) for v in versions),
        *(
            Script("IncrementalAlterConfigs", f"what cannot be, version {v}", _impossible(v))
            for v in versions
        ),
    ]


def _change(kind: int, name: str, *operations: tuple[int, str, str | None]) -> Json:
    configs = [
        {"config_operation": operation, "name": key, "value": value} for operation, key, value in operations
    ]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def _alter(version: int, *resources: Json, trial: bool = False) -> Call:
    return Call("IncrementalAlterConfigs", version, {"resources": list(resources), "validate_only": trial})


def _topics(version: int) -> list[Step]:
    name = f"incremental-{version}"
    keys = ["retention.bytes", "retention.ms"]

    def topic(*operations: tuple[int, str, str | None], trial: bool = False) -> Call:
        return _alter(version, _change(TOPIC, name, *operations), trial=trial)

    return [
        *created(name, 1, {"retention.ms": "1000"}),
        topic((SET, "retention.bytes", "77")),
        shown(name, keys, **{"retention.bytes": "77"}),
        topic((DELETE, "retention.ms", None)),
        shown(name, keys, **{"retention.ms": "604800000"}),
        topic((DELETE, "retention.ms", "ignored")),
        topic((DELETE, "retention.ms", "")),
        topic((SET, "retention.ms", "5"), trial=True),
        topic((SET, "retention.ms", "five"), trial=True),
        topic((SET, "retention.ms", "five")),
        topic((SET, "retention.ms", None)),
        topic((SET, "retention.ms", "-5")),
        topic((SET, "no.such.key", "1")),
        topic((DELETE, "no.such.key", None)),
        topic((SET, "retention.ms", "1"), (SET, "no.such.key", "1")),
        topic((SET, "retention.ms", "1"), (SET, "retention.ms", "2")),
        topic((SET, "retention.ms", "1"), (DELETE, "retention.ms", None)),
        topic((APPEND, "retention.ms", "1")),
        topic((SUBTRACT, "retention.ms", "1")),
        topic((9, "retention.ms", "1")),
        topic((-1, "retention.ms", "1")),
        topic(),
        shown(name, keys),
    ]


def _lists(version: int) -> list[Step]:
    name = f"incremental-lists-{version}"
    keys = ["cleanup.policy", "follower.replication.throttled.replicas"]

    def topic(*operations: tuple[int, str, str | None]) -> Call:
        return _alter(version, _change(TOPIC, name, *operations))

    policy = "cleanup.policy"
    throttled = "follower.replication.throttled.replicas"
    return [
        *created(name),
        topic((APPEND, policy, "compact")),
        shown(name, keys, **{policy: "delete,compact"}),
        topic((APPEND, policy, "compact")),
        topic((SUBTRACT, policy, "delete")),
        shown(name, keys, **{policy: "compact"}),
        topic((SUBTRACT, policy, "delete")),
        topic((APPEND, policy, "shred")),
        topic((APPEND, policy, None)),
        topic((APPEND, policy, "")),
        topic((SUBTRACT, policy, "compact")),
        shown(name, keys),
        topic((APPEND, throttled, "0:1,1:1")),
        shown(name, keys, **{throttled: "0:1,1:1"}),
        topic((SUBTRACT, throttled, "0:1")),
        shown(name, keys, **{throttled: "1:1"}),
        topic((DELETE, policy, None), (DELETE, throttled, None)),
        shown(name, keys, **{policy: "delete"}),
    ]


def _brokers(version: int) -> list[Step]:
    keys = ["log.cleaner.io.buffer.size"]
    key = keys[0]
    asked = {"resources": [resource(BROKER, "1", keys)], "include_synonyms": True}

    def broker(name: str, *operations: tuple[int, str, str | None], trial: bool = False) -> Call:
        return _alter(version, _change(BROKER, name, *operations), trial=trial)

    return [
        broker("1", (SET, key, "600000")),
        Call("DescribeConfigs", 4, asked, until={"results.0.configs.0.value": "600000"}),
        broker("", (SET, key, "700000")),
        Call("DescribeConfigs", 4, asked, until={"results.0.configs.0.synonyms.1.value": "700000"}),
        broker("1", (SET, "num.partitions", "4")),
        broker("1", (SET, "log.dirs", "/elsewhere")),
        broker("1", (SET, key, "few")),
        broker("1", (SET, key, "-4")),
        broker("1", (SET, "no.such.key", "1")),
        broker("1", (DELETE, key, None)),
        broker("", (DELETE, key, None)),
        Call("DescribeConfigs", 4, asked, until={"results.0.configs.0.value": "524288"}),
        broker("2", (SET, key, "600000"), trial=True),
        broker("one", (SET, key, "600000")),
    ]


def _impossible(version: int) -> list[Step]:
    name = f"incremental-twice-{version}"
    change = (SET, "retention.ms", "1")
    return [
        *created(name),
        _alter(version),
        _alter(version, _change(TOPIC, "incremental-nowhere", change)),
        _alter(version, _change(TOPIC, "not/valid", change)),
        _alter(version, _change(TOPIC, "", change)),
        _alter(version, _change(TOPIC, name, change), _change(TOPIC, name, change)),
        _alter(version, _change(TOPIC, name, change), _change(TOPIC, "incremental-nowhere", change)),
        _alter(version, _change(0, "x", change)),
        _alter(version, _change(1, "x", change)),
        _alter(version, _change(99, "x", change)),
    ]
