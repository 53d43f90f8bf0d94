"""The checks that need every record: form, keys, timestamps, offsets.

Used by `validate` where a topic's rules ask for it. A glance with the compiled decoder settles the usual
case. Anything unusual is read again by the pure decoder, which finds the reason, or that there is none: the
compiled one refuses header keys that are not UTF-8 and misreads records whose attributes are above 127.
"""

from typing import NamedTuple

from riverlog.model.config.log_config import TimestampType
from riverlog.model.errors import ErrorCode
from riverlog.records.aiokafka_codec import NativeDecodeError
from riverlog.records.batch import CorruptBatch
from riverlog.records.record import PlainBatch
from riverlog.records.record_area import decode_area
from riverlog.records.rules import NO_TIMESTAMP_MS, BatchRules, Rejected


class Checked(NamedTuple):
    """Good records: their greatest timestamp, and whether their offsets count from 0 without a gap."""

    newest_ms: int
    offsets_in_order: bool


def check_records(plain: PlainBatch, rules: BatchRules, now_ms: int) -> Checked | Rejected:
    """What the records of a batch have to say, or what is wrong with them."""
    return _glance(plain, rules, now_ms) or _scrutinise(plain, rules, now_ms)


def _glance(plain: PlainBatch, rules: BatchRules, now_ms: int) -> Checked | None:
    """The quick way to know that all is well; None if anything is unusual."""
    if plain.header.is_log_append_time:
        return None
    needs_key = rules.compacted
    oldest_ms = newest_ms = plain.header.base_timestamp_ms
    index = 0
    try:
        for record in plain.native_records():
            timestamp_ms = record.timestamp
            if timestamp_ms is None or record.offset != index or (needs_key and record.key is None):
                return None
            if timestamp_ms > newest_ms:
                newest_ms = timestamp_ms
            elif timestamp_ms < oldest_ms:
                oldest_ms = timestamp_ms
            index += 1
    except NativeDecodeError:
        return None
    if rules.timestamp_type is TimestampType.CREATE_TIME and (
        rules.timestamp_fault(oldest_ms, now_ms) or rules.timestamp_fault(newest_ms, now_ms)
    ):
        return None
    return Checked(newest_ms, offsets_in_order=True)


def _scrutinise(plain: PlainBatch, rules: BatchRules, now_ms: int) -> Checked | Rejected:
    """Every record, every fault. Kafka names one fault for each bad record, and all by a bad timestamp."""
    create_time = rules.timestamp_type is TimestampType.CREATE_TIME
    type_is_wrong = plain.header.is_log_append_time and not create_time
    newest_ms = NO_TIMESTAMP_MS
    in_order = True
    error = ErrorCode.INVALID_RECORD
    faults: list[tuple[int, str]] = []
    try:
        for index, record in enumerate(decode_area(plain.area, plain.header)):
            in_order = in_order and record.offset == index
            newest_ms = max(newest_ms, record.timestamp_ms)
            if rules.compacted and record.key is None:
                faults.append((index, "a record of a compacted topic needs a key"))
            elif type_is_wrong:
                error = ErrorCode.INVALID_TIMESTAMP
                faults.append((index, "only a broker may mark a batch as log-append-time"))
            elif create_time and (fault := rules.timestamp_fault(record.timestamp_ms, now_ms)):
                error = ErrorCode.INVALID_TIMESTAMP
                faults.append((index, fault))
    except CorruptBatch as corrupt:
        return Rejected(ErrorCode.INVALID_RECORD, str(corrupt))
    if faults:
        return Rejected(error, f"{len(faults)} records are refused: {faults[0][1]}", tuple(faults))
    return Checked(newest_ms, in_order)
