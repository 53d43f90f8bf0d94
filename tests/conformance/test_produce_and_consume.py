"""Every client writes and reads back: compressions, keys, headers, tombstones, sizes, acknowledgements."""

import random
import time
import uuid

import pytest

from riverlog.records.batch import walk
from riverlog.records.compression import Codec
from riverlog.records.murmur2 import partition_for_key
from riverlog.records.record import records_of
from tests.conformance.clients.aio import AioKafka
from tests.conformance.clients.confluent import ConfluentKafka
from tests.conformance.clients.interface import (
    COMPRESSIONS,
    ClientUnderTest,
    ConsumerOptions,
    Message,
    ProducerOptions,
    Refused,
)
from tests.conformance.clients.kcat import Kcat
from tests.conformance.conftest import CLIENTS, MakeTopic
from tests.conformance.raw_fetch import batch_headers, fetch

MESSAGE_TOO_LARGE, INVALID_RECORD = 10, 87
MESSAGES = [
    Message(b"value", b"key"),
    Message(b"with headers", b"key 2", (("trace", b"1234"), ("hop", b"a b"))),
    Message(None, b"tombstone"),
    Message(b"no key"),
    Message("größer €".encode(), "schlüssel".encode(), (("umlaut-ü", "ö".encode()),)),
    Message(b"compress me " * 500, b"long"),
]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_produced_comes_back_with_every_compression(
    client: ClientUnderTest, compression: str, topic: str, bootstrap: str
) -> None:
    client.produce(topic, MESSAGES, ProducerOptions(compression))
    consumed = client.consume(topic, len(MESSAGES))
    assert [record.content for record in consumed] == MESSAGES
    assert [record.offset for record in consumed] == list(range(len(MESSAGES)))
    stored = fetch(bootstrap, topic)
    codecs = {header.codec for _, header in walk(stored)}
    assert Codec[compression.upper()] in codecs
    assert codecs <= {Codec[compression.upper()], Codec.NONE}
    ours = [record for position, _ in walk(stored) for record in records_of(stored, position)]
    assert [Message(record.value, record.key, record.headers) for record in ours] == MESSAGES


@pytest.mark.parametrize("reader", CLIENTS)
def test_every_client_reads_what_another_compressed(
    reader: str, make_topic: MakeTopic, bootstrap: str
) -> None:
    for writer, compression in (("confluent-kafka", "lz4"), ("aiokafka", "snappy"), ("kafka-python", "zstd")):
        topic = make_topic()
        CLIENTS[writer](bootstrap).produce(topic, MESSAGES, ProducerOptions(compression))  # type: ignore[call-arg]
        consumed = CLIENTS[reader](bootstrap).consume(topic, len(MESSAGES))  # type: ignore[call-arg]
        assert [record.content for record in consumed] == MESSAGES


def test_records_from_one_byte_to_ten_megabytes(client: ClientUnderTest, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="12000000")
    source = random.Random(7)
    messages = [Message(source.randbytes(size)) for size in (1, 100, 10_000, 1_000_000, 10_000_000)]
    client.produce(topic, messages, ProducerOptions(max_request_bytes=11_000_000))
    consumed = client.consume(topic, len(messages), ConsumerOptions(max_partition_bytes=1_000_000))
    assert [record.content for record in consumed] == messages


def test_ten_megabytes_compressed(client: ClientUnderTest, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="12000000")
    words = [b"%d;" % (i * 7919 % 100_003) for i in range(20_000)]
    messages = [Message((b"".join(words) * 100)[:10_000_000])]
    client.produce(topic, messages, ProducerOptions("gzip", max_request_bytes=11_000_000))
    assert [record.content for record in client.consume(topic, 1)] == messages


def test_thousands_of_records_keep_their_order(client: ClientUnderTest, topic: str) -> None:
    messages = [Message(b"record %d" % number, b"key") for number in range(3000)]
    client.produce(topic, messages, ProducerOptions("lz4"))
    consumed = client.consume(topic, len(messages))
    assert [record.value for record in consumed] == [message.value for message in messages]
    assert [record.offset for record in consumed] == list(range(3000))


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement(client: ClientUnderTest, acks: int, topic: str) -> None:
    messages = [Message(b"one"), Message(b"two")]
    client.produce(topic, messages, ProducerOptions(acks=acks))
    assert [record.content for record in client.consume(topic, 2)] == messages


