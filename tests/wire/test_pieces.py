"""What is decoded or encoded in pieces is the same as at once, and there are many of them."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.pieces import at_once, sorted_in_pieces
from riverlog.wire.apis import APIS, ApiKey
from riverlog.wire.codec import (
    MalformedMessage,
    decode,
    decode_in_pieces,
    encode,
    encode_in_pieces,
    encoded_element,
)
from riverlog.wire.dissolving import dissolve
from riverlog.wire.framing import encode_response, encode_response_in_parts, encode_response_in_pieces
from riverlog.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from riverlog.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from riverlog.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from riverlog.wire.schema import Message
from tests.wire.message_values import listed_apis, message_classes, random_message, versions_of
from tests.wire.test_response_parts import frame_of, size_of

CLASSES = message_classes()
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=3, deadline=None)
@given(seed=SEEDS)
def test_a_message_is_decoded_in_pieces_as_at_once(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        data = memoryview(b"xyz" + encode(message, version) + b"!")
        assert at_once(decode_in_pieces(cls, version, data, 3)) == decode(cls, version, data, 3), version


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@settings(max_examples=3, deadline=None)
@given(seed=SEEDS)
def test_bytes_that_are_no_message_are_refused_in_pieces_as_at_once(cls: type[Message], seed: int) -> None:
    random = Random(seed)
    for version in versions_of(cls):
        data = bytearray(encode(random_message(cls, version, random), version))
        if data:
            data[random.randrange(len(data))] = random.randrange(256)
            del data[random.randrange(len(data)) :]
        assert outcome(cls, version, bytes(data), in_pieces=True) == outcome(cls, version, bytes(data))


def outcome(cls: type[Message], version: int, data: bytes, *, in_pieces: bool = False) -> object:
    try:
        return at_once(decode_in_pieces(cls, version, data)) if in_pieces else decode(cls, version, data)
    except MalformedMessage as error:
        return str(error)


@pytest.mark.parametrize("key", listed_apis(), ids=lambda key: key.name)
@settings(max_examples=3, deadline=None)
@given(seed=SEEDS)
def test_a_response_is_encoded_in_pieces_as_at_once(key: ApiKey, seed: int) -> None:
    random = Random(seed)
    cls = APIS[key].response
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        in_pieces = at_once(encode_response_in_pieces(key, version, 77, message))
        assert in_pieces == encode_response_in_parts(key, version, 77, message), version


@pytest.mark.parametrize("partitions", [0, 1, 40, 500])
@pytest.mark.parametrize("version", [1, 5, 6, 11])
def test_elements_may_be_encoded_before(version: int, partitions: int) -> None:
    def topic(number: int) -> ListOffsetsTopicResponse:
        listed = [ListOffsetsPartitionResponse(partition_index=i, offset=i) for i in range(partitions)]
        return ListOffsetsTopicResponse(name=f"topic-{number}", partitions=listed)

    plain = ListOffsetsResponse(topics=[topic(number) for number in range(5)])
    mixed = ListOffsetsResponse(
        topics=[at_once(encoded_element(topic(n), version)) if n != 2 else topic(n) for n in range(5)]
    )
    parts = at_once(encode_response_in_pieces(ApiKey.LIST_OFFSETS, version, 7, mixed))
    assert all(size_of(part) for part in parts)
    assert frame_of(parts) == encode_response(ApiKey.LIST_OFFSETS, version, 7, plain)


def test_an_element_may_hold_others_that_were_encoded_before() -> None:
    def topic(*, is_encoded: bool) -> ListOffsetsTopicResponse:
        partitions = [ListOffsetsPartitionResponse(partition_index=i) for i in range(3)]
        if is_encoded:
            partitions = [at_once(encoded_element(each, 7)) for each in partitions]
        return ListOffsetsTopicResponse(name="t", partitions=partitions)

    assert at_once(encoded_element(topic(is_encoded=True), 7)) == encode(topic(is_encoded=False), 7)


def test_large_elements_are_not_copied() -> None:
    element = at_once(encoded_element(MetadataResponseTopic(name="t" * 5000), 9))
    out = bytearray()
    [(_, kept, size)] = at_once(encode_in_pieces(out, MetadataResponse(topics=[element]), 9))
    assert id(kept) == id(element)
    assert size > 5000
    assert len(out) < 100


def test_a_long_message_has_many_pieces() -> None:
    partitions = [ListOffsetsPartition(partition_index=i) for i in range(10_000)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=partitions)])
    data = encode(request, 7)
    assert sum(1 for _ in decode_in_pieces(ListOffsetsRequest, 7, data)) > 300
    assert sum(1 for _ in encode_in_pieces(bytearray(), request, 7)) > 300
    numbers = DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic="t", partitions=list(range(50_000)))]
    )
    data = encode(numbers, 4)
    assert sum(1 for _ in decode_in_pieces(DescribeLogDirsRequest, 4, data)) > 10
    assert at_once(decode_in_pieces(DescribeLogDirsRequest, 4, data)) == (numbers, len(data))


@given(texts=st.lists(st.text(max_size=3), max_size=50))
def test_sorting_in_pieces_is_sorting(texts: list[str]) -> None:
    many = [f"{number % 7}{text}" for number in range(60) for text in texts]
    assert list(at_once(sorted_in_pieces(many))) == sorted(many)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_message_that_is_let_go_has_nothing_left_in_its_arrays(cls: type[Message]) -> None:
    random = Random(11)
    for version in versions_of(cls):
        message = random_message(cls, version, random)
        at_once(dissolve(message))
        assert not any(getattr(message, each.name) for each in cls.FIELDS if each.array and each.struct)


def test_numbers_that_others_may_share_stay() -> None:
    shared = [1, 2, 3]
    partition = MetadataResponsePartition(replica_nodes=shared)
    at_once(dissolve(MetadataResponse(topics=[MetadataResponseTopic(partitions=[partition])])))
    assert shared == [1, 2, 3]


def test_a_long_message_is_let_go_in_many_pieces() -> None:
    partitions = [ListOffsetsPartition(partition_index=i) for i in range(10_000)]
    topics = [
        ListOffsetsTopic(name="t", partitions=partitions),
        at_once(encoded_element(ListOffsetsTopic(), 7)),
    ]
    assert sum(1 for _ in dissolve(ListOffsetsRequest(topics=topics))) > 20
    assert partitions == []
