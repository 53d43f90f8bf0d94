"""The answers of three brokers of ours against those of three of Apache Kafka's, sequence by sequence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential import recording_files
from tests.differential.brokers.sequences import SCRIPTS
from tests.differential.conftest import Replay
from tests.differential.differences import DIFFERENCES, OF_BROKERS
from tests.differential.player import at

Json = Any

_SHOWN = 20


@pytest.mark.parametrize("script", [script.id for script in SCRIPTS])
def test_answers_as_three_brokers_of_kafka_do(script: str, replay_of_brokers: Replay) -> None:
    found = replay_of_brokers.disagreements.get(script)
    assert found is not None, "not recorded as it is written now: run make record-oracle"
    shown = "\n".join(str(one) for one in found[:_SHOWN])
    if found:
        pytest.fail(f"{len(found)} disagreements in {script}\n{shown}", pytrace=False)


def test_every_difference_of_several_brokers_is_needed(replay_of_brokers: Replay) -> None:
    own = set(OF_BROKERS) - set(DIFFERENCES)
    unused = [row for row in own if not replay_of_brokers.normaliser.used[row]]
    assert not unused, "\n".join(f"{row.api} {row.path}: {row.reason}" for row in unused)


def test_recordings_of_brokers_are_written_in_the_one_format() -> None:
    for path in recording_files.OF_BROKERS.glob("*.json"):
        text = path.read_text()
        assert text == recording_files.pretty(json.loads(text)) + "\n", path.name


def test_what_was_waited_for_came_about(recorded_of_brokers: dict[str, list[Json]]) -> None:
    """A recording that gave up waiting would be one of luck."""
    for script, exchanges in recorded_of_brokers.items():
        for exchange in exchanges:
            until = exchange["send"].get("until") or {}
            for path, value in until.items():
                assert at(exchange["reply"], path) == value, f"{script}: {path}"
