"""Whatever the bytes, decoding gives a message or `MalformedMessage`, and takes little memory."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.wire.by_hand.fetch_request import decode_fetch
from riverlog.wire.by_hand.produce_request import decode_produce
from riverlog.wire.codec import MalformedMessage, decode, encode
from riverlog.wire.framing import decode_request_header
from riverlog.wire.messages.create_topics import CreateTopicsRequest
from riverlog.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from riverlog.wire.messages.fetch import FetchRequest
from riverlog.wire.messages.list_offsets import ListOffsetsRequest
from riverlog.wire.messages.metadata import MetadataRequest
from riverlog.wire.messages.produce import ProduceRequest
from riverlog.wire.primitives import read_long_varint, varint
from riverlog.wire.schema import Message
from tests.wire.message_values import message_classes, random_message, versions_of

CLASSES = message_classes()
each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
HUGE = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xff\xff",
    b"\x7f\xff",
    b"\xfe\xff\x7f",
)
MEMORY_LIMIT_BYTES = 300_000


def decode_or_malformed(cls: type[Message], version: int, data: bytes | memoryview) -> bool:
    """Whether the bytes are a message. Any exception but the one goes through and fails the test."""
    try:
        _, end = decode(cls, version, data)
    except MalformedMessage:
        return False
    assert 0 <= end <= len(data)
    return True


def compile_reader_of(cls: type[Message], version: int) -> None:
    """Compile the reader beforehand: its own memory is not what is measured."""
    decode_or_malformed(cls, version, b"")


@contextmanager
def bounded_memory(limit_bytes: int = MEMORY_LIMIT_BYTES) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit_bytes


@each_class
def test_every_truncation_is_malformed(cls: type[Message]) -> None:
    random = Random(1)
    for version in versions_of(cls):
        data = encode(random_message(cls, version, random), version)
        ends = range(len(data)) if len(data) < 200 else random.sample(range(len(data)), 200)
        assert not any(decode_or_malformed(cls, version, data[:end]) for end in ends), version


@each_class
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_changed_bytes_are_a_message_or_malformed(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        data = bytearray(encode(random_message(cls, version, random), version))
        for _ in range(20 if data else 0):
            data[random.randrange(len(data))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            decode_or_malformed(cls, version, bytes(data))


@each_class
def test_random_bytes_are_a_message_or_malformed(cls: type[Message]) -> None:
    random = Random(2)
    for version in versions_of(cls):
        for _ in range(10):
            decode_or_malformed(cls, version, memoryview(random.randbytes(random.randrange(100))))


@each_class
def test_a_huge_length_anywhere_takes_no_memory(cls: type[Message]) -> None:
    random = Random(3)
    version = cls.VERSIONS[1]
    data = encode(random_message(cls, version, random), version)[:2_000]
    compile_reader_of(cls, version)
    positions = random.sample(range(len(data) + 1), min(len(data) + 1, 60))
    with bounded_memory():
        for position in positions:
            for huge in HUGE:
                decode_or_malformed(cls, version, data[:position] + huge + data[position + len(huge) :])


@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_an_array_count_beyond_the_bytes_left_is_refused(version: int) -> None:
    flexible = version >= 9
    compile_reader_of(MetadataRequest, version)
    for count in (3, 1_000, 2**31 - 2):
        head = varint(count + 1) if flexible else count.to_bytes(4)
        with bounded_memory(), pytest.raises(MalformedMessage):
            decode(MetadataRequest, version, head + bytes(2))


def test_a_count_is_held_against_the_least_size_of_its_elements() -> None:
    elements = 1_000
    least = 2 + 4 + 2 + 4 + 4  # name, partitions, replicas, two arrays: what CreateTopics v2 needs per topic
    compile_reader_of(CreateTopicsRequest, 2)
    data = elements.to_bytes(4) + bytes(elements * least - 1)
    with bounded_memory(50_000), pytest.raises(MalformedMessage):
        decode(CreateTopicsRequest, 2, data)


def test_hostile_counts_in_requests_of_the_data_path_take_no_memory() -> None:
    for cls in (ProduceRequest, FetchRequest, ListOffsetsRequest):
        for version in versions_of(cls):
            compile_reader_of(cls, version)
    for count in (10_000_000, 2**31 - 1):
        classic = b"\xff\xff" + bytes(6) + count.to_bytes(4) + bytes(8)
        flexible = b"\0" + bytes(6) + varint(count) + bytes(8)
        with bounded_memory():
            for version, data in ((3, classic), (13, flexible)):
                with pytest.raises(MalformedMessage):
                    decode_produce(memoryview(data), version)
            for version, head in ((4, 17), (11, 25), (12, 25), (18, 21)):
                number = varint(count) if version >= 12 else count.to_bytes(4)
                with pytest.raises(MalformedMessage):
                    decode_fetch(memoryview(bytes(head) + number + bytes(8)), version)
            for version, head in ((1, 4), (5, 5), (6, 5), (11, 5)):
                number = varint(count) if version >= 6 else count.to_bytes(4)
                with pytest.raises(MalformedMessage):
                    decode(ListOffsetsRequest, version, bytes(head) + number + bytes(8))


def test_many_unknown_tags_are_skipped_without_memory() -> None:
    tags = varint(1_000) + b"\x20\x00" * 1_000
    data = encode(MetadataRequest(), 13)[:-1] + tags
    compile_reader_of(MetadataRequest, 13)
    with bounded_memory(20_000):
        assert decode(MetadataRequest, 13, data) == (MetadataRequest(), len(data))


@pytest.mark.parametrize("count", [b"\x02", b"\x7f", b"\xff\xff\xff\xff\x07"])
def test_more_tagged_fields_than_bytes_left_are_malformed(count: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 13, encode(MetadataRequest(), 13)[:-1] + count + b"\x09\x00")


@pytest.mark.parametrize(
    "raw", [b"\x80\x00", b"\xff\x00", b"\x80\x80\x00", b"\xff\xff\xff\xff\x08", b"\xff\xff\xff\xff\xff\x01"]
)
def test_a_padded_or_oversized_varint_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_long_varint(raw, 0)


@given(st.integers(0, 2**31 - 1))
def test_varints_round_trip(value: int) -> None:
    raw = varint(value)
    assert read_long_varint(b"." + raw, 1) == (value, 1 + len(raw))


def test_null_is_refused_where_a_field_may_not_be_null() -> None:
    null_name_classic = (1).to_bytes(4) + b"\xff\xff"
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 1, null_name_classic + bytes(8))
    null_array_classic = b"\xff\xff\xff\xff"
    assert decode(MetadataRequest, 1, null_array_classic)[0].topics is None
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 0, null_array_classic)
    with pytest.raises(MalformedMessage):  # the topics of DescribeTopicPartitions are a compact array
        decode(DescribeTopicPartitionsRequest, 0, b"\0" + bytes(8))


def test_a_structure_is_null_behind_a_negative_byte() -> None:
    plain = encode(DescribeTopicPartitionsRequest(), 0)
    assert plain[-2:] == b"\xff\0"
    for marker in (b"\x80", b"\xfe"):
        assert decode(DescribeTopicPartitionsRequest, 0, plain[:-2] + marker + b"\0")[0].cursor is None


def test_text_that_is_not_utf8_is_malformed_but_for_a_client_id() -> None:
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 1, (1).to_bytes(4) + b"\0\x02\xff\xfe")
    header, _ = decode_request_header(bytes(8) + b"\0\x01\xff")
    assert header.client_id == "\ufffd"
    with pytest.raises(MalformedMessage):
        decode_produce(memoryview(b"\xff\xff" + bytes(6) + b"\0\0\0\1\0\1\xff" + bytes(4)), 3)


def test_bytes_after_a_message_are_the_callers_business() -> None:
    data = encode(ProduceRequest(), 3)
    assert decode(ProduceRequest, 3, data + b"more") == (ProduceRequest(), len(data))
