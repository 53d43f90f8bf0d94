"""Settings that are altered while a node runs, and what it then does otherwise."""

import time
from collections.abc import Iterator

import pytest

from riverlog.metadata.image import ClusterImage, ConfigResource, ResourceType
from riverlog.model.config.definitions import BROKER_KEYS, TOPIC_KEYS
from riverlog.model.config.settings import Settings
from riverlog.model.config.table import Key, Status, UpdateMode
from riverlog.model.config.transaction_config import ALTERABLE as ALTERABLE_OF_TRANSACTIONS
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import NodeId
from riverlog.node.live_config import LiveConfig
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.raw_client import ConnectionClosedError, RawClient, one_record
from tests.waiting import eventually

ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")
SET = 0
ANOTHER_VALUE = {
    "log.cleanup.policy": "compact",
    "cleanup.policy": "compact",
    "log.message.timestamp.type": "LogAppendTime",
    "message.timestamp.type": "LogAppendTime",
    "compression.type": "lz4",
    "compression.gzip.level": "7",
    "compression.lz4.level": "7",
    "compression.zstd.level": "7",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "min.cleanable.dirty.ratio": "0.25",
    "log.cleaner.io.buffer.load.factor": "0.25",
    "max.connections.per.ip.overrides": "127.0.0.1:9",
}
NEEDS = {f"compression.{codec}.level": {"compression.type": codec} for codec in ("gzip", "lz4", "zstd")}
"""Keys that mean something only beside another one."""

READ_WHERE_THEY_ARE_USED = {*ALTERABLE_OF_TRANSACTIONS, "group.consumer.assignment.interval.ms"}
"""By the coordinators, whose own tests alter them."""

FIXED_HERE = {"listeners", "listener.security.protocol.map"}
"""Changes of them are refused; see the test of the requirements."""


def _works_live(key: Key) -> bool:
    return key.status is Status.WORKS and key.mode is not UpdateMode.READ_ONLY


def _another(key: Key) -> str:
    if key.name in ANOTHER_VALUE:
        return ANOTHER_VALUE[key.name]
    if key.default in ("true", "false"):
        return "false" if key.default == "true" else "true"
    return "2000000"


def _effects(image: ClusterImage) -> tuple[object, ...]:
    live = LiveConfig(Settings(), NodeId(1))
    return live.log_config(image, "t"), live.cleaner_config(image), live.server_config(image)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, key in BROKER_KEYS.items()
        if _works_live(key) and name not in READ_WHERE_THEY_ARE_USED | FIXED_HERE
    ],
)
def test_a_broker_key_that_may_be_altered_has_an_effect(name: str) -> None:
    other = NEEDS.get(name, {})
    before = ClusterImage(configs={ALL_BROKERS: other})
    after = ClusterImage(configs={ALL_BROKERS: {**other, name: _another(BROKER_KEYS[name])}})
    assert _effects(after) != _effects(before)


@pytest.mark.parametrize("name", [name for name, key in TOPIC_KEYS.items() if _works_live(key)])
def test_a_topic_key_that_may_be_altered_has_an_effect_on_that_topic_alone(name: str) -> None:
    other = NEEDS.get(name, {})
    altered = {**other, name: _another(TOPIC_KEYS[name])}

    def image_of(topic: str, settings: dict[str, str]) -> ClusterImage:
        return ClusterImage(configs={ConfigResource(ResourceType.TOPIC, topic): settings})

    assert _effects(image_of("t", altered)) != _effects(image_of("t", other))
    assert _effects(image_of("u", altered)) == _effects(image_of("u", other))


def _alter(client: RawClient, kind: ResourceType, resource: str, **settings: str) -> None:
    configs = [
        AlterableConfig(name=name.replace("_", "."), config_operation=SET, value=value)
        for name, value in settings.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)]
    )
    [answer] = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request).responses
    assert answer.error_code == ErrorCode.NONE, answer.error_message


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(log_retention_check_interval_ms=100, log_initial_task_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def _is_served(broker: Broker) -> bool:
    with RawClient(broker) as other:
        try:
            other.produce("nowhere", one_record())
        except (ConnectionClosedError, ConnectionError):
            return False
        return True


@pytest.mark.parametrize(
    "bound",
    [
        {"max_connections": "1"},
        {"max_connections_per_ip": "1"},
        {"max_connections_per_ip_overrides": "127.0.0.1:1"},
    ],
)
def test_bounds_on_connections_hold_at_once_and_after_a_restart(
    broker: Broker, client: RawClient, bound: dict[str, str]
) -> None:
    assert _is_served(broker)
    _alter(client, ResourceType.BROKER, "", **bound)
    assert not _is_served(broker)
    broker.restart()
    with RawClient(broker) as only:
        assert not _is_served(broker)
        wide = {name: "127.0.0.1:100" if "overrides" in name else "100" for name in bound}
        _alter(only, ResourceType.BROKER, str(broker.node.config.node_id), **wide)
        assert _is_served(broker)


def test_the_largest_batch_is_that_of_now(broker: Broker, client: RawClient) -> None:
    broker.create_topic("bounded")
    record = one_record(b"x" * 2000)
    assert client.produce("bounded", record).error_code == ErrorCode.NONE
    _alter(client, ResourceType.BROKER, "", message_max_bytes="1000")
    assert client.produce("bounded", record).error_code == ErrorCode.MESSAGE_TOO_LARGE
    _alter(client, ResourceType.TOPIC, "bounded", max_message_bytes="3000")
    assert client.produce("bounded", record).error_code == ErrorCode.NONE


def test_retention_that_was_altered_for_all_brokers_lets_old_records_go(
    broker: Broker, client: RawClient
) -> None:
    broker.create_topic("short")
    now_ms = int(time.time() * 1000)
    for _ in range(3):
        assert client.produce("short", one_record(timestamp_ms=now_ms)).error_code == ErrorCode.NONE
    assert client.fetch("short", 0).log_start_offset == 0
    _alter(client, ResourceType.BROKER, "", log_retention_ms="1")
    eventually(lambda: client.fetch("short", 3).log_start_offset == 3)
