"""The hand-written codecs give the bytes and the messages that kio and the tables give, in every version."""

import struct
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.disk import FileSlice
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.framing import encode_response
from riverlog.wire.hot_fetch import decode_fetch_request, encode_fetch_response
from riverlog.wire.hot_list_offsets import decode_list_offsets_request, encode_list_offsets_response
from riverlog.wire.hot_produce import decode_produce_request, encode_produce_response
from riverlog.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from riverlog.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
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
from tests.wire.message_values import TEXTS, random_message, versions_of


def joined_fetch_response(version: int, correlation_id: int, response: FetchResponse) -> bytes:
    return b"".join(
        part
        for part in encode_fetch_response(version, correlation_id, response)
        if not isinstance(part, FileSlice)
    )


DECODERS: dict[type[Message], Callable[..., Message]] = {
    ProduceRequest: decode_produce_request,
    FetchRequest: decode_fetch_request,
    ListOffsetsRequest: decode_list_offsets_request,
}
ENCODERS: dict[type[Message], tuple[ApiKey, Callable[..., bytes]]] = {
    ProduceResponse: (ApiKey.PRODUCE, encode_produce_response),
    FetchResponse: (ApiKey.FETCH, joined_fetch_response),
    ListOffsetsResponse: (ApiKey.LIST_OFFSETS, encode_list_offsets_response),
}
seeds = st.integers(0, 2**32)
each_request = pytest.mark.parametrize("cls", DECODERS, ids=lambda cls: cls.__name__)
each_response = pytest.mark.parametrize("cls", ENCODERS, ids=lambda cls: cls.__name__)


@each_request
@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_requests_are_read_from_kios_bytes_as_the_tables_read_them(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        data = kio_encode(to_kio(message, kio_class(cls, version)))
        assert DECODERS[cls](memoryview(b"header" + data), version, 6) == message, version


@each_response
@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_responses_are_written_as_kio_writes_them(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    key, encoder = ENCODERS[cls]
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        body = kio_encode(to_kio(message, kio_class(cls, version)))
        tags = b"\0" * APIS[key].response_header_version(version)
        frame = encoder(version, 77, message)
        assert frame == struct.pack(">ii", len(body) + 4 + len(tags), 77) + tags + body, version
        assert frame == encode_response(key, version, 77, message), version


def plain_responses(random: Random) -> list[Message]:
    """The shapes that have a shorter way: one partition with nothing out of the ordinary, or none at all."""

    def number(bits: int) -> int:
        return random.choice((0, -1, random.getrandbits(bits - 1), -random.getrandbits(bits - 1)))

    name, topic_id = random.choice(TEXTS), UUID(int=random.getrandbits(128))
    taken = PartitionProduceResponse(index=number(32), error_code=number(16), base_offset=number(64))
    taken.log_append_time_ms, taken.log_start_offset = number(64), number(64)
    read = PartitionData(partition_index=number(32), error_code=number(16), high_watermark=number(64))
    read.last_stable_offset, read.log_start_offset = number(64), number(64)
    read.preferred_read_replica = number(32)
    read.records = random.choice((None, b"", b"r" * 126, b"r" * 127, b"r" * 20_000))
    read.aborted_transactions = random.choice((None, []))
    produced = TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=[taken])
    fetched = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[read])
    return [
        ProduceResponse(throttle_time_ms=number(32), responses=[produced]),
        FetchResponse(throttle_time_ms=number(32), session_id=number(32), responses=[fetched]),
        FetchResponse(throttle_time_ms=number(32), error_code=number(16), session_id=number(32)),
    ]


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_plain_responses_are_written_as_the_tables_write_them(seed: int) -> None:
    for message in plain_responses(Random(seed)):
        key, encoder = ENCODERS[type(message)]
        for version in versions_of(type(message)):
            assert encoder(version, 77, message) == encode_response(key, version, 77, message), version


def plain_requests(random: Random) -> list[Message]:
    name, topic_id = random.choice(TEXTS), UUID(int=random.getrandbits(128))
    batch = PartitionProduceData(
        index=random.getrandbits(8), records=random.randbytes(random.choice((0, 61, 127, 9_000, 20_000)))
    )
    produced = TopicProduceData(name=name, topic_id=topic_id, partition_data=[batch])
    wanted = FetchPartition(
        partition=3, current_leader_epoch=random.getrandbits(5), fetch_offset=random.getrandbits(40)
    )
    wanted.last_fetched_epoch, wanted.log_start_offset, wanted.partition_max_bytes = (
        5,
        random.getrandbits(20),
        1 << 20,
    )
    fetched = FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted])
    return [
        ProduceRequest(acks=random.choice((0, 1, -1)), timeout_ms=30_000, topic_data=[produced]),
        FetchRequest(max_wait_ms=500, session_id=random.getrandbits(31), session_epoch=2, topics=[fetched]),
    ]


@settings(max_examples=100, deadline=None)
@given(seed=seeds)
def test_plain_requests_have_the_same_outcome_as_by_the_tables_also_when_damaged(seed: int) -> None:
    random = Random(seed)
    for message in plain_requests(random):
        cls = type(message)
        for version in versions_of(cls):
            data = bytearray(encode(message, version))
            for damage in range(4):
                if damage:
                    end = min(len(data), 60)
                    position = (
                        random.randrange(end) if random.random() < 0.7 else len(data) - random.randint(1, 3)
                    )
                    data[position] = random.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
                view = memoryview(bytes(data))
                if random.random() < 0.1:
                    view = view[: random.randrange(len(view))]
                assert outcome(DECODERS[cls], view, version) == outcome(table_decode, cls, view, version), (
                    version
                )


