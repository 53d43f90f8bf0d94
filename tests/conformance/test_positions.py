"""Where clients start to read, what they find by time, and how long they wait."""

import threading
import time

import pytest

from tests.conformance.clients.confluent import ConfluentKafka
from tests.conformance.clients.interface import (
    ClientUnderTest,
    Consumed,
    ConsumerOptions,
    Message,
    ProducerOptions,
)
from tests.conformance.conftest import MakeTopic
from tests.conformance.raw_fetch import batch_headers


@pytest.fixture
def hundred(topic: str, bootstrap: str) -> str:
    """A topic of 100 records in two batches, one second between the times of two records."""
    writer = ConfluentKafka(bootstrap)
    for first in (0, 50):
        messages = [
            Message(b"%d" % number, timestamp_ms=1_600_000_000_000 + number * 1000)
            for number in range(first, first + 50)
        ]
        writer.produce(topic, messages, ProducerOptions("lz4"))
    assert len(batch_headers(bootstrap, topic)) >= 2
    return topic


@pytest.mark.parametrize("start", [0, 1, 49, 50, 73, 99])
def test_reading_starts_at_any_offset_also_within_a_batch(
    client: ClientUnderTest, hundred: str, start: int
) -> None:
    consumed = client.consume(hundred, 100 - start, start=start)
    assert [record.value for record in consumed] == [b"%d" % number for number in range(start, 100)]


def test_the_watermarks_are_those_of_the_log(client: ClientUnderTest, hundred: str) -> None:
    assert client.watermarks(hundred) == (0, 100)


def test_an_empty_partition_starts_and_ends_at_zero(client: ClientUnderTest, topic: str) -> None:
    assert client.watermarks(topic) == (0, 0)


@pytest.mark.parametrize(
    ("after_ms", "offset"),
    [(-5000, 0), (0, 0), (1, 1), (49_000, 49), (49_500, 50), (99_000, 99), (99_001, None)],
)
def test_offsets_are_found_by_time(
    client: ClientUnderTest, hundred: str, after_ms: int, offset: int | None
) -> None:
    assert client.offset_at(hundred, 1_600_000_000_000 + after_ms) == offset


def test_a_reader_of_committed_records_reads_all_when_there_are_no_transactions(
    client: ClientUnderTest, hundred: str
) -> None:
    consumed = client.consume(hundred, 100, ConsumerOptions(read_committed=True))
    assert [record.offset for record in consumed] == list(range(100))


def test_an_offset_beyond_the_log_is_reset_to_the_beginning(bootstrap: str, hundred: str) -> None:
    [first] = ConfluentKafka(bootstrap).consume(hundred, 1, start=5000)
    assert first.offset == 0


def test_each_partition_has_its_own_records(client: ClientUnderTest, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    for partition in range(3):
        client.produce(topic, [Message(b"%d" % partition)] * (partition + 1), partition=partition)
    for partition in range(3):
        assert client.watermarks(topic, partition) == (0, partition + 1)
        consumed = client.consume(topic, partition + 1, partition=partition)
        assert {record.value for record in consumed} == {b"%d" % partition}


def test_a_reader_that_waits_at_the_end_gets_a_new_record_at_once(
    client: ClientUnderTest, topic: str, bootstrap: str
) -> None:
    """Long polling: the answer comes with the data, not when the wait of ten seconds is over."""
    client.produce(topic, [Message(b"old")])
    got: list[Consumed] = []
    options = ConsumerOptions(max_wait_ms=10_000)
    reader = threading.Thread(target=lambda: got.extend(client.consume(topic, 1, options, start=1)))
    reader.start()
    reader.join(1.5)
    assert reader.is_alive(), "there was nothing to read yet"
    ConfluentKafka(bootstrap).produce(topic, [Message(b"new")])
    sent = time.monotonic()
    reader.join(20)
    assert [record.value for record in got] == [b"new"]
    assert time.monotonic() - sent < 5


def test_a_fetch_for_more_bytes_than_there_are_waits_its_time_and_returns_them(
    client: ClientUnderTest, topic: str
) -> None:
    client.produce(topic, [Message(b"little")])
    started = time.monotonic()
    [record] = client.consume(topic, 1, ConsumerOptions(max_wait_ms=800, min_bytes=100_000))
    assert record.value == b"little"
    assert time.monotonic() - started >= 0.8