def test_an_idempotent_producer_gets_an_id_and_numbers_its_records(
    client: ClientUnderTest, topic: str, bootstrap: str
) -> None:
    messages = [Message(b"%d" % number, b"key") for number in range(500)]
    client.produce(topic, messages, ProducerOptions(idempotent=True))
    assert [record.content for record in client.consume(topic, 500)] == messages
    headers = batch_headers(bootstrap, topic)
    assert {header.producer_epoch for header in headers} == {0}
    assert len({header.producer_id for header in headers}) == 1
    assert headers[0].producer_id >= 0
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]


def test_a_record_above_max_message_bytes_is_refused(client: ClientUnderTest, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="10000")
    with pytest.raises(Refused) as refused:
        client.produce(topic, [Message(bytes(20_000))])
    assert refused.value.code == MESSAGE_TOO_LARGE
    assert client.watermarks(topic) == (0, 0)


def test_a_record_without_key_is_refused_by_a_compacted_topic(
    client: ClientUnderTest, make_topic: MakeTopic
) -> None:
    topic = make_topic(cleanup_policy="compact")
    with pytest.raises(Refused) as refused:
        client.produce(topic, [Message(b"no key")])
    # aiokafka has no name for this code and calls it unknown.
    assert refused.value.code == (-1 if isinstance(client, AioKafka) else INVALID_RECORD)
    client.produce(topic, [Message(b"value", b"key")], ProducerOptions("zstd"))
    assert client.watermarks(topic) == (0, 1)


@pytest.mark.parametrize("stored", COMPRESSIONS)
def test_a_topic_can_store_another_compression_than_the_producers(
    stored: str, make_topic: MakeTopic, bootstrap: str
) -> None:
    topic = make_topic(compression_type="uncompressed" if stored == "none" else stored)
    client = ConfluentKafka(bootstrap)
    client.produce(topic, MESSAGES, ProducerOptions("snappy"))
    client.produce(topic, MESSAGES)
    assert [record.content for record in client.consume(topic, 12)] == MESSAGES * 2
    assert {header.codec for header in batch_headers(bootstrap, topic)} == {Codec[stored.upper()]}


def test_timestamps_are_the_producers(client: ClientUnderTest, topic: str) -> None:
    if isinstance(client, Kcat):
        before_ms = int(time.time() * 1000)
        client.produce(topic, [Message(b"now")])
        [record] = client.consume(topic, 1)
        assert before_ms <= record.timestamp_ms <= int(time.time() * 1000)
        return
    messages = [Message(b"a", timestamp_ms=1_600_000_000_123), Message(b"b", timestamp_ms=1_500_000_000_000)]
    client.produce(topic, messages)
    assert [record.timestamp_ms for record in client.consume(topic, 2)] == [
        1_600_000_000_123,
        1_500_000_000_000,
    ]


def test_timestamps_can_be_the_brokers(
    client: ClientUnderTest, make_topic: MakeTopic, bootstrap: str
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    before_ms = int(time.time() * 1000)
    ConfluentKafka(bootstrap).produce(topic, [Message(b"old", timestamp_ms=1_000)], ProducerOptions("gzip"))
    [record] = client.consume(topic, 1)
    assert before_ms <= record.timestamp_ms <= int(time.time() * 1000)


def test_keys_are_placed_as_the_java_client_places_them(
    client: ClientUnderTest, make_topic: MakeTopic
) -> None:
    partitions = 5
    topic = make_topic(partitions)
    keys = [b"key-%d" % number for number in range(40)]
    client.produce(topic, [Message(b"v", key) for key in keys], partition=None)
    for partition in range(partitions):
        expected = [key for key in keys if partition_for_key(key, partitions) == partition]
        consumed = client.consume(topic, len(expected), partition=partition)
        assert [record.key for record in consumed] == expected


def test_producing_to_a_topic_that_does_not_exist_creates_it(client: ClientUnderTest) -> None:
    topic = f"conformance-auto-{uuid.uuid4().hex[:12]}"
    client.produce(topic, [Message(b"first")])
    assert [record.value for record in client.consume(topic, 1)] == [b"first"]
