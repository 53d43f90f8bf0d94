"""The checks that need every record: keys, timestamps, offsets, form.

Used by `validate` where a topic's rules ask for it. The compiled decoder reads the records; only when it
refuses them does the pure one look for the reason.
"""

from collections.abc import Iterator
from typing import NamedTuple

from riverlog.model.errors import ErrorCode
from riverlog.records.aiokafka_codec import NativeDecodeError
from riverlog.records.batch import CorruptBatch
from riverlog.records.record import PlainBatch
from riverlog.records.record_area import decode_area
from riverlog.records.rules import NO_TIMESTAMP_MS, BatchRules, Rejected, TimestampType


class RecordFacts(NamedTuple):
    """What the checks need to know of one record."""

    offset: int
    timestamp_ms: int
    has_key: bool


def check_records(plain: PlainBatch, rules: BatchRules, now_ms: int) -> int | Rejected:
    """The greatest timestamp of a good batch, or what is wrong with it."""
    try:
        try:
            return _judge(plain, _native_facts(plain), rules, now_ms)
        except NativeDecodeError:
            return _judge(plain, _pure_facts(plain), rules, now_ms)
    except CorruptBatch as error:
        return Rejected(ErrorCode.INVALID_RECORD, str(error))


def _native_facts(plain: PlainBatch) -> Iterator[RecordFacts]:
    for record in plain.native_records():
        timestamp_ms = NO_TIMESTAMP_MS if record.timestamp is None else record.timestamp
        yield RecordFacts(record.offset, timestamp_ms, record.key is not None)


def _pure_facts(plain: PlainBatch) -> Iterator[RecordFacts]:
    for record in decode_area(plain.area, plain.header):
        yield RecordFacts(record.offset, record.timestamp_ms, record.key is not None)


def _judge(plain: PlainBatch, facts: Iterator[RecordFacts], rules: BatchRules, now_ms: int) -> int | Rejected:
    create_time = rules.timestamp_type is TimestampType.CREATE
    newest_ms = NO_TIMESTAMP_MS
    keyless: list[tuple[int, str]] = []
    mistimed: list[tuple[int, str]] = []
    for index, record in enumerate(facts):
        if record.offset != plain.header.base_offset + index:
            raise CorruptBatch(f"record {index} has the offset {record.offset}")
        if rules.compacted and not record.has_key:
            keyless.append((index, "a record of a compacted topic needs a key"))
        elif create_time and (fault := rules.timestamp_fault(record.timestamp_ms, now_ms)):
            mistimed.append((index, fault))
        newest_ms = max(newest_ms, record.timestamp_ms)
    if keyless:
        return Rejected(
            ErrorCode.INVALID_RECORD, "records without a key on a compacted topic", tuple(keyless)
        )
    if mistimed:
        return Rejected(ErrorCode.INVALID_TIMESTAMP, mistimed[0][1], tuple(mistimed))
    return newest_ms
