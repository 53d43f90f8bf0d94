"""The hand-written codecs give the messages and the bytes that kio and the tables give, in every version."""

import struct
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.disk import FileSlice
from riverlog.wire.apis import APIS, TOPIC_ID_VERSION_MIN, ApiKey
from riverlog.wire.by_hand.fetch_request import SingleFetch, decode_fetch
from riverlog.wire.by_hand.fetch_response import encode_single_fetch
from riverlog.wire.by_hand.produce_request import SingleBatch, decode_produce, wants_no_reply
from riverlog.wire.by_hand.produce_response import encode_single_produce
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.framing import encode_response
from riverlog.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from riverlog.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from riverlog.wire.schema import Message
from tests.wire.kio_bridge import kio_class, kio_encode, to_kio
from tests.wire.message_values import TEXTS, random_message, slice_of, versions_of

DECODERS: dict[type[Message], Callable[..., Any]] = {
    ProduceRequest: decode_produce,
    FetchRequest: decode_fetch,
}
SINGLE_VERSIONS: dict[type[Message], tuple[int, ...]] = {
    ProduceRequest: (*range(8, versions_of(ProduceRequest).stop),),
    FetchRequest: (11, *range(15, versions_of(FetchRequest).stop)),
}
seeds = st.integers(0, 2**32)
each_request = pytest.mark.parametrize("cls", DECODERS, ids=lambda cls: cls.__name__)


def by_hand(cls: type[Message], data: memoryview, version: int, start: int = 0) -> Message:
    """As the broker decodes it, and then in the form that the tables give."""
    request = DECODERS[cls](data, version, start)
    return request.as_request() if isinstance(request, SingleBatch | SingleFetch) else request


def by_tables(cls: type[Message], data: memoryview, version: int, start: int = 0) -> Message:
    return decode(cls, version, data, start)[0]


def outcome(read: Callable[..., Message], *arguments: Any) -> Message | str:
    try:
        return read(*arguments)
    except MalformedMessage:
        return "malformed"


def number(random: Random, bits: int) -> int:
    return random.choice((0, -1, random.getrandbits(bits - 1), -random.getrandbits(bits - 1)))


def single_request(cls: type[Message], version: int, random: Random) -> Any:
    """A request of the shape that has a short form, of any values."""
    is_by_id = version >= TOPIC_ID_VERSION_MIN
    name = "" if is_by_id else random.choice(TEXTS[:-3])  # A longer one is left to the tables.
    topic_id = UUID(int=random.getrandbits(128)) if is_by_id and random.random() < 0.9 else None
    if cls is ProduceRequest:
        records = random.randbytes(random.choice((0, 61, 126, 127, 9_000, 16_382, 16_383, 20_000)))
        data = PartitionProduceData(index=number(random, 32), records=records)
        produced = TopicProduceData(name=name, topic_id=topic_id, partition_data=[data])
        return ProduceRequest(acks=number(random, 16), timeout_ms=number(random, 32), topic_data=[produced])
    wanted = FetchPartition(
        partition=number(random, 32),
        current_leader_epoch=number(random, 32),
        fetch_offset=number(random, 64),
        last_fetched_epoch=number(random, 32) if version >= 12 else -1,
        log_start_offset=number(random, 64),
        partition_max_bytes=number(random, 32),
    )
    return FetchRequest(
        replica_id=number(random, 32) if version < 15 else -1,
        max_wait_ms=number(random, 32),
        min_bytes=number(random, 32),
        max_bytes=number(random, 32),
        isolation_level=number(random, 8),
        session_id=number(random, 32),
        session_epoch=number(random, 32),
        topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted])],
    )


