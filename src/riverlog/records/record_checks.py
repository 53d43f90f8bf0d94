"""The checks that need every record: form, keys, timestamps, offsets.

Used by `validate` where a topic's rules ask for it. The compiled decoder reads the records; only when it
finds something unusual does the pure one look for the reason, or find that there is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from riverlog.model.errors import ErrorCode
from riverlog.records.aiokafka_codec import NativeDecodeError
from riverlog.records.batch import CorruptBatch
from riverlog.records.record import PlainBatch
from riverlog.records.record_area import decode_area
from riverlog.records.rules import NO_TIMESTAMP_MS, BatchRules, Rejected, TimestampType

_Facts = tuple[int, int, bool]


@dataclass(frozen=True, slots=True)
class Checked:
    """Good records: their greatest timestamp, and whether their offsets count from 0 without a gap."""

    newest_ms: int
    offsets_in_order: bool


def check_records(plain: PlainBatch, rules: BatchRules, now_ms: int) -> Checked | Rejected:
    """What the records of a batch have to say, or what is wrong with them."""
    try:
        checked = _judge(plain, _native_facts(plain), rules, now_ms)
        if isinstance(checked, Checked) and checked.offsets_in_order:
            return checked
    except NativeDecodeError:
        pass
    # Anything unusual is read again: the compiled decoder misreads a record whose attributes are above 127.
    try:
        return _judge(plain, _pure_facts(plain), rules, now_ms)
    except CorruptBatch as error:
        return Rejected(ErrorCode.INVALID_RECORD, str(error))


def _native_facts(plain: PlainBatch) -> Iterator[_Facts]:
    for record in plain.native_records():
        timestamp_ms = record.timestamp
        yield record.offset, NO_TIMESTAMP_MS if timestamp_ms is None else timestamp_ms, record.key is not None


def _pure_facts(plain: PlainBatch) -> Iterator[_Facts]:
    for record in decode_area(plain.area, plain.header):
        yield record.offset, record.timestamp_ms, record.key is not None


def _judge(plain: PlainBatch, facts: Iterator[_Facts], rules: BatchRules, now_ms: int) -> Checked | Rejected:
    """Kafka reports one fault for each bad record, and calls them all by the timestamp's if there is one."""
    create_time = rules.timestamp_type is TimestampType.CREATE
    type_is_wrong = plain.header.is_log_append_time and not create_time
    newest_ms = NO_TIMESTAMP_MS
    in_order = True
    error = ErrorCode.INVALID_RECORD
    faults: list[tuple[int, str]] = []
    for index, (offset, timestamp_ms, has_key) in enumerate(facts):
        in_order = in_order and offset == index
        newest_ms = max(newest_ms, timestamp_ms)
        if rules.compacted and not has_key:
            faults.append((index, "a record of a compacted topic needs a key"))
        elif type_is_wrong:
            error = ErrorCode.INVALID_TIMESTAMP
            faults.append((index, "only a broker may mark a batch as log-append-time"))
        elif create_time and (fault := rules.timestamp_fault(timestamp_ms, now_ms)):
            error = ErrorCode.INVALID_TIMESTAMP
            faults.append((index, fault))
    if faults:
        return Rejected(error, f"{len(faults)} records are refused: {faults[0][1]}", tuple(faults))
    return Checked(newest_ms, in_order)
