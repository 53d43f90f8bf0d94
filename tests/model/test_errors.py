"""Error codes beside those of Apache Kafka 4.3.1, as `Errors` there lists them.

For each name: the number, whether the exception is retriable, and whether metadata is fetched anew.
"""

import json
from pathlib import Path

from riverlog.model.errors import ErrorCode

KAFKA = json.loads((Path(__file__).parent / "fixtures" / "kafka_errors.json").read_text())
LOOKED_UP_OTHERWISE = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER,
}
"""Kafka's clients treat these one by one: they forget the coordinator or the controller, not the leaders."""


def test_names_and_numbers_are_those_of_kafka() -> None:
    assert {code.name: int(code) for code in ErrorCode} == {name: row[0] for name, row in KAFKA.items()}


def test_what_may_be_tried_again_is_what_kafka_calls_retriable() -> None:
    assert {code.name for code in ErrorCode if code.is_retriable} == {
        name for name, (_, is_retriable, _) in KAFKA.items() if is_retriable
    }


def test_metadata_is_stale_where_kafka_says_so_and_where_a_coordinator_or_controller_has_moved() -> None:
    stale = {code for code in ErrorCode if code.invalidates_metadata}
    assert {code.name for code in stale - LOOKED_UP_OTHERWISE} == {
        name for name, (_, _, invalidates_metadata) in KAFKA.items() if invalidates_metadata
    }
    assert stale >= LOOKED_UP_OTHERWISE
    assert all(code.is_retriable for code in stale)


def test_a_code_of_a_newer_broker_is_an_unknown_error() -> None:
    assert ErrorCode.of(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.of(9999) is ErrorCode.UNKNOWN_SERVER_ERROR