@each_response
def test_a_response_holding_fields_of_other_versions_leaves_them_out(cls: type[Message]) -> None:
    random = Random(5)
    key, encoder = ENCODERS[cls]
    newest = versions_of(cls)[-1]
    for _ in range(20):
        message = random_message(cls, newest, random)
        for version in versions_of(cls):
            assert encoder(version, 1, message) == encode_response(key, version, 1, message)


@each_request
def test_unknown_tags_are_skipped_and_the_last_of_two_equal_tags_counts(cls: type[Message]) -> None:
    version = versions_of(cls)[-1]
    plain = encode(cls(), version)
    assert plain.endswith(b"\0")
    data = plain[:-1] + b"\x02" + b"\x63\x03abc" + b"\x63\x00"
    assert DECODERS[cls](memoryview(data), version) == cls()


def test_known_tags_are_taken_in_any_order_and_the_last_one_counts() -> None:
    plain = encode(FetchRequest(), 18)[:-1]
    state = bytes.fromhex("01 0d 00000007 0000000000000009 00".replace(" ", ""))
    data = memoryview(plain + b"\x03" + state + b"\x00\x03\x03ab" + b"\x00\x02\x02c")
    request = decode_fetch_request(data, 18)
    assert (request.cluster_id, request.replica_state.replica_id, request.replica_state.replica_epoch) == (
        "c",
        7,
        9,
    )
    assert request == decode(FetchRequest, 18, data)[0]


@pytest.mark.parametrize("length", [1, 2, 4])
def test_a_known_tag_of_another_length_than_it_says_is_malformed(length: int) -> None:
    data = memoryview(encode(FetchRequest(), 18)[:-1] + bytes([1, 0, length]) + b"\x03abcd")
    with pytest.raises(MalformedMessage):
        decode_fetch_request(data, 18)
    with pytest.raises(MalformedMessage):
        decode(FetchRequest, 18, data)


def outcome(read: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except MalformedMessage:
        return "malformed"


def table_decode(cls: type[Message], view: memoryview, version: int) -> Message:
    return decode(cls, version, view)[0]


@each_request
@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_bad_bytes_have_the_same_outcome_by_hand_as_by_the_tables(cls: type[Message], seed: int) -> None:
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
            assert outcome(DECODERS[cls], view, version) == outcome(table_decode, cls, view, version)


@each_request
def test_every_truncation_of_a_request_is_malformed(cls: type[Message]) -> None:
    random = Random(11)
    for version in versions_of(cls):
        data = memoryview(encode(random_message(cls, version, random), version))
        for end in range(len(data)):
            with pytest.raises(MalformedMessage):
                DECODERS[cls](data[:end], version)


def test_records_of_a_produce_request_are_views_of_the_receive_buffer() -> None:
    buffer = bytearray(
        bytes.fromhex("ffff ffff 00007530 00000001 0001 74 00000001 00000000 00000004".replace(" ", ""))
    )
    buffer += b"abcd"
    request = decode_produce_request(memoryview(buffer), 7)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    buffer[-1:] = b"!"
    assert bytes(records) == b"abc!"


class NoFile:
    """Stands where an open file does; a codec has no business to touch it."""

    path = "nowhere"


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_records_of_a_fetch_response_are_handed_on_as_they_are(version: int) -> None:
    in_file = FileSlice(NoFile(), 100, 5_000)  # type: ignore[arg-type]
    in_memory, view = b"m" * 200, memoryview(b"v" * 300)
    partitions = [
        PartitionData(partition_index=i, records=r)
        for i, r in enumerate((in_file, None, in_memory, b"", view))
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = encode_fetch_response(version, 9, response)
    assert [part for part in parts if part is in_file or part is in_memory or part is view] == [
        in_file,
        in_memory,
        view,
    ]
    sizes = [part.length if isinstance(part, FileSlice) else len(part) for part in parts]
    assert int.from_bytes(bytes(parts[0][:4])) == sum(sizes) - 4  # type: ignore[arg-type]
    partitions[0].records = b"f" * 5_000
    filled = [b"f" * 5_000 if isinstance(part, FileSlice) else part for part in parts]
    assert b"".join(filled) == encode_response(ApiKey.FETCH, version, 9, response)


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_no_aborted_transactions_and_none_known_are_different_bytes(version: int) -> None:
    def frame(aborted: list[Any] | None) -> bytes:
        partition = PartitionData(aborted_transactions=aborted)
        response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
        return joined_fetch_response(version, 1, response)

    assert frame(None) != frame([])


def test_a_value_out_of_range_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="FetchResponse v11"):
        encode_fetch_response(11, 1, FetchResponse(throttle_time_ms=2**31))
    with pytest.raises(ValueError, match="ProduceResponse v9"):
        encode_produce_response(9, 1, ProduceResponse(throttle_time_ms=2**31))
    with pytest.raises(ValueError, match="ListOffsetsResponse v6"):
        encode_list_offsets_response(6, 1, ListOffsetsResponse(throttle_time_ms=2**31))
