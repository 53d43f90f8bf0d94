"""Every recorded verdict of Apache Kafka on produced bytes, held against ours."""

from collections import Counter
from dataclasses import replace

import pytest

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import crc_is_valid
from riverlog.records.compression import Codec
from riverlog.records.records_field import first_batch_fault
from riverlog.records.validate import Accepted, BatchRules, Rejected, validate
from tests.records.produced_cases import TOPICS, Case, cases

NOW_MS = 1_800_000_000_000
CASES = list(cases(NOW_MS))


def verdict_of(case: Case, rules: BatchRules) -> tuple[ErrorCode, tuple[int, ...]]:
    match validate(bytearray(case.data), rules, NOW_MS):
        case Accepted():
            return ErrorCode.NONE, ()
        case Rejected(error=error, record_errors=record_errors):
            return error, tuple(index for index, _ in record_errors)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.topic}: {case.name}")
def test_with_records_validated_the_verdict_is_kafkas(case: Case) -> None:
    error, bad_records = verdict_of(case, replace(TOPICS[case.topic], validate_records=True))
    if case.strict:
        assert error in (ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        assert (error, bad_records) == (case.verdict, case.bad_records)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.topic}: {case.name}")
def test_by_default_the_verdict_is_kafkas_for_all_that_a_header_can_show(case: Case) -> None:
    error, bad_records = verdict_of(case, TOPICS[case.topic])
    if case.needs_records and error is ErrorCode.NONE is not case.verdict:
        rules = TOPICS[case.topic]
        assert not rules.compacted
        assert rules.codec in (None, Codec(case.data[22] & 7))
    elif not case.strict:
        assert (error, bad_records) == (case.verdict, case.bad_records)


def test_what_is_accepted_is_one_whole_batch_with_a_right_crc() -> None:
    for case in CASES:
        answer = validate(bytearray(case.data), TOPICS[case.topic], NOW_MS)
        if isinstance(answer, Accepted):
            [(position, header)] = answer.batches
            assert (position, header.size_bytes) == (0, len(answer.data))
            assert crc_is_valid(answer.data, position, header)


def test_the_recorded_verdicts_cover_every_kind_of_answer() -> None:
    verdicts = Counter(case.verdict for case in CASES)
    assert set(verdicts) == {
        ErrorCode.NONE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    assert sum(case.strict for case in CASES) < len(CASES) / 20


@pytest.mark.parametrize(
    ("name", "spoils_the_request"),
    [("magic 3", True), ("length 13", True), ("bad CRC", False), ("second batch of magic 3", False)],
)
def test_only_a_first_batch_that_cannot_be_cut_spoils_the_whole_request(
    name: str, spoils_the_request: bool
) -> None:
    [case] = [case for case in CASES if case.name == name]
    fault = first_batch_fault(memoryview(case.data))
    assert (fault is not None) is spoils_the_request
    if fault is not None:
        assert fault.reply_message == fault.message


def test_the_reply_has_a_message_only_where_kafka_gives_one() -> None:
    for case in CASES:
        answer = validate(bytearray(case.data), TOPICS[case.topic], NOW_MS)
        if isinstance(answer, Rejected):
            assert answer.message
            assert (answer.reply_message is not None) is bool(answer.record_errors)
