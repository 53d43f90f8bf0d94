"""Settings of topics and producers as a client sees them take effect, through a running broker."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from tests.broker.raw_client import RawClient, one_record
from tests.waiting import eventually


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    settings = {
        "log.retention.check.interval.ms": 50,
        "log.initial.task.delay.ms": 0,
        "producer.id.expiration.ms": 500,
        "producer.id.expiration.check.interval.ms": 50,
    }
    with Broker(settings, data_dir=str(tmp_path)) as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        yield client


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def segments(broker: Broker, topic: str, suffix: str = ".log") -> list[str]:
    return sorted(name for name in os.listdir(f"{broker.data_dir}/{topic}-0") if name.endswith(suffix))


def test_a_segment_rolls_when_its_records_span_segment_ms(broker: Broker, client: RawClient) -> None:
    broker.create_topic("timed", config={"segment.ms": 1000, "retention.ms": -1})
    for timestamp_ms in (0, 900, 1100, 2000, 2200):
        assert client.produce("timed", one_record(timestamp_ms=timestamp_ms)).error_code == ErrorCode.NONE
    assert segments(broker, "timed") == [f"{offset:020d}.log" for offset in (0, 2, 4)]


def test_the_oldest_segments_go_when_a_topic_outgrows_retention_bytes(
    broker: Broker, client: RawClient
) -> None:
    broker.create_topic(
        "bounded", config={"segment.bytes": 1048576, "retention.bytes": 1048576, "retention.ms": -1}
    )
    for _ in range(5):
        client.produce("bounded", one_record(b"v" * 600_000))
    eventually(lambda: client.fetch("bounded", 4).log_start_offset == 3)
    assert client.fetch("bounded", 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_files_of_old_segments_are_renamed_at_once_and_removed_after_the_delay(
    broker: Broker, client: RawClient
) -> None:
    broker.create_topic("old", config={"retention.ms": 1, "file.delete.delay.ms": 1000})
    client.produce("old", one_record(timestamp_ms=now_ms() - 10_000))
    eventually(lambda: f"{0:020d}.log.deleted" in segments(broker, "old", ".deleted"))
    eventually(lambda: not segments(broker, "old", ".deleted"))


@pytest.mark.parametrize(
    ("setting", "timestamp_ms"),
    [("message.timestamp.before.max.ms", -60_000), ("message.timestamp.after.max.ms", 60_000)],
)
def test_records_too_far_from_the_brokers_time_are_refused(
    broker: Broker, client: RawClient, setting: str, timestamp_ms: int
) -> None:
    broker.create_topic("near", config={setting: 30_000})
    refused = client.produce("near", one_record(timestamp_ms=now_ms() + timestamp_ms))
    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert client.produce("near", one_record(timestamp_ms=now_ms())).base_offset == 0


def test_a_silent_producer_is_forgotten_after_its_time(broker: Broker, client: RawClient) -> None:
    broker.create_topic("retried")
    batch = one_record(timestamp_ms=now_ms(), producer_id=7, producer_epoch=0, base_sequence=0)
    assert client.produce("retried", batch).base_offset == 0
    assert client.produce("retried", batch).base_offset == 0, "a duplicate was appended"
    eventually(lambda: client.produce("retried", batch).base_offset > 0)
