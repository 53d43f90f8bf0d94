"""One batch has a short way through the broker; it must answer and write what the long way does."""

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from riverlog.broker.dispatch import routes
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.by_hand.produce_request import SINGLE_VERSION_MIN, SingleBatch, decode_produce
from riverlog.wire.codec import decode
from riverlog.wire.framing import RequestHeader, encode_request
from riverlog.wire.messages.produce import ProduceRequest
from tests.broker.raw_client import ConnectionClosedError, RawClient, one_record, produce_request
from tests.broker.test_admin_metadata import topic_id

VERSIONS = range(3, 14)
BY_ID_SINCE = 13
UNKNOWN_ID = UUID(int=7)
# The records are years old: retention, which begins after half a minute, would move the start of the logs.
CONFIG = {"message.max.bytes": "5000", "log.retention.ms": "-1"}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Broker, Broker]]:
    """One that may take the short way, and one that never does."""
    with Broker(CONFIG) as short:
        monkeypatch.setattr(routes, "decode_produce", by_tables)
        with Broker(CONFIG) as long:
            yield short, long


def by_tables(data: memoryview, version: int, start: int) -> ProduceRequest:
    return decode(ProduceRequest, version, data, start)[0]


def batches() -> list[bytes]:
    """Good ones, and one of each kind of fault; in an order in which a producer's sequence goes on."""
    good = one_record()
    flipped = bytearray(good)
    flipped[-1] ^= 1
    idempotent = [
        one_record(producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        for epoch, sequence in ((1, 0), (1, 1), (1, 1), (1, 5), (0, 2), (1, 2))
    ]
    return [
        good,
        build_batch([(1_700_000_000_000 + number, b"k", b"v" * 50, ()) for number in range(20)]),
        *(one_record(codec=codec) for codec in Codec),
        *idempotent,
        one_record(producer_id=7, producer_epoch=1, base_sequence=3, transactional=True),
        one_record(b"v" * 6000),
        one_record(timestamp_ms=1 << 50),
        bytes(flipped),
        good[:-1],
        good[:40],
        good[:5],
        b"",
        good + b"more",
        good + good,
        good[:16] + b"\x01" + good[17:],
        good[:16] + b"\x03" + good[17:],
        good[:8] + b"\0\0\0\x05" + good[12:],
        good,
    ]


def of_version(request: ProduceRequest, version: int, topic_id: UUID) -> ProduceRequest:
    """Topics go by their ids from version 13 on."""
    if version >= BY_ID_SINCE:
        request.topic_data[0].topic_id = topic_id
    return request


def without_what_differs(reply: bytes, topic_id: UUID) -> bytes:
    """Brokers differ in the time of day in messages and in the ids of their topics."""
    return re.sub(rb"[0-9]{13}", b"now", reply).replace(topic_id.bytes, b"id of the topic")


def answer(broker: Broker, version: int, request: ProduceRequest, topic_id: UUID) -> bytes | None:
    """The reply as sent, but for what differs; None if the connection was closed instead."""
    with RawClient(broker) as client:
        client.send(ApiKey.PRODUCE, version, of_version(request, version, topic_id))
        try:
            return without_what_differs(client.receive_frame(), topic_id)
        except ConnectionClosedError:
            return None


def id_of(broker: Broker, topic: str) -> UUID:
    with RawClient(broker) as client:
        return topic_id(client, topic)


def log_bytes(broker: Broker, topic: str) -> bytes:
    return (Path(broker.data_dir) / f"{topic}-0" / f"{0:020}.log").read_bytes()


def test_both_ways_answer_and_write_the_same(brokers: tuple[Broker, Broker]) -> None:
    for broker in brokers:
        broker.create_topic("plain")
    short, long = brokers
    short_id, long_id = (id_of(broker, "plain") for broker in brokers)
    taken = 0
    for version in VERSIONS:
        for acks in (1, -1):
            for batch in batches():
                request = produce_request("plain", batch, acks=acks)
                expected = answer(long, version, request, long_id)
                assert answer(short, version, request, short_id) == expected, (version, acks, batch)
                taken += expected is not None
    assert taken > 0
    assert log_bytes(short, "plain") == log_bytes(long, "plain") != b""


@pytest.mark.parametrize(("topic", "partition", "acks"), [("none", 0, 1), ("plain", 3, -1), ("plain", 0, 2)])
def test_both_ways_refuse_alike(
    brokers: tuple[Broker, Broker], topic: str, partition: int, acks: int
) -> None:
    for broker in brokers:
        broker.create_topic("plain")
    request = produce_request(topic, None, partition=partition, acks=acks)
    ids = [UNKNOWN_ID if topic == "none" else id_of(broker, topic) for broker in brokers]
    for version in VERSIONS:
        replies = [
            answer(broker, version, request, topic_id) for broker, topic_id in zip(brokers, ids, strict=True)
        ]
        assert replies[0] == replies[1] is not None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_of_one_batch_has_the_short_form(version: int) -> None:
    request = produce_request("plain", one_record(), acks=1)
    frame = encode_request(RequestHeader(ApiKey.PRODUCE, version, 1, None), request)
    start = 14 + (version >= 9)
    single = decode_produce(memoryview(frame), version, start)
    assert isinstance(single, SingleBatch) == (version >= SINGLE_VERSION_MIN)
    if isinstance(single, SingleBatch):
        assert single.records == one_record()
