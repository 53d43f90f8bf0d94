"""Descriptions of settings, equal to those that Apache Kafka gave for the same settings."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from riverlog.model.config.describe import (
    ConfigEntry,
    created_topic_entries,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from riverlog.model.config.effective import BrokerLayers, ConfigSource
from riverlog.model.config.parse import combine, from_mapping

RECORDED: Mapping[str, Mapping[str, Any]] = json.loads(
    (Path(__file__).parent / "fixtures" / "kafka_descriptions.json").read_text()
)
LAYERS = BrokerLayers(
    static=combine([from_mapping(RECORDED["settings"])]).static,
    dynamic_default={
        "log.retention.ms": "5000",
        "log.flush.interval.messages": "10",
        # Apache Kafka sets this itself when it formats a cluster.
        "min.insync.replicas": "1",
    },
    dynamic_broker={
        "log.retention.ms": "6000",
        "listener.name.foo.ssl.key.password": "x",
        "listener.name.foo.ssl.keystore.type": "JKS",
        "zz": "1",
        "leader.replication.throttled.rate": "50",
        "message.max.bytes": " 2000000 ",
    },
)
TOPIC = {
    "segment.bytes": " 2097152 ",
    "cleanup.policy": "compact,delete",
    "min.cleanable.dirty.ratio": "1e-5",
    "preallocate": "TRUE",
    "flush.ms": "1000",
}
DIFFERENT = {
    "broker": {
        "log.retention.hours": "Kafka shows the default once log.retention.ms is altered; we what was set",
        "log.dir": "another default",
        "transaction.two.phase.commit.enable": "another default",
        "listeners": "another default among the synonyms",
    }
}


def _as_recorded(entries: Iterable[ConfigEntry]) -> dict[str, Any]:
    return {
        entry.name: {
            "value": entry.value,
            "read_only": entry.is_read_only,
            "source": int(entry.source),
            "sensitive": entry.is_sensitive,
            "type": int(entry.type),
            "synonyms": [[each.name, each.value, int(each.source)] for each in entry.synonyms],
        }
        for entry in entries
        if not entry.name.startswith("riverlog.")
    }


@pytest.mark.parametrize(
    ("resource", "entries"),
    [
        ("broker", describe_broker(LAYERS)),
        ("broker_default", describe_broker_default(LAYERS)),
        ("topic", describe_topic(LAYERS, TOPIC)),
        ("group", describe_group(LAYERS, {"consumer.session.timeout.ms": "50000"})),
        ("client_metrics", describe_client_metrics({"interval.ms": "1000", "match": "client_id=a"})),
    ],
)
def test_a_description_is_the_one_of_kafka(resource: str, entries: list[ConfigEntry]) -> None:
    ours, theirs = _as_recorded(entries), RECORDED[resource]
    assert set(ours) == set(theirs)
    different = {name for name in theirs if ours[name] != theirs[name]}
    assert different == set(DIFFERENT.get(resource, {})), {n: (ours[n], theirs[n]) for n in different}


def test_a_created_topic_shows_values_and_sources_of_kafka() -> None:
    entries = created_topic_entries(LAYERS, {"segment.bytes": "2097152"})
    ours = {
        entry.name: {"value": entry.value, "source": int(entry.source)}
        for entry in entries
        if not entry.name.startswith("riverlog.")
    }
    assert ours == RECORDED["created_topic"]


def test_naming_keys_limits_the_answer_and_unknown_ones_are_left_out() -> None:
    names = [entry.name for entry in describe_topic(BrokerLayers(), {}, ["retention.ms", "no.such.key"])]
    assert names == ["retention.ms"]


def test_an_internal_key_is_shown_only_when_it_is_set() -> None:
    assert describe_topic(BrokerLayers(), {}, ["internal.segment.bytes"]) == []
    (entry,) = describe_topic(BrokerLayers(), {"internal.segment.bytes": "1000"}, ["internal.segment.bytes"])
    assert (entry.value, entry.source) == ("1000", ConfigSource.TOPIC)


def test_a_password_never_appears_in_a_description() -> None:
    layers = BrokerLayers(static={"ssl.key.password": "hunter2"}, dynamic_broker={"no.such.key": "hunter2"})
    assert "hunter2" not in repr(describe_broker(layers))


def test_retention_in_hours_reaches_a_topic_in_milliseconds() -> None:
    (entry,) = describe_topic(BrokerLayers(static={"log.retention.hours": "2"}), {}, ["retention.ms"])
    assert (entry.value, entry.source, entry.synonyms) == ("7200000", ConfigSource.DEFAULT, ())


def test_our_own_keys_are_described_too() -> None:
    (entry,) = describe_topic(
        BrokerLayers(static={"riverlog.acks.fsync": "true"}), {}, ["riverlog.acks.fsync"]
    )
    assert (entry.value, entry.source) == ("true", ConfigSource.STATIC_BROKER)
    assert entry.documentation
