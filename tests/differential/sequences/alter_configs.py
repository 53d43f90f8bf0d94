"""AlterConfigs: the whole set of a resource's overrides at once."""

from __future__ import annotations

from typing import Any

from tests.differential.sequences.common import BROKER, BROKER_LOGGER, TOPIC, VERSIONS, created
from tests.differential.sequences.describe_configs import resource
from tests.differential.steps import Call, Script, Step

Json = Any


def scripts() -> list[Script]:
    versions = VERSIONS["AlterConfigs"]
    return [
        *(Script("AlterConfigs", f"topics, version {v}", _topics(v)) for v in versions),
        *(Script("AlterConfigs", f"brokers, version {v}", _brokers(v)) for v in versions),
        *(Script("AlterConfigs", f"what cannot be, version {v}", _impossible(v)) for v in versions),
    ]


def _set(kind: int, name: str, /, **configs: str | None) -> Json:
    pairs = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"resource_type": kind, "resource_name": name, "configs": pairs}


def _alter(version: int, *resources: Json, trial: bool = False) -> Call:
    return Call("AlterConfigs", version, {"resources": list(resources), "validate_only": trial})


def shown(name: str, keys: list[str], **until: Json) -> Call:
    """What the topic's keys are now; the change reaches a Kafka broker a moment after the answer."""
    fields = {"resources": [resource(TOPIC, name, sorted(keys))], "include_synonyms": True}
    expected = {f"results.0.configs.{sorted(keys).index(key)}.value": value for key, value in until.items()}
    return Call("DescribeConfigs", 2, fields, until=expected)


def _topics(version: int) -> list[Step]:
    name = f"alter-{version}"
    keys = ["cleanup.policy", "retention.bytes", "retention.ms"]

    def now(**until: Json) -> Call:
        return shown(name, keys, **{key.replace("_", "."): value for key, value in until.items()})

    return [
        *created(name, 1, {"retention.ms": "1000"}),
        _alter(version, _set(TOPIC, name, retention_bytes="77", cleanup_policy="compact")),
        now(cleanup_policy="compact", retention_ms="604800000"),
        _alter(version, _set(TOPIC, name, retention_ms="5"), trial=True),
        _alter(version, _set(TOPIC, name, retention_ms="five")),
        _alter(version, _set(TOPIC, name, retention_ms="-5")),
        _alter(version, _set(TOPIC, name, no_such_key="1")),
        _alter(version, _set(TOPIC, name, retention_ms="1", no_such_key="1")),
        _alter(version, _set(TOPIC, name, retention_ms=None)),
        _alter(version, _set(TOPIC, name, retention_ms="")),
        _alter(version, _set(TOPIC, name, cleanup_policy="shred")),
        now(),
        _alter(version, _set(TOPIC, name)),
        now(cleanup_policy="delete"),
        _alter(version, _set(TOPIC, name, retention_ms="9"), _set(TOPIC, "alter-nowhere", retention_ms="9")),
        now(retention_ms="9"),
    ]


def _brokers(version: int) -> list[Step]:
    """Keys that change nothing that another sequence sees, set back at the end.

    Kafka insists on keeping min.insync.replicas among the cluster's defaults. The same resource or
    key twice is left out: Kafka 4.3.1 never answers it.
    """
    keys = ["log.cleaner.io.buffer.size", "num.partitions"]
    asked = {"resources": [resource(BROKER, "1", keys)], "include_synonyms": True}
    default = {"resources": [resource(BROKER, "", keys)], "include_synonyms": True}
    return [
        _alter(version, _set(BROKER, "1", log_cleaner_io_buffer_size="600000")),
        Call("DescribeConfigs", 2, asked, until={"results.0.configs.0.value": "600000"}),
        _alter(version, _set(BROKER, "", log_cleaner_io_buffer_size="700000", min_insync_replicas="1")),
        Call("DescribeConfigs", 2, default, until={"results.0.configs.0.value": "700000"}),
        Call("DescribeConfigs", 2, asked, until={"results.0.configs.0.synonyms.1.value": "700000"}),
        _alter(version, _set(BROKER, "1", num_partitions="3")),
        _alter(version, _set(BROKER, "", num_partitions="3", min_insync_replicas="1")),
        _alter(version, _set(BROKER, "1", log_cleaner_io_buffer_size="-4")),
        _alter(version, _set(BROKER, "1", no_such_key="1")),
        _alter(version, _set(BROKER, "2", log_cleaner_io_buffer_size="600000"), trial=True),
        _alter(version, _set(BROKER, "one", log_cleaner_io_buffer_size="600000")),
        _alter(version, _set(BROKER, "1"), _set(BROKER, "", min_insync_replicas="1")),
        Call("DescribeConfigs", 2, asked, until={"results.0.configs.0.value": "524288"}),
    ]


def _impossible(version: int) -> list[Step]:
    return [
        _alter(version),
        _alter(version, _set(TOPIC, "alter-nowhere", retention_ms="1")),
        _alter(version, _set(TOPIC, "not/valid", retention_ms="1")),
        _alter(version, _set(TOPIC, "", retention_ms="1")),
        _alter(version, _set(0, "x", a="b")),
        _alter(version, _set(1, "x", a="b")),
        _alter(version, _set(99, "x", a="b")),
        _alter(version, _set(BROKER_LOGGER, "1", a="INFO")),
    ]
