"""A key is said to work only when the program reads what it sets, and the other way round."""

import re
from pathlib import Path

import pytest

import riverlog
from riverlog.model.config.alter import AlterationRefused, Altered, AlterOperation, Change, alter_group
from riverlog.model.config.cleaner_config import CLEANER_FIELDS
from riverlog.model.config.definitions import BROKER_KEYS, TOPIC_KEYS, broker_synonyms, topic_synonym
from riverlog.model.config.effective import BrokerLayers
from riverlog.model.config.group_config import GROUP_FIELDS
from riverlog.model.config.log_config import BROKER_FIELDS, TOPIC_FIELDS
from riverlog.model.config.replica_fetch_config import REPLICA_FETCH_FIELDS
from riverlog.model.config.server_config import PLAIN_FIELDS
from riverlog.model.config.table import Status
from riverlog.model.config.transaction_config import TRANSACTION_FIELDS

SOURCES = "\n".join(
    path.read_text()
    for path in Path(riverlog.__file__).parent.rglob("*.py")
    if "model/config" not in path.as_posix() and "wire/messages" not in path.as_posix()
)
OTHER_READERS = {
    "cleanup.policy": "deletes_old_segments",
    "compression.gzip.level": "compression_level",
    "compression.lz4.level": "compression_level",
    "compression.zstd.level": "compression_level",
    "segment.ms": "roll_ms",
}
"""Keys whose field is read through a property of the slice."""

SPECIAL = {
    "node.id": "node_id",
    "broker.id": "node_id",
    "log.dir": "log_dirs",
    "log.dirs": "log_dirs",
    "listeners": "listeners",
    "listener.security.protocol.map": "listeners",
    "advertised.listeners": "advertised_listeners",
    "inter.broker.listener.name": "inter_broker_listener",
    "max.connections.per.ip.overrides": "max_connections_per_ip_overrides",
}
READ_AT_START = {
    "riverlog.insecure": "refuses open listeners while the slice is made",
    "broker.id.generation.enable": "node/processes/broker_number.py, before there is a slice",
    "reserved.broker.max.id": "node/processes/broker_number.py, before there is a slice",
}

GROUP_BOUNDS = {
    f"group.consumer.{bound}.{setting}": (f"consumer.{setting}", bound)
    for setting in ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")
    for bound in ("min", "max")
}
"""Read when the settings of a group are altered, with the setting that each is a bound of."""


def _is_read(attribute: str) -> bool:
    return re.search(rf"\.{attribute}\b", SOURCES) is not None


TOPIC_ATTRIBUTES = {name: OTHER_READERS.get(name, field.name) for name, field in TOPIC_FIELDS.items()}
BROKER_ATTRIBUTES = {
    **{key: attribute for attribute, key in PLAIN_FIELDS.items()},
    **{key: attribute for attribute, key in CLEANER_FIELDS.items()},
    **{key: attribute for attribute, key in GROUP_FIELDS.items()},
    **{key: attribute for attribute, key in TRANSACTION_FIELDS.items()},
    **{key: attribute for attribute, key in REPLICA_FETCH_FIELDS.items()},
    "offsets.retention.minutes": "offsets_retention_ms",
    **BROKER_FIELDS,
    **SPECIAL,
    **{
        synonym.name: attribute
        for name, attribute in TOPIC_ATTRIBUTES.items()
        if (broker := topic_synonym(name)) is not None
        for synonym in broker_synonyms(broker)
    },
    "log.flush.scheduler.interval.ms": "flush_scheduler_interval_ms",
}


@pytest.mark.parametrize("name", [name for name, key in TOPIC_KEYS.items() if key.status is Status.WORKS])
def test_a_topic_key_that_works_is_read(name: str) -> None:
    assert _is_read(TOPIC_ATTRIBUTES[name])


@pytest.mark.parametrize("name", [name for name, key in BROKER_KEYS.items() if key.status is Status.WORKS])
def test_a_broker_key_that_works_is_read(name: str) -> None:
    assert name in READ_AT_START or name in GROUP_BOUNDS or _is_read(BROKER_ATTRIBUTES[name])


@pytest.mark.parametrize("name", GROUP_BOUNDS)
def test_a_bound_of_group_settings_is_kept(name: str) -> None:
    setting, bound = GROUP_BOUNDS[name]
    wide = {each: "1" if kind == "min" else "1000000" for each, (_, kind) in GROUP_BOUNDS.items()}
    layers = BrokerLayers({**wide, name: "10000"}, {}, {})

    def alter(value: str) -> Altered | AlterationRefused:
        return alter_group({}, [Change(setting, AlterOperation.SET, value)], layers)

    assert isinstance(alter("10000"), Altered)
    assert isinstance(alter("9999" if bound == "min" else "10001"), AlterationRefused)


def test_a_key_that_does_nothing_is_not_read() -> None:
    pairs = [
        *((TOPIC_KEYS[name], attribute) for name, attribute in TOPIC_ATTRIBUTES.items()),
        *((BROKER_KEYS[name], attribute) for name, attribute in BROKER_ATTRIBUTES.items()),
    ]
    assert [
        key.name for key, attribute in pairs if key.status is not Status.WORKS and _is_read(attribute)
    ] == []
