"""What validation does to the bytes it accepts, what it never does, and hostile input."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.model.config.log_config import TimestampType
from riverlog.model.errors import ErrorCode
from riverlog.records import batch as batches
from riverlog.records import validate as validation
from riverlog.records.batch import crc_is_valid, read_header
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.record import Record, records_of
from riverlog.records.validate import Accepted, BatchRules, Rejected, validate
from tests.records.produced_cases import TOPICS, edited

NOW_MS = 1_800_000_000_000
RECORDS = [
    (NOW_MS - 5, b"k", b"value" * 50, (("h", b"1"), ("n", None))),
    (NOW_MS - 1, b"", None, ()),
    (NOW_MS - 9, b"key", b"", ()),
]


def accepted(data: bytearray, rules: BatchRules) -> Accepted:
    answer = validate(data, rules, NOW_MS)
    assert isinstance(answer, Accepted), answer
    [(position, header)] = answer.batches
    assert position == 0
    assert header == read_header(answer.data)
    assert crc_is_valid(answer.data, 0, header)
    assert answer.record_count == header.record_count
    assert answer.max_timestamp_ms == header.max_timestamp_ms
    return answer


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("validate_records", [False, True])
def test_a_good_batch_is_taken_as_it_is_without_a_copy(codec: Codec, validate_records: bool) -> None:
    data = bytearray(build_batch(RECORDS, codec=codec))
    before = bytes(data)
    answer = accepted(data, BatchRules(validate_records=validate_records))
    assert answer.data.obj is data
    assert answer.data == before
    assert (answer.record_count, answer.max_timestamp_ms) == (3, NOW_MS - 1)


def test_bytes_behind_the_batch_are_cut_off() -> None:
    data = bytearray(build_batch(RECORDS) + b"rest")
    assert accepted(data, BatchRules()).data == data[:-4]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
@pytest.mark.parametrize("timestamp_type", list(TimestampType))
def test_another_compression_keeps_everything_else(
    codec: Codec, target: Codec, timestamp_type: TimestampType
) -> None:
    data = build_batch(
        RECORDS,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
        transactional=True,
    )
    rules = BatchRules(codec=target, timestamp_type=timestamp_type)
    answer = accepted(bytearray(data), rules)
    [(_, header)] = answer.batches
    assert header.codec is target
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert header.is_transactional
    assert header.record_count == 3
    appended = timestamp_type is TimestampType.LOG_APPEND_TIME
    times = [NOW_MS if appended else fields[0] for fields in RECORDS]
    assert header.is_log_append_time is appended
    assert header.max_timestamp_ms == max(times)
    expected = [Record(i, times[i], *fields[1:]) for i, fields in enumerate(RECORDS)]
    assert list(records_of(answer.data)) == expected


def test_the_level_of_compression_is_the_topics() -> None:
    words = b"".join(b"order %d of customer %d;" % (i * 7919 % 10007, i % 97) for i in range(5000))
    data = build_batch([(NOW_MS, b"k", words, ())])
    sizes = [
        len(accepted(bytearray(data), BatchRules(codec=Codec.GZIP, compression_level=level)).data)
        for level in (1, 9)
    ]
    assert sizes[1] < sizes[0] < len(data)


def test_records_out_of_order_are_renumbered_when_they_are_written_anew() -> None:
    area = b"".join((b"\x10\0\0", b"\x0a", b"\2a\2x\0", b"\x10\0\0", b"\0", b"\2b\2y\0"))
    data = edited(build_batch(RECORDS)[:61] + area, record_count=2, last_offset_delta=1)
    answer = accepted(bytearray(data), BatchRules(codec=Codec.ZSTD))
    assert [(r.offset, r.key) for r in records_of(answer.data)] == [(0, b"a"), (1, b"b")]


def test_a_lying_max_timestamp_is_corrected_once_the_records_are_read() -> None:
    data = edited(build_batch(RECORDS, codec=Codec.LZ4), max_timestamp_ms=NOW_MS - 1000)
    assert accepted(bytearray(data), BatchRules()).max_timestamp_ms == NOW_MS - 1000
    assert accepted(bytearray(data), BatchRules(validate_records=True)).max_timestamp_ms == NOW_MS - 1


def test_the_brokers_time_is_stamped_without_decompressing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "plain_batch", None)
    data = bytearray(build_batch(RECORDS, codec=Codec.ZSTD))
    answer = accepted(data, BatchRules(timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert answer.data.obj is data
    assert answer.max_timestamp_ms == NOW_MS
    assert {record.timestamp_ms for record in records_of(data)} == {NOW_MS}


def test_a_batch_that_decompresses_to_more_than_allowed_is_too_large() -> None:
    data = bytearray(build_batch([(NOW_MS, b"k", bytes(1_000_000), ())], codec=Codec.ZSTD))
    rules = BatchRules(validate_records=True, decompressed_limit_bytes=900_000)
    answer = validate(data, rules, NOW_MS)
    assert isinstance(answer, Rejected)
    assert answer.error is ErrorCode.MESSAGE_TOO_LARGE


def test_the_crc_is_computed_once() -> None:
    data = bytearray(build_batch(RECORDS))
    with patch("riverlog.records.validate.crc32c", wraps=crc32c) as counted:
        accepted_as_is = validate(data, BatchRules(), NOW_MS)
    assert isinstance(accepted_as_is, Accepted)
    assert counted.call_count == 1


MUTANTS = [
    bytearray(build_batch(RECORDS, codec=codec, producer_id=pid, producer_epoch=0, base_sequence=5))
    for codec in Codec
    for pid in (-1, 3)
]
MUTANT_RULES = [
    replace(rules, validate_records=flag, max_batch_bytes=100_000, decompressed_limit_bytes=100_000)
    for rules in TOPICS.values()
    for flag in (False, True)
]


@settings(max_examples=1000)
@given(data=st.data(), source=st.sampled_from(MUTANTS), rules=st.sampled_from(MUTANT_RULES))
def test_a_mutated_batch_is_rejected_unless_the_crc_does_not_cover_the_change(
    data: st.DataObject, source: bytearray, rules: BatchRules
) -> None:
    mutant = bytearray(source)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(mutant) - 1))
        mutant[position] = data.draw(st.integers(0, 255))
    answer = validate(bytearray(mutant), rules, NOW_MS)
    if isinstance(answer, Accepted):
        leader_epoch = slice(12, 16)
        mutant[leader_epoch] = source[leader_epoch]
        assert mutant == source


@settings(max_examples=1000)
@given(data=st.data(), source=st.sampled_from(MUTANTS), rules=st.sampled_from(MUTANT_RULES))
def test_a_mutation_under_a_right_crc_gets_an_answer_and_a_readable_batch(
    data: st.DataObject, source: bytearray, rules: BatchRules
) -> None:
    mutant = bytearray(source)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(21, len(mutant) - 1))
        mutant[position] = data.draw(st.integers(0, 255))
    batches.set_crc(mutant, 0)
    answer = validate(mutant, rules, NOW_MS)
    if isinstance(answer, Accepted) and rules.validate_records:
        [(_, header)] = answer.batches
        assert crc_is_valid(answer.data, 0, header)
        assert len(list(records_of(answer.data))) == answer.record_count


@given(junk=st.binary(max_size=200), rules=st.sampled_from(MUTANT_RULES))
def test_junk_is_always_rejected(junk: bytes, rules: BatchRules) -> None:
    assert isinstance(validate(bytearray(junk), rules, NOW_MS), Rejected)
