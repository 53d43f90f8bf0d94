"""Building and reading batches, against each other and against batches of other implementations."""

from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.record.default_records import (  # type: ignore[import-untyped]
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import (  # type: ignore[import-untyped]
    DefaultRecordBatch as KafkaPythonBatch,
)

from riverlog.records.batch import CorruptBatch, crc_is_valid, read_header
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.record import Record, records_of
from riverlog.records.record_area import decode_area, encode_record
from tests.records.produced_cases import body, record, with_area, zigzag

TIMESTAMPS = st.integers(-1, 1 << 48)
MAYBE_BYTES = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=20), MAYBE_BYTES), max_size=4).map(tuple)
RECORDS = st.lists(st.tuples(TIMESTAMPS, MAYBE_BYTES, MAYBE_BYTES, HEADERS), min_size=1, max_size=30)
NewRecords = list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]


def expected(records: NewRecords, base_offset: int = 0) -> list[Record]:
    return [Record(base_offset + index, *fields) for index, fields in enumerate(records)]


@given(records=RECORDS, codec=st.sampled_from(Codec), base_offset=st.integers(0, 1 << 50))
def test_built_records_come_back(records: NewRecords, codec: Codec, base_offset: int) -> None:
    data = build_batch(records, codec=codec, base_offset=base_offset)
    assert crc_is_valid(data, 0, read_header(data))
    assert list(records_of(data)) == expected(records, base_offset)


@given(records=RECORDS)
def test_the_pure_decoder_and_encoder_agree_with_the_compiled_ones(records: NewRecords) -> None:
    data = build_batch(records)
    area = memoryview(data)[61:]
    assert list(decode_area(area, read_header(data))) == list(records_of(data))
    slow = b"".join(
        encode_record(index, fields[0] - records[0][0], Record(index, *fields))
        for index, fields in enumerate(records)
    )
    assert slow == area


@given(records=RECORDS, codec=st.sampled_from(Codec))
def test_batches_that_aiokafka_builds_are_read(records: NewRecords, codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(2, int(codec), 1, 9, 1, 5, 1 << 40)
    for index, (timestamp_ms, key, value, headers) in enumerate(records):
        builder.append(index, max(timestamp_ms, 0), key, value, list(headers))
    data = bytes(builder.build())
    at_least_0 = [(max(at, 0), *rest) for at, *rest in records]
    assert list(records_of(data)) == expected(at_least_0)  # type: ignore[arg-type]
    assert data == build_batch(at_least_0, codec=codec, **READ_BY_AIOKAFKA) or codec is not Codec.NONE  # type: ignore[arg-type]


READ_BY_AIOKAFKA: dict[str, Any] = {
    "producer_id": 9,
    "producer_epoch": 1,
    "base_sequence": 5,
    "transactional": True,
}


@pytest.mark.parametrize("batch_class", [DefaultRecordBatch, KafkaPythonBatch])
@pytest.mark.parametrize("codec", list(Codec))
def test_other_clients_read_what_we_build(batch_class: type[Any], codec: Codec) -> None:
    records: NewRecords = [
        (5, b"k", b"v" * 1000, (("h", b"1"), ("n", None))),
        (6, None, None, ()),
        (4, b"", b"", ()),
    ]
    batch = batch_class(build_batch(records, codec=codec, base_offset=10))
    assert batch.validate_crc()
    read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert read == expected(records, 10)


def test_a_header_key_that_is_not_utf8_survives_reading_and_building() -> None:
    data = with_area(
        1000, record(body()) + record(body(offset=b"\2", headers=b"\2\4\xff\xfe\2x")), 2, Codec.LZ4
    )
    records = list(records_of(data))
    assert records[1].headers == (("\udcff\udcfe", b"x"),)
    assert list(records_of(build_batch([fields[1:] for fields in records]))) == records


def test_a_batch_without_records_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


def areas_that_lie() -> Sequence[tuple[str, bytes]]:
    return (
        ("ends in a number", record(body())[:-1] + b"\x80"),
        ("huge key", record(body(key=zigzag((1 << 62) - 1)))),
        ("key at the edge of what a pointer holds", record(body(key=zigzag((1 << 63) - 1)))),
        ("many headers", record(body(headers=zigzag((1 << 62) - 1)))),
        ("header at the very end", record(body(headers=b"\x04\x02h"))),
        ("record longer than the batch", zigzag(1 << 40) + body()),
        ("negative record", zigzag(-7) + body()),
        ("only continuation bits", b"\xff" * 40),
        ("empty record", b"\0"),
        ("nothing", b""),
    )


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(("name", "area"), areas_that_lie())
def test_records_that_lie_about_their_size_are_corruption(name: str, area: bytes, codec: Codec) -> None:
    with pytest.raises(CorruptBatch):
        list(records_of(with_area(1000, area, 1, codec)))


def test_the_bound_on_decompression_holds_for_reading_records() -> None:
    data = build_batch([(0, None, bytes(1000), ())], codec=Codec.ZSTD)
    assert len(list(records_of(data, limit_bytes=1100))) == 1
    with pytest.raises(CorruptBatch, match="more than 900 bytes"):
        list(records_of(data, limit_bytes=900))


def test_a_batch_that_is_not_all_there_is_corruption() -> None:
    data = build_batch([(0, None, b"v", ())])
    for length in range(len(data)):
        with pytest.raises(CorruptBatch):
            list(records_of(data[:length]))
