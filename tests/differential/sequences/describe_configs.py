"""DescribeConfigs: every key with its default, where a value comes from, what is not there."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    VERSIONS,
    created,
)
from tests.differential.steps import Call, Script, Step

Json = Any

_VERSIONS = VERSIONS["DescribeConfigs"]


def scripts() -> list[Script]:
    return [
        *(Script("DescribeConfigs", f"a topic, version {v}", _topic(v)) for v in _VERSIONS),
        *(Script("DescribeConfigs", f"a broker, version {v}", _broker(v)) for v in _VERSIONS),
        *(Script("DescribeConfigs", f"what is not there, version {v}", _absent(v)) for v in _VERSIONS),
    ]


def resource(kind: int, name: str, keys: list[str] | None = None) -> Json:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


def describe(version: int, *resources: Json, synonyms: bool = False, words: bool = False) -> Call:
    fields = {"resources": list(resources), "include_synonyms": synonyms, "include_documentation": words}
    return Call("DescribeConfigs", version, fields)


def _topic(version: int) -> list[Step]:
    plain, changed = f"describe-plain-{version}", f"describe-changed-{version}"
    configs = {"retention.ms": "1234", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
    keys = ["retention.ms", "cleanup.policy", "no.such.key", "retention.ms"]
    steps: list[Step] = [
        *created(plain),
        *created(changed, 1, configs),
        describe(version, resource(TOPIC, plain)),
        describe(version, resource(TOPIC, changed), synonyms=True),
        describe(version, resource(TOPIC, changed, keys)),
        describe(version, resource(TOPIC, changed, [])),
        describe(version, resource(TOPIC, plain, ["segment.ms"]), resource(TOPIC, changed, ["segment.ms"])),
        describe(version, resource(TOPIC, plain, ["segment.ms"]), resource(TOPIC, plain, ["retention.ms"])),
    ]
    if version >= 3:
        steps.append(describe(version, resource(TOPIC, plain), synonyms=True, words=True))
    return steps


def _broker(version: int) -> list[Step]:
    keys = [
        "log.retention.ms",
        "log.retention.hours",
        "num.partitions",
        "auto.create.topics.enable",
        "nothing",
    ]
    steps: list[Step] = [
        describe(version, resource(BROKER, "1", keys), synonyms=True),
        describe(version, resource(BROKER, "1", keys)),
        describe(version, resource(BROKER, "1", [])),
        describe(version, resource(BROKER, "")),
        describe(version, resource(BROKER, "", keys)),
        describe(version, resource(BROKER, "1"), synonyms=version == 4, words=version == 4),
    ]
    return steps


def _absent(version: int) -> list[Step]:
    return [
        describe(version, resource(TOPIC, "describe-nowhere")),
        describe(version, resource(TOPIC, "not/valid")),
        describe(version, resource(TOPIC, "")),
        describe(version, resource(BROKER, "2")),
        describe(version, resource(BROKER, "one")),
        describe(version, resource(BROKER, "-1")),
        describe(version, resource(0, "x")),
        describe(version, resource(1, "x")),
        describe(version, resource(3, "x")),
        describe(version, resource(99, "x")),
        describe(version, resource(-1, "x")),
        describe(version, resource(BROKER_LOGGER, "2")),
        describe(version, resource(BROKER_LOGGER, "")),
        describe(version, resource(CLIENT_METRICS, "")),
        describe(version, resource(GROUP, "")),
        describe(version),
        describe(version, resource(TOPIC, "describe-nowhere"), resource(BROKER, "1", ["num.partitions"])),
    ]
