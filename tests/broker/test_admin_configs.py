"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs over a socket. Expectations were read off Kafka."""

import logging
from collections.abc import Iterator

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages import alter_configs, incremental_alter_configs
from riverlog.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.broker.raw_client import RawClient, one_record

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(log_retention_ms=86_400_000) as broker:
        for topic in ("a", "b", "c"):
            broker.create_topic(topic)
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def describe(
    client: RawClient,
    *resources: tuple[int, str],
    keys: list[str] | None = None,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    response: DescribeConfigsResponse = client.ask(ApiKey.DESCRIBE_CONFIGS, version, request)
    return response.results


def value_of(client: RawClient, topic: str, key: str) -> DescribeConfigsResourceResult:
    [result] = describe(client, (TOPIC, topic), keys=[key], synonyms=True)
    [config] = result.configs
    return config


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topic_shows_every_setting_with_value_and_source(client: RawClient, version: int) -> None:
    [result] = describe(client, (TOPIC, "a"), version=version)
    assert (result.error_code, result.error_message) == (NONE, "")
    shown = {config.name: config for config in result.configs}
    assert len(shown) >= 33
    assert (shown["retention.ms"].value, shown["retention.ms"].config_source) == ("86400000", 4)
    assert (shown["segment.bytes"].value, shown["segment.bytes"].config_source) == ("1073741824", 5)
    assert shown["segment.bytes"].config_type == (3 if version >= 3 else 0)
    assert shown["segment.bytes"].synonyms == []
    assert shown["segment.bytes"].documentation == (None if version >= 3 else "")


def test_a_broker_tells_its_clock_to_who_asks_for_it() -> None:
    with Broker() as broker, RawClient(broker) as client:
        broker.clock.advance(hours=1)
        [told] = describe(client, (BROKER, "1"), keys=["riverlog.clock.ms", "log.retention.ms"])
        [everything] = describe(client, (BROKER, "1"))
        now_ms = broker.clock.now_ms
    shown = {config.name: config for config in told.configs}
    assert sorted(shown) == ["log.retention.ms", "riverlog.clock.ms"]
    assert shown["riverlog.clock.ms"].read_only
    assert 0 <= now_ms - int(shown["riverlog.clock.ms"].value or "") < 60_000
    assert "riverlog.clock.ms" not in {config.name for config in everything.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_resources_that_cannot_be_described(client: RawClient, version: int) -> None:
    results = describe(
        client,
        (TOPIC, "none"),
        (TOPIC, "a b"),
        (TOPIC, ""),
        (BROKER, "2"),
        (BROKER, "x"),
        (LOGGER, "2"),
        (LOGGER, ""),
        (GROUP, ""),
        (CLIENT_METRICS, ""),
        version=version,
    )
    assert [result.error_code for result in results] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        *[INVALID] * 6,
    ]
    assert [bool(result.error_message) for result in results] == [False] + [True] * 8
    assert [result.configs for result in results] == [[]] * 9


def test_a_resource_of_an_unknown_type_fails_the_whole_request(client: RawClient) -> None:
    for kind in (0, 1, 3, 5, 64, 127, -1):
        results = describe(client, (TOPIC, "a"), (kind, "x"))
        assert [(result.error_code, result.resource_type) for result in results] == [
            (INVALID, TOPIC),
            (INVALID, kind),
        ]
    assert describe(client) == []


def test_keys_choose_settings_and_unknown_ones_are_passed_over(client: RawClient) -> None:
    [result] = describe(client, (TOPIC, "a"), keys=["retention.ms", "nope", "segment.bytes"])
    assert {config.name for config in result.configs} == {"retention.ms", "segment.bytes"}
    [result] = describe(client, (TOPIC, "a"), keys=[])
    assert len(result.configs) >= 33


def test_synonyms_and_documentation_come_when_they_are_asked_for(client: RawClient) -> None:
    [result] = describe(client, (TOPIC, "a"), keys=["retention.ms"], synonyms=True, documentation=True)
    [config] = result.configs
    assert config.documentation
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("log.retention.ms", "86400000", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_the_broker_is_described_under_its_number_however_it_is_spelled(client: RawClient) -> None:
    first, second = describe(client, (BROKER, "1"), (BROKER, "01"))
    assert first.error_code == second.error_code == NONE
    assert len(first.configs) == len(second.configs) > 300
    by_name = {config.name: config for config in first.configs}
    assert by_name["log.retention.ms"].value == "86400000"
    assert by_name["log.dirs"].read_only is True
    assert by_name["ssl.keystore.password"].is_sensitive is True
    assert by_name["ssl.keystore.password"].value is None


def test_groups_and_client_metrics_show_their_defaults(client: RawClient) -> None:
    group, metrics = describe(client, (GROUP, "g"), (CLIENT_METRICS, "m"))
    assert {"consumer.session.timeout.ms"} <= {config.name for config in group.configs}
    assert {config.name for config in metrics.configs} == {"interval.ms", "match", "metrics"}


Changes = list[tuple[str, int, str | None]]


def change(
    client: RawClient, *resources: tuple[int, str, Changes], version: int = 1, validate_only: bool = False
) -> list[tuple[int, bool]]:
    """Error and whether there is a message, for each resource."""
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(name=key, config_operation=what, value=value)
                    for key, what, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )
    responses = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, request).responses
    assert [(each.resource_type, each.resource_name) for each in responses] == [
        (kind, name) for kind, name, _ in resources
    ]
    return [(each.error_code, each.error_message is not None) for each in responses]


