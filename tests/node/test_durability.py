"""What an acknowledgement is worth: group commit, full and broken disks, restarts."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from riverlog.model.errors import ErrorCode, StorageError
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from tests.broker.raw_client import (
    ConnectionClosedError,
    RawClient,
    fetch_request,
    one_record,
    produce_request,
)
from tests.node.faulty_disk import FaultyDisk
from tests.waiting import eventually


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk()
    yield disk
    disk.may_sync.set()


@pytest.fixture
def syncing(disk: FaultyDisk) -> Iterator[Broker]:
    """A broker whose acknowledgements wait for the disk."""
    with Broker(riverlog_acks_fsync=True, disk=disk) as broker:
        broker.create_topic("orders")
        yield broker
        disk.may_sync.set()


def test_with_fsync_neither_ack_nor_reader_comes_before_the_sync(syncing: Broker, disk: FaultyDisk) -> None:
    with RawClient(syncing) as writer, RawClient(syncing) as reader:
        writer.produce("orders")
        disk.may_sync.clear()
        writer.send(ApiKey.PRODUCE, 9, produce_request("orders", None))
        reader.send(ApiKey.FETCH, 12, fetch_request("orders", 1, max_wait_ms=30_000))
        assert writer.hears_nothing()
        assert reader.hears_nothing()
        with RawClient(syncing) as other:
            assert other.fetch("orders", 0).high_watermark == 1
        disk.may_sync.set()
        assert writer.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0].base_offset == 1
        assert reader.receive(ApiKey.FETCH, 12).responses[0].partitions[0].high_watermark == 2


def test_with_fsync_the_ack_of_a_duplicate_waits_as_well(syncing: Broker, disk: FaultyDisk) -> None:
    batch = one_record(producer_id=9, producer_epoch=0, base_sequence=0)
    disk.may_sync.clear()
    with RawClient(syncing) as first, RawClient(syncing) as retry:
        for client in (first, retry):
            client.send(ApiKey.PRODUCE, 9, produce_request("orders", batch))
            assert client.hears_nothing()
        disk.may_sync.set()
        for client in (first, retry):
            reply = client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0]
            assert (reply.error_code, reply.base_offset) == (ErrorCode.NONE, 0)


def test_with_fsync_many_producers_share_a_sync(syncing: Broker, disk: FaultyDisk) -> None:
    disk.may_sync.clear()
    with RawClient(syncing) as client:
        before = disk.syncs
        for _ in range(50):
            client.send(ApiKey.PRODUCE, 9, produce_request("orders", None))
        metrics = syncing.node.metrics
        eventually(
            lambda: metrics.value("riverlog_requests_total", api="Produce") == 50  # type: ignore[attr-defined]
        )
        disk.may_sync.set()
        offsets = [
            client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0].base_offset
            for _ in range(50)
        ]
        assert offsets == list(range(50))
        assert disk.syncs - before < 10


def test_a_produce_that_is_not_on_disk_in_time_times_out(syncing: Broker, disk: FaultyDisk) -> None:
    disk.may_sync.clear()
    with RawClient(syncing) as client:
        reply = client.produce("orders", timeout_ms=100)
        assert (reply.error_code, reply.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_a_failed_sync_takes_the_directory_offline_and_is_never_acknowledged(
    syncing: Broker, disk: FaultyDisk
) -> None:
    with RawClient(syncing) as client:
        client.produce("orders")
        disk.fails_to_sync = True
        assert client.produce("orders").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.fails_to_sync = False
        assert client.produce("orders").error_code == ErrorCode.KAFKA_STORAGE_ERROR, "never retried"
        assert client.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failing_disk_takes_its_directory_offline_and_leaves_the_others_alone(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    settings = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    with Broker(settings, disk=disk) as broker, RawClient(broker) as client:
        client.create_topic("spread", partitions=2)
        for partition in range(2):
            assert client.produce("spread", partition=partition).base_offset == 0
        lost = 0 if (tmp_path / "a" / "spread-0").is_dir() else 1
        disk.broken = str(tmp_path / "a")
        assert client.produce("spread", partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.broken = None
        assert client.produce("spread", partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.fetch("spread", 0, partition=lost).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("spread", partition=1 - lost).base_offset == 1
        assert client.fetch("spread", 0, partition=1 - lost).high_watermark == 2
        broker.restart()
        with RawClient(broker) as again:
            assert again.produce("spread", partition=lost).base_offset == 1


def test_a_directory_that_cannot_be_saved_does_not_keep_the_others_from_it(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    broker = Broker({"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}, disk=disk).start()
    with RawClient(broker) as client:
        client.create_topic("spread", partitions=2)
        for partition in range(2):
            assert client.produce("spread", partition=partition).base_offset == 0
    disk.broken = str(tmp_path / "a")
    with pytest.raises(StorageError):
        broker.stop()
    marked = [(tmp_path / name / ".kafka_cleanshutdown").exists() for name in ("a", "b")]
    assert marked == [False, True]
    disk.broken = None
    with broker, RawClient(broker) as client:
        for partition in range(2):
            assert client.fetch("spread", 0, partition=partition).high_watermark == 1


@pytest.mark.parametrize("record_bytes", [10, 100_000])
def test_records_that_the_disk_cannot_read_take_the_directory_offline(
    disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch, record_bytes: int
) -> None:
    monkeypatch.setattr("riverlog.storage.disk.local.LocalFile.is_warm", lambda *_: False)
    monkeypatch.setattr("riverlog.storage.disk.local.LocalFile.read_if_warm", lambda *_: None)
    with Broker(disk=disk) as broker, RawClient(broker) as client:
        client.create_topic("orders")
        assert client.produce("orders", one_record(b"v" * record_bytes)).error_code == ErrorCode.NONE
        assert client.fetch("orders", 0).records
        disk.broken = broker.data_dir
        with pytest.raises((ConnectionClosedError, ConnectionError)):
            client.fetch("orders", 0)
        disk.broken = None
        with RawClient(broker) as again:
            assert again.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_full_disk_refuses_writes_keeps_reads_and_recovers_by_itself(disk: FaultyDisk) -> None:
    with Broker(disk=disk) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
        disk.is_full = True
        for _ in range(3):
            refused = client.produce("orders")
            assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        data = client.fetch("orders", 0)
        assert (data.error_code, data.high_watermark) == (ErrorCode.NONE, 1)
        disk.is_full = False
        assert client.produce("orders").base_offset == 1
        broker.kill()
        broker.restart()
        with RawClient(broker) as again:
            assert again.fetch("orders", 0).high_watermark == 2
            assert again.produce("orders").base_offset == 2


def test_a_full_disk_costs_few_log_lines(disk: FaultyDisk, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(disk=disk) as broker, RawClient(broker) as client:
        client.produce_to_new_topic("orders")
        disk.is_full = True
        for _ in range(100):
            client.produce("orders")
        disk.is_full = False
        client.produce("orders")
    assert 0 < len([line for line in caplog.records if "orders-0" in line.getMessage()]) < 10


@pytest.mark.parametrize("ends", ["cleanly", "abruptly"])
def test_records_and_producer_state_outlive_the_broker_however_it_ends(tmp_path: Path, ends: str) -> None:
    with Broker(data_dir=str(tmp_path)) as broker:
        now_ms = time.time_ns() // 1_000_000  # The state of a producer that is silent for a day is let go.
        batch = one_record(timestamp_ms=now_ms, producer_id=7, producer_epoch=0, base_sequence=0)
        with RawClient(broker) as client:
            client.create_topic("orders")
            assert client.produce("orders", batch).base_offset == 0
        if ends == "abruptly":
            broker.kill()
        broker.restart()
        with RawClient(broker) as client:
            assert client.fetch("orders", 0).high_watermark == 1
            assert client.produce("orders", batch).base_offset == 0, "a duplicate was appended"
            assert client.fetch("orders", 0).high_watermark == 1
