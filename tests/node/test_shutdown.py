"""A clean shutdown while somebody still writes: what was written is saved, what comes too late is refused."""

import asyncio
import logging
from pathlib import Path

import pytest

from riverlog.model.disk import DiskFile
from riverlog.model.errors import ErrorCode
from riverlog.node.node import Node
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.storage.disk.local import LocalDisk
from riverlog.testing import Broker
from tests.broker.raw_client import RawClient, one_record
from tests.broker.transaction_client import TransactionClient
from tests.node.faulty_disk import FaultyDisk, FaultyFile
from tests.waiting import loop_turns

TOPICS = ("orders", "payments", "__transaction_state", "__consumer_offsets")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[ReplicaSet]:
    """The partitions of each node that was made, the newest last."""
    made: list[ReplicaSet] = []

    class Held(ReplicaSet):
        def __init__(self, *parts: object, **named: object) -> None:
            super().__init__(*parts, **named)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr("riverlog.node.node.ReplicaSet", Held)
    return made


class LateWriter:
    """Appends with every turn of the broker's event loop, as a timer would, until it is refused."""

    def __init__(self, partition: Partition, producer_id: int) -> None:
        self._partition = partition
        self._producer_id = producer_id
        self._start = partition.log.log_end_offset
        self.written = 0
        self.refusal: ErrorCode | None = None

    async def run(self) -> None:
        while self.refusal is None:
            batch = one_record(producer_id=self._producer_id, producer_epoch=0, base_sequence=self.written)
            outcome = self._partition.append(
                memoryview(bytearray(batch)), 1_700_000_000_000, for_all_replicas=True
            )
            if isinstance(outcome, AppendRefused):
                self.refusal = outcome.error
            else:
                assert outcome == AppendedRecords(
                    self._start + self.written, self._start + self.written + 1, None
                )
                self.written += 1
            await loop_turns()

    @property
    def end_offset(self) -> int:
        return self._start + self.written


def test_who_appends_during_a_clean_shutdown_is_saved_or_refused(
    tmp_path: Path, held: list[ReplicaSet], caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(data_dir=str(tmp_path)).start()
    with TransactionClient(broker, "writer") as client:
        for topic in TOPICS:
            client.create_topic(topic)
        client.identity()
    writers: list[LateWriter] = []
    running: list[asyncio.Task[None]] = []

    async def begin(node: Node) -> None:
        for number, topic in enumerate(TOPICS):
            partition = held[-1].find(topic, 0)
            assert isinstance(partition, Partition)
            writers.append(LateWriter(partition, 1000 + number))
            running.append(asyncio.create_task(writers[-1].run()))

    broker.call(begin)
    broker.stop()
    assert {each.refusal for each in writers} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert all(each.written for each in writers)
    for topic, writer in zip(TOPICS, writers, strict=True):
        assert (tmp_path / f"{topic}-0" / f"{writer.end_offset:020}.snapshot").exists(), topic
    with (
        caplog.at_level(logging.WARNING),
        Broker(data_dir=str(tmp_path)) as again,
        RawClient(again) as reader,
    ):
        for topic, writer in zip(TOPICS[:2], writers, strict=False):
            assert reader.fetch(topic, 0).high_watermark == writer.end_offset
    assert "recovering" not in caplog.text


class FullDisk(FaultyDisk):
    """One on which nothing fits any more, whatever the file."""

    def open(self, path: str, *, create: bool = False) -> DiskFile:
        return FaultyFile(LocalDisk.open(self, path, create=create), self, path)


def test_a_shutdown_on_a_full_disk_is_no_failure_and_the_next_start_recovers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    broker = Broker(data_dir=str(tmp_path), disk=disk).start()
    with RawClient(broker) as client:
        client.create_topic("orders")
        for _ in range(3):
            assert client.produce("orders").error_code == ErrorCode.NONE
    disk.is_full = True
    with caplog.at_level(logging.ERROR):
        broker.stop()
    assert "no room for a clean shutdown" in caplog.text
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    disk.is_full = False
    with (
        caplog.at_level(logging.WARNING),
        Broker(data_dir=str(tmp_path)) as again,
        RawClient(again) as client,
    ):
        assert "recovering" in caplog.text
        assert client.fetch("orders", 0).high_watermark == 3
        assert client.produce("orders").base_offset == 3


def test_a_partition_that_nobody_has_used_is_not_opened_during_a_shutdown(held: list[ReplicaSet]) -> None:
    with Broker() as broker:
        broker.create_topic("orders")
    assert held[-1].find("orders", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