def replace(
    client: RawClient,
    *resources: tuple[int, str, list[tuple[str, str | None]]],
    version: int = 2,
    validate_only: bool = False,
) -> list[tuple[int, bool]]:
    request = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[alter_configs.AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    responses = client.ask(ApiKey.ALTER_CONFIGS, version, request).responses
    return [(each.error_code, each.error_message is not None) for each in responses]


OK = (NONE, False)


@pytest.mark.parametrize("version", [0, 1])
def test_a_setting_is_set_and_removed(client: RawClient, version: int) -> None:
    assert change(client, (TOPIC, "a", [("retention.ms", SET, "5000")]), version=version) == [OK]
    config = value_of(client, "a", "retention.ms")
    assert (config.value, config.config_source) == ("5000", 1)
    assert change(client, (TOPIC, "a", [("retention.ms", DELETE, None)]), version=version) == [OK]
    config = value_of(client, "a", "retention.ms")
    assert (config.value, config.config_source) == ("86400000", 4)


def test_lists_are_appended_to_and_subtracted_from(client: RawClient) -> None:
    assert change(client, (TOPIC, "b", [("cleanup.policy", APPEND, "compact")])) == [OK]
    assert value_of(client, "b", "cleanup.policy").value == "delete,compact"
    assert change(client, (TOPIC, "b", [("cleanup.policy", SUBTRACT, "delete")])) == [OK]
    assert value_of(client, "b", "cleanup.policy").value == "compact"
    assert change(client, (TOPIC, "b", [("retention.ms", APPEND, "1")])) == [(ErrorCode.INVALID_CONFIG, True)]
    assert change(client, (TOPIC, "b", [("cleanup.policy", DELETE, None)])) == [OK]


def test_a_new_setting_is_in_force_at_once(client: RawClient) -> None:
    large = one_record(b"x" * 5000)
    assert client.produce("c", large).error_code == NONE
    assert change(client, (TOPIC, "c", [("max.message.bytes", SET, "1000")])) == [OK]
    assert client.produce("c", large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert change(client, (TOPIC, "c", [("max.message.bytes", DELETE, None)])) == [OK]
    assert change(client, (BROKER, "", [("message.max.bytes", SET, "1000")])) == [OK]
    assert client.produce("c", large).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert change(client, (BROKER, "1", [("message.max.bytes", SET, "100000")])) == [OK]
    assert client.produce("c", large).error_code == NONE
    for name in ("", "1"):
        assert change(client, (BROKER, name, [("message.max.bytes", DELETE, None)])) == [OK]


def test_each_resource_is_answered_on_its_own_and_the_good_ones_are_done(client: RawClient) -> None:
    set_one: Changes = [("flush.ms", SET, "1000")]
    outcomes = change(
        client,
        (TOPIC, "a", set_one),
        (TOPIC, "none", set_one),
        (TOPIC, "a b", set_one),
        (TOPIC, "", set_one),
        (TOPIC, "b", [("nope", SET, "1")]),
        (TOPIC, "none2", [("nope", SET, "1")]),
        (TOPIC, "a c", [("retention.ms", SET, None)]),
        (TOPIC, "c", [("flush.ms", SET, "1"), ("flush.ms", SET, "2")]),
        (BROKER, "2", set_one),
        (BROKER, "x", set_one),
        (GROUP, "", set_one),
        (CLIENT_METRICS, "", set_one),
        (5, "x", set_one),
    )
    assert [code for code, _ in outcomes] == [
        NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        INVALID,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_CONFIG,
        *[INVALID] * 7,
    ]
    assert all(has_message for code, has_message in outcomes if code)
    assert value_of(client, "a", "flush.ms").value == "1000"
    assert change(client, (TOPIC, "a", [("flush.ms", DELETE, None)])) == [OK]


def test_a_resource_that_occurs_twice_is_refused_both_times(client: RawClient) -> None:
    one: Changes = [("retention.ms", SET, "1")]
    twice = (INVALID, True)
    assert change(client, (TOPIC, "a", one), (TOPIC, "b", []), (TOPIC, "a", one)) == [twice, OK, twice]
    assert replace(client, (TOPIC, "a", []), (TOPIC, "b", []), (TOPIC, "a", [])) == [twice, OK, twice]
    assert value_of(client, "a", "retention.ms").value == "86400000"


def test_an_operation_that_nobody_knows_fails_the_whole_request(client: RawClient) -> None:
    outcomes = change(client, (TOPIC, "a", [("flush.ms", SET, "1")]), (TOPIC, "b", [("flush.ms", 9, "1")]))
    assert outcomes == [(ErrorCode.UNKNOWN_SERVER_ERROR, False)] * 2
    assert value_of(client, "a", "flush.ms").config_source == 5


def test_validation_changes_nothing(client: RawClient) -> None:
    assert change(client, (TOPIC, "a", [("flush.ms", SET, "1")]), validate_only=True) == [OK]
    assert replace(client, (TOPIC, "a", [("flush.ms", "1")]), validate_only=True) == [OK]
    assert value_of(client, "a", "flush.ms").config_source == 5


@pytest.mark.parametrize("version", range(3))
def test_replacing_settings_drops_those_that_are_not_named(client: RawClient, version: int) -> None:
    assert replace(client, (TOPIC, "b", [("flush.ms", "1"), ("segment.ms", "2")]), version=version) == [OK]
    assert replace(client, (TOPIC, "b", [("flush.ms", "3")]), version=version) == [OK]
    assert value_of(client, "b", "flush.ms").value == "3"
    assert value_of(client, "b", "segment.ms").config_source == 5
    assert replace(client, (TOPIC, "b", []), version=version) == [OK]
    assert value_of(client, "b", "flush.ms").config_source == 5
    outcomes = replace(
        client,
        (TOPIC, "none", [("flush.ms", "1")]),
        (TOPIC, "a", [("flush.ms", None)]),
        (LOGGER, "1", [("root", "INFO")]),
        (0, "x", []),
        version=version,
    )
    assert [code for code, _ in outcomes] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        *[INVALID] * 3,
    ]


def test_settings_that_are_fixed_at_start_cannot_be_altered(client: RawClient) -> None:
    for name in ("1", ""):
        assert change(client, (BROKER, name, [("log.dirs", SET, "/x")])) == [(INVALID, True)]


def test_log_levels_are_described_and_changed(client: RawClient) -> None:
    name = "riverlog.test_log_levels"
    logging.getLogger(name)
    [result] = describe(client, (LOGGER, "1"))
    assert "root" in {config.name for config in result.configs}
    assert {config.config_source for config in result.configs} == {6}
    assert change(client, (LOGGER, "1", [(name, SET, "DEBUG")]), validate_only=True) == [OK]
    assert logging.getLogger(name).level == logging.NOTSET
    assert change(client, (LOGGER, "1", [(name, SET, "DEBUG")])) == [OK]
    [result] = describe(client, (LOGGER, "1"), keys=[name])
    assert [config.value for config in result.configs] == ["DEBUG"]
    assert change(client, (LOGGER, "1", [(name, DELETE, None)])) == [OK]
    assert logging.getLogger(name).level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "what", "value", "error"),
    [
        ("root", SET, "LOUD", ErrorCode.INVALID_CONFIG),
        ("root", SET, "info", ErrorCode.INVALID_CONFIG),
        ("no.such.logger", SET, "INFO", ErrorCode.INVALID_CONFIG),
        ("root", DELETE, None, INVALID),
        ("root", APPEND, "INFO", INVALID),
        ("root", SET, None, INVALID),
    ],
)
def test_log_levels_that_cannot_be(
    client: RawClient, name: str, what: int, value: str | None, error: ErrorCode
) -> None:
    assert change(client, (LOGGER, "1", [(name, what, value)])) == [(error, True)]


def test_altered_settings_survive_a_crash() -> None:
    with Broker() as broker:
        broker.create_topic("t")
        with RawClient(broker) as client:
            assert change(
                client,
                (TOPIC, "t", [("retention.ms", SET, "5")]),
                (GROUP, "a/b", [("consumer.session.timeout.ms", SET, "50000")]),
            ) == [OK, OK]
        broker.kill()
        broker.restart()
        with RawClient(broker) as client:
            assert value_of(client, "t", "retention.ms").value == "5"
            [group] = describe(client, (GROUP, "a/b"), keys=["consumer.session.timeout.ms"])
            assert [(config.value, config.config_source) for config in group.configs] == [("50000", 8)]