@each_request
@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_requests_are_read_from_kios_bytes(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        data = kio_encode(to_kio(message, kio_class(cls, version)))
        assert by_hand(cls, memoryview(b"header" + data), version, 6) == message, version


@each_request
@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_a_request_for_one_partition_has_the_short_form_and_says_the_same(
    cls: type[Message], seed: int
) -> None:
    random = Random(seed)
    for version in SINGLE_VERSIONS[cls]:
        message = single_request(cls, version, random)
        data = kio_encode(to_kio(message, kio_class(cls, version)))
        view = memoryview(b"header" + data + b"more")
        single = DECODERS[cls](view, version, 6)
        assert isinstance(single, SingleBatch | SingleFetch), version
        assert single.as_request() == by_tables(cls, view, version, 6) == message, version


@each_request
@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_a_damaged_request_for_one_partition_has_the_same_outcome_as_by_the_tables(
    cls: type[Message], seed: int
) -> None:
    random = Random(seed)
    for version in SINGLE_VERSIONS[cls]:
        data = bytearray(encode(single_request(cls, version, random), version))
        for _ in range(4):
            end = min(len(data), 100)
            at = random.randrange(end) if random.random() < 0.7 else len(data) - random.randint(1, 3)
            data[at] = random.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
            view = memoryview(bytes(data))
            if random.random() < 0.1:
                view = view[: random.randrange(len(view))]
            assert outcome(by_hand, cls, view, version) == outcome(by_tables, cls, view, version), version


@each_request
@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_any_damaged_request_has_the_same_outcome_as_by_the_tables(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        data = bytearray(encode(random_message(cls, version, random), version))
        for _ in range(10):
            position = random.randrange(len(data))
            data[position] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
            if random.random() < 0.2:
                del data[random.randrange(len(data) // 2 + 1) :]
                data += random.randbytes(5)
            view = memoryview(bytes(data))
            assert outcome(by_hand, cls, view, version) == outcome(by_tables, cls, view, version), version


@each_request
def test_every_truncation_of_a_request_is_malformed(cls: type[Message]) -> None:
    random = Random(11)
    for version in versions_of(cls):
        messages = [random_message(cls, version, random)]
        if version in SINGLE_VERSIONS[cls]:
            messages.append(single_request(cls, version, random))
        for message in messages:
            data = memoryview(encode(message, version))
            for end in range(min(len(data), 300)):
                with pytest.raises(MalformedMessage):
                    by_hand(cls, data[:end], version)


@each_request
@pytest.mark.parametrize("at", ["partition", "topic", "request"])
def test_tagged_fields_behind_one_partition_are_left_to_the_tables(cls: type[Message], at: str) -> None:
    version = SINGLE_VERSIONS[cls][-1]
    plain = encode(single_request(cls, version, Random(3)), version)
    places = {ProduceRequest: (3, 2, 1), FetchRequest: (5, 4, 1)}
    start = len(plain) - places[cls][("partition", "topic", "request").index(at)]
    assert plain[start] == 0
    data = memoryview(plain[:start] + b"\x01\x63\x02ab" + plain[start + 1 :])
    assert isinstance(DECODERS[cls](data, version), cls)
    assert by_hand(cls, data, version) == by_hand(cls, memoryview(plain), version)


@pytest.mark.parametrize("version", SINGLE_VERSIONS[FetchRequest])
def test_a_fetch_that_forgets_topics_or_names_a_rack_is_left_to_the_tables(version: int) -> None:
    request = single_request(FetchRequest, version, Random(4))
    request.rack_id = "r"
    data = memoryview(encode(request, version))
    assert decode_fetch(data, version) == request
    request.rack_id = ""
    request.forgotten_topics_data = [random_message(type(request).FIELDS[8].struct, version, Random(5))]
    data = memoryview(encode(request, version))
    assert decode_fetch(data, version) == request


@pytest.mark.parametrize("version", SINGLE_VERSIONS[ProduceRequest])
def test_a_batch_in_a_transaction_is_left_to_the_tables(version: int) -> None:
    request = single_request(ProduceRequest, version, Random(6))
    request.transactional_id = "t"
    assert decode_produce(memoryview(encode(request, version)), version) == request


@pytest.mark.parametrize("version", range(3, APIS[ApiKey.PRODUCE].max_version + 1))
def test_it_is_seen_at_sight_whether_a_produce_request_wants_a_reply(version: int) -> None:
    for transactional_id in (None, "", "t", "t" * 126, "t" * 127, "t" * 20_000):
        for acks in (-1, 0, 1):
            body = encode(ProduceRequest(transactional_id=transactional_id, acks=acks), version)
            data = memoryview(b"head" + bytes(body))
            assert wants_no_reply(data, version, 4) is (acks == 0)
    for damaged in (b"", b"\xff", b"\xff\xff", b"\x7f\xff\0\0", b"\x80\x80\x80\x80\x80\x80\0\0"):
        assert not wants_no_reply(memoryview(damaged), version, 0)


@pytest.mark.parametrize("version", versions_of(ProduceRequest))
def test_records_of_a_produce_request_are_views_of_the_receive_buffer(version: int) -> None:
    data = PartitionProduceData(records=b"some records")
    request = ProduceRequest(topic_data=[TopicProduceData(partition_data=[data])])
    buffer = bytearray(encode(request, version))
    read = by_hand(ProduceRequest, memoryview(buffer), version)
    assert isinstance(read, ProduceRequest)
    records = read.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    position = buffer.index(b"some records")
    buffer[position : position + 4] = b"same"
    assert bytes(records) == b"same records"


def kio_frame(key: ApiKey, version: int, message: Message) -> bytes:
    body = kio_encode(to_kio(message, kio_class(type(message), version)))
    tags = b"\0" * APIS[key].response_header_version(version)
    return struct.pack(">ii", len(body) + 4 + len(tags), 77) + tags + body


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_the_reply_to_one_batch_is_written_as_by_the_tables_and_by_kio(seed: int) -> None:
    random = Random(seed)
    for version in SINGLE_VERSIONS[ProduceRequest]:
        request = single_request(ProduceRequest, version, random)
        single = decode_produce(memoryview(encode(request, version)), version)
        assert isinstance(single, SingleBatch)
        row = (number(random, 32), random.randint(-1, 100), number(random, 64), -1, number(random, 64))
        partition = PartitionProduceResponse(
            index=row[0], error_code=row[1], base_offset=row[2], log_start_offset=row[4]
        )
        topic = TopicProduceResponse(
            name=single.name, topic_id=single.topic_id, partition_responses=[partition]
        )
        reply = ProduceResponse(responses=[topic])
        frame = encode_single_produce(version, 77, single, row)
        assert frame == encode_response(ApiKey.PRODUCE, version, 77, reply), version
        assert frame == kio_frame(ApiKey.PRODUCE, version, reply), version


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_the_reply_to_a_fetch_of_one_partition_is_written_as_by_the_tables_and_by_kio(seed: int) -> None:
    random = Random(seed)
    for version in SINGLE_VERSIONS[FetchRequest]:
        request = single_request(FetchRequest, version, random)
        request.isolation_level = random.choice((0, 1))
        single = decode_fetch(memoryview(encode(request, version)), version)
        assert isinstance(single, SingleFetch)
        row = (number(random, 32), number(random, 64), number(random, 64), number(random, 64))
        length, session_id = random.choice((1, 126, 127, 16_382, 16_383, 20_000)), number(random, 32)
        records = slice_of(length)
        partition = PartitionData(
            partition_index=row[0],
            high_watermark=row[1],
            last_stable_offset=row[2],
            log_start_offset=row[3],
            aborted_transactions=[] if request.isolation_level else None,
            records=b"r" * length,
        )
        topic = FetchableTopicResponse(topic=single.topic, topic_id=single.topic_id, partitions=[partition])
        reply = FetchResponse(session_id=session_id, responses=[topic])
        parts = encode_single_fetch(version, 77, single, row, records, session_id)
        assert [part for part in parts if isinstance(part, FileSlice)] == [records]
        frame = b"".join(b"r" * length if isinstance(part, FileSlice) else part for part in parts)
        assert frame == encode_response(ApiKey.FETCH, version, 77, reply), version
        assert frame == kio_frame(ApiKey.FETCH, version, reply), version


@each_request
def test_unknown_tags_are_skipped_and_the_last_of_two_equal_tags_counts(cls: type[Message]) -> None:
    version = versions_of(cls)[-1]
    plain = encode(cls(), version)
    assert plain.endswith(b"\0")
    data = plain[:-1] + b"\x02" + b"\x63\x03abc" + b"\x63\x00"
    assert by_hand(cls, memoryview(data), version) == cls()


def test_known_tags_are_taken_in_any_order_and_the_last_one_counts() -> None:
    plain = encode(FetchRequest(), 18)[:-1]
    state = bytes.fromhex("01 0d 00000007 0000000000000009 00".replace(" ", ""))
    data = memoryview(plain + b"\x03" + state + b"\x00\x03\x03ab" + b"\x00\x02\x02c")
    request = by_hand(FetchRequest, data, 18)
    assert isinstance(request, FetchRequest)
    assert request.cluster_id == "c"
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (7, 9)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_a_known_tag_of_another_length_than_it_says_is_malformed(length: int) -> None:
    data = memoryview(encode(FetchRequest(), 18)[:-1] + bytes([1, 0, length]) + b"\x03abcd")
    with pytest.raises(MalformedMessage):
        by_hand(FetchRequest, data, 18)


@pytest.mark.parametrize("version", SINGLE_VERSIONS[ProduceRequest])
def test_null_records_are_not_empty_records(version: int) -> None:
    request = single_request(ProduceRequest, version, Random(7))
    request.topic_data[0].partition_data[0].records = None
    assert decode_produce(memoryview(encode(request, version)), version) == request


@pytest.mark.parametrize(("cls", "version"), [(ProduceRequest, 8), (FetchRequest, 11)])
def test_a_name_of_negative_length_does_not_lead_back_to_bytes_already_read(
    cls: type[Message], version: int
) -> None:
    """Six bytes back is the count of topics, which would do for the count of partitions."""
    data = bytearray(encode(cls(), version))
    count_at = 8 if cls is ProduceRequest else 25
    data[count_at:] = (1).to_bytes(4) + (-6).to_bytes(2, signed=True) + bytes(100)
    with pytest.raises(MalformedMessage):
        by_hand(cls, memoryview(data), version)
