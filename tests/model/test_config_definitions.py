"""The tables of keys, held against what Apache Kafka 4.3.1 says about its own."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from riverlog.model.config.definitions import (
    BROKER_KEYS,
    CLIENT_METRICS_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    broker_synonyms,
    nearest,
    topic_synonym,
)
from riverlog.model.config.keys import zookeeper
from riverlog.model.config.keys.removed import REMOVED
from riverlog.model.config.table import Key, OneOf, Range, Shape, Status, read_table
from riverlog.model.config.values import default_of, parse, render

KAFKA: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
    (Path(__file__).parent / "fixtures" / "kafka_keys.json").read_text()
)
OURS: Mapping[str, Mapping[str, Key]] = {
    "broker": BROKER_KEYS,
    "topic": TOPIC_KEYS,
    "group": GROUP_KEYS,
    "client_metrics": CLIENT_METRICS_KEYS,
}
OTHER_DEFAULTS = {
    "node.id": "Kafka has no default; one node needs none",
    "process.roles": "Kafka has no default; it means nothing here",
    "controller.listener.names": "Kafka has no default; it means nothing here",
    "listeners": "we listen on the loopback interface only",
    "log.dir": "we keep data in the working directory, not in /tmp",
    "transaction.two.phase.commit.enable": "on, see docs/adr/0008-two-phase-commit-on-by-default.md",
}
ZOOKEEPER_KEYS = read_table(zookeeper.TABLE)
"""Of Kafka 3."""
ALL_KEYS = [key for keys in OURS.values() for key in keys.values()]


@pytest.mark.parametrize("resource", OURS)
def test_every_key_of_kafka_is_known_and_every_other_is_ours(resource: str) -> None:
    ours, theirs = set(OURS[resource]), set(KAFKA[resource])
    assert theirs - ours == set()
    ours -= theirs | set(ZOOKEEPER_KEYS)
    assert {name for name in ours if not name.startswith("riverlog.")} == set()


@pytest.mark.parametrize("resource", OURS)
def test_type_importance_default_and_secrecy_are_kafkas(resource: str) -> None:
    for name, fact in KAFKA[resource].items():
        key = OURS[resource][name]
        assert key.type.name == fact["type"], name
        assert key.importance.upper() == fact["importance"], name
        assert key.is_internal == fact.get("internal", False), name
        if resource != "broker" or name not in OTHER_DEFAULTS:
            assert key.default == fact["default"], name


def test_the_defaults_that_differ_do_differ() -> None:
    for name in OTHER_DEFAULTS:
        assert BROKER_KEYS[name].default != KAFKA["broker"][name]["default"]


def test_what_can_be_altered_while_the_broker_runs_is_kafkas() -> None:
    for name, fact in KAFKA["broker"].items():
        assert BROKER_KEYS[name].mode == fact.get("dynamic", "read-only"), name


@pytest.mark.parametrize("resource", OURS)
def test_allowed_values_are_kafkas(resource: str) -> None:
    for name, fact in KAFKA[resource].items():
        assert _allowed_as_kafka_says(OURS[resource][name]) in _spellings(fact.get("allowed", "")), name


def test_topic_keys_are_checked_in_the_order_of_kafka() -> None:
    names = [name for name in TOPIC_KEYS if not name.startswith("riverlog.")]
    assert names[:3] == ["segment.bytes", "segment.ms", "segment.jitter.ms"]
    assert names.index("segment.ms") < names.index("retention.ms") < names.index("cleanup.policy")


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.name)
def test_every_default_is_a_valid_value_and_is_shown_as_it_is_written(key: Key) -> None:
    if key.default is not None and key.allowed is not Shape.NON_EMPTY:
        assert parse(key, key.default) == default_of(key)
        assert render(default_of(key)) == key.default


def test_every_key_has_a_sentence_of_its_own() -> None:
    for key in ALL_KEYS:
        assert key.documentation.endswith("."), key.name
        assert len(key.documentation) < 200, key.name
    keys = [key.documentation for key in BROKER_KEYS.values()]
    assert len(set(keys)) == len(keys)


def test_a_removed_key_is_not_also_a_known_one() -> None:
    assert set(REMOVED) & set(BROKER_KEYS) == set()


def test_a_topics_retention_comes_from_three_broker_keys() -> None:
    assert topic_synonym("retention.ms") == "log.retention.ms"
    assert [each.name for each in broker_synonyms("log.retention.ms")] == [
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    ]
    assert topic_synonym("remote.storage.enable") is None
    assert topic_synonym("riverlog.acks.fsync") == "riverlog.acks.fsync"


def test_the_nearest_name_is_found_only_when_it_is_near() -> None:
    assert nearest("log.segment.byte", BROKER_KEYS) == "log.segment.bytes"
    assert nearest("completely.different.thing", BROKER_KEYS) is None


def test_keys_of_followers_say_what_they_do() -> None:
    for name in (
        "replica.lag.time.max.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.wait.max.ms",
        "replica.socket.timeout.ms",
    ):
        assert BROKER_KEYS[name].status is Status.WORKS
    # One event loop copies from all leaders, so that a second fetcher would wait for the first.
    assert BROKER_KEYS["num.replica.fetchers"].status is Status.ACCEPTED


def _allowed_as_kafka_says(key: Key) -> str:
    match key.allowed:
        case None:
            return ""
        case Range(least, None, _):
            return f"[{least:.0f},...]"
        case Range(least, float() as most, None):
            return f"[{least:.0f},...,{most:g}]"
        case Range(least, float() as most, float() as also):
            return f"[{least:.0f},...,{most:.0f}] or {also:.0f}"
        case OneOf(choices, ignore_case):
            return f"{'(case insensitive) ' if ignore_case else ''}[{', '.join(choices)}]"
        case Shape.REPLICAS:
            return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        case Shape.OFFSET_RESET:
            return "[latest, earliest, by_duration:PnDTnHnMn.nS]"
        case Shape.NON_EMPTY:
            return "non-empty"
    raise AssertionError(key)


def _spellings(theirs: str) -> set[str]:
    plain = re.sub(r"^non-empty (string|list)$", "non-empty", theirs)
    numbers = re.sub(r"\d{6,}|10000", lambda found: f"{float(found[0]):g}", plain)
    return {plain, numbers, "" if plain == "non-null string" else plain}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (1e-5, "1.0E-5"),
        (0.00012, "1.2E-4"),
        (1e7, "1.0E7"),
        (12345678.0, "1.2345678E7"),
        (123456789.125, "1.23456789125E8"),
        (-1e10, "-1.0E10"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (9999999.0, "9999999.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_is_shown_as_java_shows_it(value: float, shown: str) -> None:
    assert render(value) == shown
