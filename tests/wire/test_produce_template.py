"""A request that repeats the one before it is read as the usual way reads it, or not at all."""

from random import Random
from uuid import UUID

import pytest

from riverlog.wire.apis import ApiKey
from riverlog.wire.by_hand.produce_request import SingleBatch, decode_produce
from riverlog.wire.by_hand.produce_response import encode_single_produce
from riverlog.wire.by_hand.produce_template import VERSION_MIN, ProduceTemplate
from riverlog.wire.codec import MalformedMessage
from riverlog.wire.framing import RequestHeader, decode_request_header, encode_request
from riverlog.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSIONS = range(VERSION_MIN, 14)
TOPIC_ID = UUID("6a3b1f5e-9f0c-4f6e-8a59-1d9d0b6a7c11")
Usual = tuple[int, memoryview]


def framed(
    version: int,
    records: bytes,
    *,
    correlation_id: int = 1,
    client_id: str | None = "client",
    topic: str = "orders-ü",
    partition: int = 3,
    acks: int = 1,
    transactional_id: str | None = None,
) -> bytearray:
    data = PartitionProduceData(index=partition, records=memoryview(records))
    named = TopicProduceData(
        name=topic if version < 13 else "",
        topic_id=TOPIC_ID if version >= 13 else None,
        partition_data=[data],
    )
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=[named]
    )
    header = RequestHeader(ApiKey.PRODUCE, version, correlation_id, client_id)
    return bytearray(encode_request(header, request)[4:])


def read_as_usual(frame: bytes | bytearray) -> Usual | None:
    """As the broker does; None where that is not one batch, or differs from `framed` in anything else."""
    view = memoryview(frame)
    header, start = decode_request_header(view)
    request = decode_produce(view, header.api_version, start)
    if not isinstance(request, SingleBatch):
        return None
    plain = framed(header.api_version, bytes(request.records), correlation_id=header.correlation_id)
    plain_header, plain_start = decode_request_header(memoryview(plain))
    same = (
        plain_header._replace(client_id=header.client_id) == header
        and decode_produce(memoryview(plain), header.api_version, plain_start) == request
    )
    return (header.correlation_id, request.records) if same else None


def template_of(frame: bytes | bytearray) -> ProduceTemplate:
    view = memoryview(frame)
    header, start = decode_request_header(view)
    request = decode_produce(view, header.api_version, start)
    assert isinstance(request, SingleBatch)
    return ProduceTemplate(view, header, start, request)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_id", [None, "", "client"])
@pytest.mark.parametrize("size", [0, 1, 60, 125, 126, 127, 128, 5_000, 16_381, 16_382])
def test_other_records_are_read_the_same(version: int, client_id: str | None, size: int) -> None:
    template = template_of(framed(version, b"first", client_id=client_id))
    frame = framed(version, bytes(range(256)) * 70, correlation_id=-7, client_id=client_id)
    assert template.match(memoryview(frame)) is None  # Longer than what is taken.
    frame = framed(version, b"r" * size, correlation_id=-7, client_id=client_id)
    assert template.match(memoryview(frame)) == read_as_usual(frame)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "other!"},
        {"client_id": "client2"},
        {"client_id": None},
        {"partition": 4},
        {"acks": -1},
        {"transactional_id": "t"},
    ],
)
def test_anything_else_that_differs_is_decoded_anew(version: int, changes: dict[str, object]) -> None:
    template = template_of(framed(version, b"records"))
    assert template.match(memoryview(framed(version, b"records", **changes))) is None  # type: ignore[arg-type]


def test_another_topic_or_version_is_decoded_anew() -> None:
    template = template_of(framed(12, b"records"))
    assert template.match(memoryview(framed(12, b"records", topic="orders-ö"))) is None
    assert template.match(memoryview(framed(12, b"records", topic="orders"))) is None
    assert template.match(memoryview(framed(11, b"records"))) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_mutated_bytes_are_never_read_differently(version: int) -> None:
    random = Random(version)
    first = framed(version, b"some records")
    template, read = template_of(first), 0
    for _ in range(4_000):
        frame = framed(version, random.randbytes(random.choice([0, 5, 130, 300])))
        match random.randrange(4):
            case 0:
                del frame[random.randrange(len(frame)) :]
            case 1:
                frame += random.randbytes(random.randrange(4))
            case _:
                for _ in range(random.randrange(1, 4)):
                    frame[random.randrange(len(frame))] = random.choice([0, 1, 2, 127, 128, 255])
        found = template.match(memoryview(frame))
        if found is not None:
            read += 1
            assert found == read_as_usual(frame)
    assert read > 100


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_malformed_is_left_to_the_usual_way(version: int) -> None:
    whole = framed(version, b"r" * 300)
    template = template_of(whole)
    for end in range(len(whole)):
        frame = whole[:end]
        try:
            usual = read_as_usual(frame)
        except MalformedMessage:
            usual = None
        assert template.match(memoryview(frame)) in (None, usual)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("correlation_id", "base_offset", "log_start"),
    [(0, 0, 0), (-7, 1 << 40, 3), (2**31 - 1, 2**63 - 1, 1 << 50)],
)
def test_the_reply_is_the_usual_one(
    version: int, correlation_id: int, base_offset: int, log_start: int
) -> None:
    frame = framed(version, b"records")
    _, start = decode_request_header(memoryview(frame))
    request = decode_produce(memoryview(frame), version, start)
    assert isinstance(request, SingleBatch)
    usual = encode_single_produce(version, correlation_id, request, (3, 0, base_offset, -1, log_start))
    assert template_of(frame).encode_reply(correlation_id, base_offset, log_start) == usual
