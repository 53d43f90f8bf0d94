"""Produce against a real broker, with requests built byte by byte."""

import struct
from uuid import uuid4

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.testing import Broker
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_client import RawClient, one_record, produce_request


def topic_id(client: RawClient, topic: str) -> object:
    reply = client.ask(ApiKey.METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    return reply.topics[0].topic_id


def test_offsets_follow_one_another(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        three = build_batch([(1_700_000_000_000, b"k", b"v", ())] * 3)
        assert client.produce(riverlog_topic).base_offset == 0
        assert client.produce(riverlog_topic, three).base_offset == 1
        assert client.produce(riverlog_topic, acks=1).base_offset == 4


def test_topics_are_identified_by_id_from_version_13_on(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        for wanted, error in ((topic_id(client, riverlog_topic), 0), (uuid4(), ErrorCode.UNKNOWN_TOPIC_ID)):
            data = [PartitionProduceData(index=0, records=one_record())]
            request = ProduceRequest(
                acks=1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(topic_id=wanted, partition_data=data)],  # type: ignore[arg-type]
            )
            reply = client.ask(ApiKey.PRODUCE, 13, request)
            assert reply.responses[0].topic_id == wanted
            assert reply.responses[0].partition_responses[0].error_code == error


@pytest.mark.parametrize(
    ("topic", "partition", "acks", "error"),
    [
        ("there-is-none", 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, 1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, -1, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, 0, 2, ErrorCode.INVALID_REQUIRED_ACKS),
        (None, 0, -2, ErrorCode.INVALID_REQUIRED_ACKS),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_code(
    riverlog_broker: Broker,
    riverlog_topic: str,
    topic: str | None,
    partition: int,
    acks: int,
    error: ErrorCode,
) -> None:
    with RawClient(riverlog_broker) as client:
        reply = client.produce(topic or riverlog_topic, partition=partition, acks=acks)
        assert (reply.error_code, reply.base_offset, reply.log_start_offset) == (error, -1, -1)
        assert client.produce(riverlog_topic).base_offset == 0


def test_each_partition_of_a_request_has_an_outcome_of_its_own(riverlog_broker: Broker) -> None:
    riverlog_broker.create_topic(topic := f"several-{uuid4().hex}", partitions=2)
    with RawClient(riverlog_broker) as client:
        broken = bytearray(one_record())
        broken[-1] ^= 1
        data = [
            PartitionProduceData(index=0, records=one_record()),
            PartitionProduceData(index=1, records=bytes(broken)),
            PartitionProduceData(index=2, records=one_record()),
        ]
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
        )
        replies = client.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses
        assert [reply.error_code for reply in replies] == [
            ErrorCode.NONE,
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


def test_a_batch_above_max_message_bytes_is_too_large(riverlog_broker: Broker) -> None:
    riverlog_broker.create_topic(topic := f"small-{uuid4().hex}", config={"max.message.bytes": 1000})
    with RawClient(riverlog_broker) as client:
        assert client.produce(topic, one_record(b"v" * 2000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert client.produce(topic, one_record(b"v" * 500)).error_code == ErrorCode.NONE


def test_a_record_without_a_key_is_invalid_on_a_compacted_topic(riverlog_broker: Broker) -> None:
    riverlog_broker.create_topic(topic := f"compacted-{uuid4().hex}", config={"cleanup.policy": "compact"})
    with RawClient(riverlog_broker) as client:
        mixed = build_batch([(1_700_000_000_000, key, b"v", ()) for key in (b"a", None, b"c")])
        reply = client.produce(topic, mixed)
        assert reply.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in reply.record_errors] == [1]
        assert reply.log_start_offset == 0
        assert client.produce(topic, one_record()).base_offset == 0


def test_zstd_needs_version_7(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        packed = one_record(codec=Codec.ZSTD)
        refused = client.produce(riverlog_topic, packed, version=6)
        assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert client.produce(riverlog_topic, packed, version=7).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_before_3_are_advertised_and_close_the_connection(
    riverlog_broker: Broker, version: int
) -> None:
    with RawClient(riverlog_broker) as client:
        body = struct.pack(">hii", 1, 1000, 0)
        head = struct.pack(">hhih", ApiKey.PRODUCE, version, 1, -1)
        client.socket.sendall(struct.pack(">i", len(head + body)) + head + body)
        assert client.is_closed()


def test_acks_0_is_not_answered_and_a_failure_closes_the_connection(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:
        client.send(ApiKey.PRODUCE, 9, produce_request(riverlog_topic, None, acks=0))
        assert client.produce(riverlog_topic).base_offset == 1, "the next reply is that of the next request"
        client.send(ApiKey.PRODUCE, 9, produce_request("there-is-none", None, acks=0))
        assert client.is_closed()


def test_a_retry_of_an_idempotent_producer_gets_the_original_offset(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    with RawClient(riverlog_broker) as client:

        def send(sequence: int) -> tuple[int, int]:
            batch = one_record(producer_id=4711, producer_epoch=0, base_sequence=sequence)
            reply = client.produce(riverlog_topic, batch)
            return reply.error_code, reply.base_offset

        assert [send(sequence) for sequence in range(7)] == [(0, offset) for offset in range(7)]
        assert send(3) == (0, 3)
        assert send(9) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert send(7) == (0, 7)


def test_a_transactional_batch_is_refused_while_nobody_coordinates(
    riverlog_broker: Broker, riverlog_topic: str
) -> None:
    batch = one_record(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    with RawClient(riverlog_broker) as client:
        assert (
            client.produce(riverlog_topic, batch).error_code
            == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        )
        request = produce_request(riverlog_topic, batch)
        request.transactional_id = "payments"
        reply = client.ask(ApiKey.PRODUCE, 12, request).responses[0].partition_responses[0]
        assert reply.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert client.produce(riverlog_topic).base_offset == 0


def test_log_append_time_is_told_and_stored(riverlog_broker: Broker) -> None:
    config = {"message.timestamp.type": "LogAppendTime"}
    riverlog_broker.create_topic(topic := f"stamped-{uuid4().hex}", config=config)
    with RawClient(riverlog_broker) as client:
        reply = client.produce(topic)
        assert reply.log_append_time_ms > 1_700_000_000_000
        records = bytes(client.fetch(topic, 0).records)  # type: ignore[arg-type]
        assert struct.unpack_from(">q", records, 35)[0] == reply.log_append_time_ms


def test_five_pipelined_produces_are_answered_in_order(riverlog_broker: Broker, riverlog_topic: str) -> None:
    with RawClient(riverlog_broker) as client:
        for sequence in range(5):
            batch = one_record(producer_id=815, producer_epoch=0, base_sequence=sequence)
            client.send(ApiKey.PRODUCE, 9, produce_request(riverlog_topic, batch))
        answers = [client.receive_with_id(ApiKey.PRODUCE, 9) for _ in range(5)]
        assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3, 4, 5]
        offsets = [reply.responses[0].partition_responses[0].base_offset for _, reply in answers]
        assert offsets == [0, 1, 2, 3, 4]
