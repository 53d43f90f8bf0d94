"""Requests that repeat one another on a connection are answered, and written, as if each came alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from riverlog.broker.exchange.context import Parts
from riverlog.broker.produce.templated_writes import TemplatedWrites
from riverlog.model.errors import ErrorCode
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_client import ConnectionClosedError, RawClient, one_record, produce_request
from tests.broker.test_admin_configs import change
from tests.broker.test_admin_metadata import topic_id
from tests.broker.test_produce_short_way import (
    CONFIG,
    batches,
    id_of,
    log_bytes,
    of_version,
    without_what_differs,
)
from tests.node.faulty_disk import FaultyDisk

TOPIC_RESOURCE = 2
SET = 0


class Taken:
    """How many requests were answered the shortest way."""

    count = 0


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    answer, counted = TemplatedWrites.answer, Taken()

    def counting(self: TemplatedWrites, correlation_id: int, records: memoryview) -> Parts | None:
        reply = answer(self, correlation_id, records)
        counted.count += reply is not None
        return reply

    monkeypatch.setattr(TemplatedWrites, "answer", counting)
    return counted


class Pair(NamedTuple):
    """One that remembers requests, and one that decodes each."""

    repeating: Broker
    plain: Broker

    def file(self, topic: str) -> bytes:
        written = [log_bytes(broker, topic) for broker in self]
        assert written[0] == written[1]
        return written[0]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with (
        Broker(CONFIG, data_dir=str(tmp_path / "a")) as repeating,
        Broker(CONFIG, data_dir=str(tmp_path / "b")) as plain,
    ):
        yield Pair(repeating, plain)


class Producer:
    """One connection that is opened anew when the broker has closed it."""

    def __init__(self, broker: Broker, *, decodes_each: bool, topic: str = "orders") -> None:
        self._broker = broker
        self._topic_id = id_of(broker, topic)
        self._decodes_each = decodes_each  # A connection remembers nothing of another one.
        self.client = RawClient(broker)

    def send(self, version: int, request: ProduceRequest) -> bytes | None:
        """The reply, without its correlation id and what differs from broker to broker."""
        if self._decodes_each:
            self.client.socket.close()
            self.client = RawClient(self._broker)
        try:
            self.client.send(ApiKey.PRODUCE, version, of_version(request, version, self._topic_id))
            return without_what_differs(self.client.receive_frame()[4:], self._topic_id)
        except (ConnectionClosedError, ConnectionResetError):
            self.client = RawClient(self._broker)
            return None


@pytest.mark.parametrize("version", range(9, 14))
@pytest.mark.parametrize("acks", [1, -1])
def test_whatever_comes_between_good_ones(pair: Pair, taken: Taken, version: int, acks: int) -> None:
    for broker in pair:
        broker.create_topic("orders")
    repeating = Producer(pair.repeating, decodes_each=False)
    plain = Producer(pair.plain, decodes_each=True)
    good = one_record()
    for batch in batches():
        for records in (good, good, good, batch):
            request = produce_request("orders", records, acks=acks)
            assert repeating.send(version, request) == plain.send(version, request)
    assert taken.count > len(batches())
    assert pair.file("orders")
    repeating.client.socket.close()
    plain.client.socket.close()


def by_id(client: RawClient, topic: str) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=one_record())
    named = TopicProduceData(topic_id=topic_id(client, topic), partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[named])


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_that_goes_and_comes_back_is_another_one(taken: Taken, version: int) -> None:
    with Broker() as broker, RawClient(broker) as client:

        def offsets(count: int) -> list[tuple[int, int]]:
            found = []
            for _ in range(count):
                reply = client.ask(ApiKey.PRODUCE, version, request).responses[0].partition_responses[0]
                found.append((reply.error_code, reply.base_offset))
            return found

        client.create_topic("orders")
        request = by_id(client, "orders") if version == 13 else produce_request("orders", None)
        assert offsets(5) == [(0, offset) for offset in range(5)]
        assert taken.count == 3
        client.delete_topic("orders")
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if version == 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert offsets(2) == [(unknown, -1)] * 2
        client.create_topic("orders")
        if version == 13:
            assert offsets(2) == [(unknown, -1)] * 2  # The id is that of the old topic.
        else:
            assert offsets(200) == [(0, offset) for offset in range(200)]
            assert taken.count > 100  # The new one is remembered after a while.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.message.bytes", "70"),
        ("message.timestamp.type", "LogAppendTime"),
        ("message.timestamp.after.max.ms", "1"),
        ("compression.type", "zstd"),
        ("cleanup.policy", "compact"),
        ("riverlog.acks.fsync", "true"),
        ("min.insync.replicas", "2"),
        ("flush.messages", "1"),
    ],
)
def test_a_changed_setting_holds_from_the_next_request_on(
    pair: Pair, taken: Taken, name: str, value: str
) -> None:
    replies = []
    for broker, decodes_each in zip(pair, (False, True), strict=True):
        broker.create_topic("orders")
        producer = Producer(broker, decodes_each=decodes_each)
        request = produce_request("orders", one_record(key=None))
        seen = [producer.send(12, request) for _ in range(4)]
        assert change(producer.client, (TOPIC_RESOURCE, "orders", [(name, SET, value)])) == [(0, False)]
        answers = [producer.send(12, request) for _ in range(4)]
        replies.append((seen, [_without_times(answer) for answer in answers]))
        producer.client.socket.close()
    assert taken.count >= 2
    assert replies[0] == replies[1]
    written = [log_bytes(broker, "orders") for broker in pair]
    assert len(written[0]) == len(written[1])


def _without_times(reply: bytes | None) -> bytes | None:
    """Append times differ from broker to broker; that there is one is kept."""
    if reply is None:
        return None
    time_at = len(reply) - 9 - 16
    time = reply[time_at : time_at + 8]
    return reply[:time_at] + (b"none" if time == b"\xff" * 8 else b"time") + reply[time_at + 8 :]


def test_the_log_start_in_the_reply_moves_with_the_log(taken: Taken) -> None:
    with Broker() as broker, RawClient(broker) as client:
        client.create_topic("orders")
        for _ in range(6):
            assert client.produce("orders").log_start_offset == 0
        partition = DeleteRecordsPartition(partition_index=0, offset=4)
        topic = DeleteRecordsTopic(name="orders", partitions=[partition])
        client.ask(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[topic], timeout_ms=5000))
        assert client.produce("orders").log_start_offset == 4
        assert taken.count == 5


def test_a_full_disk_is_told_and_nothing_of_the_batch_stays(taken: Taken) -> None:
    disk = FaultyDisk()
    with Broker(disk=disk) as broker, RawClient(broker) as client:
        client.create_topic("orders")
        for _ in range(5):
            client.produce("orders", acks=1)
        disk.is_full = True
        with RawClient(broker) as other:
            usual = other.produce("orders", acks=1)
        assert usual.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.is_full = False
        client.produce("orders", acks=1)
        client.produce("orders", acks=1)
        before = log_bytes(broker, "orders")
        disk.is_full = True
        assert [client.produce("orders", acks=1) for _ in range(3)] == [usual] * 3
        assert log_bytes(broker, "orders") == before
        disk.is_full = False
        assert [client.produce("orders", acks=1).base_offset for _ in range(3)] == [7, 8, 9]
        assert taken.count == 3 + 1 + 1 + 2  # The first of the faults is told so, the first after them not.


def test_a_disk_that_breaks_closes_the_partition(taken: Taken) -> None:
    disk = FaultyDisk()
    with Broker(disk=disk) as broker, RawClient(broker) as client:
        client.create_topic("orders")
        for _ in range(5):
            client.produce("orders")
        disk.broken = broker.data_dir
        assert client.produce("orders").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.broken = None
        assert client.produce("orders").error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert taken.count == 4
