"""Alterations of settings. Codes and messages are those that Apache Kafka 4.3.1 gave to the same requests."""

import pytest

from riverlog.model.config.alter import (
    AlterationRefused,
    Altered,
    AlterOperation,
    Change,
    alter_broker,
    alter_client_metrics,
    alter_group,
    alter_topic,
    replacing,
)
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.errors import ErrorCode

LAYERS = BrokerLayers(static={"node.id": "1", "log.retention.hours": "200"})
SET, DELETE, APPEND, SUBTRACT = AlterOperation
INVALID_CONFIG, INVALID_REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST
REPLICAS_FORM = (
    "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
    "format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
TIERED = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "", "Not a number of type LONG"),
        ("retention.ms", "-5", "Value must be at least -1"),
        ("segment.bytes", "14", "Value must be at least 1048576"),
        ("segment.bytes", "99999999999", "Not a number of type INT"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("message.timestamp.type", "Foo", "String must be one of: CreateTime, LogAppendTime"),
        (
            "compression.type",
            "brotli",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
    ],
)
def test_a_value_that_a_topic_does_not_allow_is_refused(name: str, value: str, reason: str) -> None:
    message = f"Invalid value {value} for configuration {name}: {reason}"
    assert alter_topic({}, [Change(name, SET, value)], LAYERS) == AlterationRefused(INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ([Change("nope", SET, "1")], INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            [Change("cleanup.policy", SET, "compact,zip")],
            INVALID_CONFIG,
            "Invalid value zip for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            [Change("cleanup.policy", SET, "delete,")],
            INVALID_CONFIG,
            "Configuration 'cleanup.policy' values must not be empty.",
        ),
        ([Change("retention.ms", SET, None)], INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (
            [Change("cleanup.policy", APPEND, None)],
            INVALID_REQUEST,
            "Null value not supported for : cleanup.policy",
        ),
        (
            [Change("retention.ms", SET, "1"), Change("retention.ms", SET, "2")],
            INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            [Change("retention.ms", APPEND, "1")],
            INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [Change("retention.ms", SUBTRACT, "1")],
            INVALID_CONFIG,
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        ([Change("retention.ms", 7, "1")], ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (
            [Change("min.compaction.lag.ms", SET, "1000"), Change("max.compaction.lag.ms", SET, "10")],
            INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (1000) > max.compaction.lag.ms (10)",
        ),
        ([Change("remote.storage.enable", SET, "true")], INVALID_CONFIG, TIERED),
        (
            [Change("leader.replication.throttled.replicas", SET, "x")],
            INVALID_CONFIG,
            f"Invalid value [x] for configuration leader.replication.throttled.replicas: {REPLICAS_FORM}",
        ),
        (
            [Change("retention.ms", SET, "x"), Change("segment.ms", SET, "x")],
            INVALID_CONFIG,
            "Invalid value x for configuration segment.ms: Not a number of type LONG",
        ),
    ],
)
def test_an_alteration_of_a_topic_is_refused(
    changes: list[Change], error: ErrorCode, message: str | None
) -> None:
    assert alter_topic({}, changes, LAYERS) == AlterationRefused(error, message)


@pytest.mark.parametrize(
    ("current", "change", "expected"),
    [
        ({}, Change("retention.ms", SET, " 1000 "), {"retention.ms": " 1000 "}),
        ({"retention.ms": "1"}, Change("retention.ms", DELETE, None), {}),
        ({}, Change("flush.ms", DELETE, None), {}),
        ({}, Change("nope", DELETE, None), {}),
        ({}, Change("cleanup.policy", SET, ""), {"cleanup.policy": ""}),
        ({}, Change("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        (
            {"cleanup.policy": "delete,compact"},
            Change("cleanup.policy", APPEND, "compact, delete"),
            {"cleanup.policy": "delete,compact, delete"},
        ),
        (
            {"cleanup.policy": "delete,compact, delete"},
            Change("cleanup.policy", SUBTRACT, "delete,compact"),
            {"cleanup.policy": " delete"},
        ),
        ({}, Change("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
        ({"cleanup.policy": ""}, Change("cleanup.policy", APPEND, ""), {"cleanup.policy": ""}),
        ({}, Change("riverlog.acks.fsync", SET, "true"), {"riverlog.acks.fsync": "true"}),
    ],
)
def test_an_alteration_of_a_topic_gives_its_new_overrides(
    current: dict[str, str], change: Change, expected: dict[str, str]
) -> None:
    assert alter_topic(current, [change], LAYERS) == Altered(expected)


def test_a_refused_alteration_leaves_the_overrides_alone() -> None:
    current = {"retention.ms": "1"}
    alter_topic(current, [Change("retention.ms", SET, "2"), Change("nope", SET, "1")], LAYERS)
    assert current == {"retention.ms": "1"}


def test_a_full_alteration_forgets_what_it_does_not_name() -> None:
    changes = replacing([("segment.ms", "5")])
    assert alter_topic({}, changes, LAYERS) == Altered({"segment.ms": "5"})


@pytest.mark.parametrize("is_default", [True, False])
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            [Change("node.id", SET, "1")],
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [node.id]",
        ),
        (
            [Change("num.partitions", SET, "2"), Change("log.retention.hours", SET, "1")],
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [log.retention.hours, num.partitions]",
        ),
        (
            [Change("log.retention.ms", SET, "x")],
            INVALID_REQUEST,
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            [Change("log.roll.ms", SET, "0")],
            INVALID_REQUEST,
            "requirement failed: log.roll.ms must be greater than or equal to 1",
        ),
        (
            [Change("log.retention.ms", SET, "0")],
            INVALID_REQUEST,
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            [Change("log.retention.ms", APPEND, "1")],
            INVALID_CONFIG,
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        (
            [Change("max.connections", SET, "0")],
            INVALID_REQUEST,
            "Invalid value org.apache.kafka.common.config.ConfigException: Invalid max.connections 0 "
            "for configuration Invalid dynamic configuration",
        ),
        (
            [Change("max.connections.per.ip", SET, "0")],
            INVALID_REQUEST,
            "requirement failed: max.connections.per.ip can be set to zero only if "
            "max.connections.per.ip.overrides property is set.",
        ),
        (
            [Change("no.such.key", APPEND, "1")],
            INVALID_CONFIG,
            "Unknown config name: no.such.key",
        ),
        (
            [Change("ssl.keystore.location", SET, "/x")],
            INVALID_REQUEST,
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
    ],
)
def test_an_alteration_of_a_broker_is_refused(
    changes: list[Change], error: ErrorCode, message: str, is_default: bool
) -> None:
    assert alter_broker({}, changes, LAYERS, is_default=is_default) == AlterationRefused(error, message)


def test_settings_of_one_broker_cannot_be_set_for_all() -> None:
    change = Change("listener.name.foo.ssl.keystore.type", SET, "JKS")
    assert alter_broker({}, [change], LAYERS, is_default=True) == AlterationRefused(
        INVALID_REQUEST,
        "Cannot update these configs at default cluster level, broker id must be specified: "
        "[listener.name.foo.ssl.keystore.type]",
    )
    assert alter_broker({}, [change], LAYERS, is_default=False) == Altered({change.name: "JKS"})


def test_listeners_cannot_be_altered_while_the_broker_runs() -> None:
    refused = alter_broker({}, [Change("listeners", SET, "PLAINTEXT://:1")], LAYERS, is_default=False)
    assert isinstance(refused, AlterationRefused)
    assert "restart" in (refused.message or "")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change("log.retention.ms", SET, "-5"), {"log.retention.ms": "-5"}),
        (Change("no.such.key", SET, "1"), {"no.such.key": "1"}),
        (Change("num.partitions", DELETE, None), {}),
        (Change("log.cleanup.policy", APPEND, "compact"), {"log.cleanup.policy": "delete,compact"}),
        (
            Change("leader.replication.throttled.rate", SET, "5"),
            {"leader.replication.throttled.rate": "5"},
        ),
    ],
)
def test_an_alteration_of_a_broker_gives_its_new_overrides(change: Change, expected: dict[str, str]) -> None:
    assert alter_broker({}, [change], LAYERS, is_default=False) == Altered(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("nope", "1", "Unknown group config name: nope"),
        (
            "consumer.session.timeout.ms",
            "x",
            "Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        (
            "consumer.session.timeout.ms",
            "1",
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            "consumer.heartbeat.interval.ms",
            "900000",
            "consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
    ],
)
def test_an_alteration_of_a_group_is_refused(name: str, value: str, message: str) -> None:
    assert alter_group({}, [Change(name, SET, value)], LAYERS) == AlterationRefused(INVALID_CONFIG, message)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("nope", "1", INVALID_REQUEST, "Unknown client metrics configuration: nope"),
        (
            "interval.ms",
            "1",
            INVALID_REQUEST,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("match", "client_id=[", INVALID_CONFIG, "Illegal client matching pattern: client_id=["),
        ("match", "foo=a", INVALID_CONFIG, "Illegal client matching pattern: foo=a"),
    ],
)
def test_an_alteration_of_a_metrics_subscription_is_refused(
    name: str, value: str, error: ErrorCode, message: str
) -> None:
    assert alter_client_metrics({}, [Change(name, SET, value)]) == AlterationRefused(error, message)
