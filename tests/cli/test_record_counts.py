"""How many records `topic describe` says that there are."""

from typing import Any

import pytest
from confluent_kafka import Producer

from riverlog.cli.asking import record_counts
from tests.cli.running import CommandLine
from tests.cli.test_txn import transactional


@pytest.fixture
def topic(riverlog: CommandLine) -> str:
    return riverlog.topic()


def partition(riverlog: CommandLine, topic: str) -> dict[str, Any]:
    [found] = riverlog("topic", "describe", topic, "-o", "json").json[0]["partitions"]
    assert isinstance(found, dict)
    return found


def in_transactions(riverlog: CommandLine, topic: str, *ends: bool) -> None:
    _, producer = transactional(riverlog.bootstrap)
    for commits in ends:
        producer.begin_transaction()
        producer.produce(topic, b"value")
        assert producer.flush(20) == 0  # An abort takes back what was not sent yet.
        producer.commit_transaction(20) if commits else producer.abort_transaction(20)


def test_markers_are_no_records(riverlog: CommandLine, topic: str) -> None:
    assert (partition(riverlog, topic)["records"], partition(riverlog, topic)["records_counted"]) == (0, True)
    riverlog.produce(topic, "one", "two", "three")
    in_transactions(riverlog, topic, True, True, False)
    found = partition(riverlog, topic)
    assert (found["records"], found["records_counted"]) == (6, True)
    assert found["end"] - found["start"] == 9
    assert len(riverlog.consume(topic, "--isolation", "read_uncommitted").stdout.splitlines()) == 6


def test_a_start_within_a_batch(riverlog: CommandLine, topic: str) -> None:
    producer = Producer(
        {"bootstrap.servers": riverlog.bootstrap, "linger.ms": 200, "compression.type": "lz4"}
    )
    for number in range(10):
        producer.produce(topic, f"{number}")
    assert producer.flush(20) == 0
    in_transactions(riverlog, topic, True)
    riverlog("topic", "trim", topic, "--before", "4", "--yes")
    found = partition(riverlog, topic)
    assert (found["start"], found["end"], found["records"]) == (4, 12, 7)


def test_what_is_too_large_to_be_counted_is_told_as_a_bound(
    riverlog: CommandLine, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    riverlog.produce(topic, "one", "two")
    monkeypatch.setattr(record_counts, "BYTES_READ_MAX", 10)
    found = partition(riverlog, topic)
    assert (found["records"], found["records_counted"]) == (2, False)
    assert " ≤2 " in riverlog("topic", "describe", topic).stdout
    monkeypatch.undo()
    assert " ≤2 " not in riverlog("topic", "describe", topic).stdout
