"""Whether a produced batch may enter a log, and in which form.

Answers what Apache Kafka answers to the same bytes, as an error code and the indices of bad records; the
wording of messages is ours. A batch is checked as a whole, without decompressing it: lengths, magic, CRC,
counts, attributes, timestamps. Its records are read only where that is not enough: a compacted topic (every
record has a key), a lower bound of timestamps, another compression than the producer's, a suspicious header,
or `validate_records` (docs/adr/0004-validate-batches-whole.md). Not checked here: sequence numbers and epochs
of producers, which are the log's to judge, and which request versions may carry zstd, which the produce
handler knows.
"""

from riverlog.model.config.log_config import TimestampType
from riverlog.model.errors import ErrorCode
from riverlog.records import batch as batches
from riverlog.records.batch import (
    CODEC_MASK,
    CODECS,
    CRC_COVERS_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    ORDINARY_ATTRIBUTES,
    BatchHeader,
    HeaderFields,
    unpack_header,
)
from riverlog.records.builder import build_like
from riverlog.records.checksum import crc32c
from riverlog.records.compression import (
    Codec,
    DecompressedTooLargeError,
    DecompressionError,
    compress,
    has_linked_lz4_blocks,
)
from riverlog.records.record import PlainBatch, plain_batch
from riverlog.records.record_area import decode_area
from riverlog.records.record_checks import Checked, check_records
from riverlog.records.records_field import find_batch
from riverlog.records.rules import Accepted, BatchRules, Rejected

__all__ = ["Accepted", "BatchRules", "Rejected", "trust", "validate"]


def validate(data: memoryview | bytearray, rules: BatchRules, now_ms: int) -> Accepted | Rejected:
    """Judge the records field of one partition in a produce request.

    `data` must be writable: a log-append-time stamp and a corrected max timestamp are put in place.
    """
    view = memoryview(data)
    if (ordinary := ordinary_fields(view, rules, now_ms)) is not None:
        return _alone(view, batches.header_of(ordinary))
    found = find_batch(view)
    if isinstance(found, Rejected):
        return found
    view = found
    header = _checked_header(view, rules)
    if isinstance(header, Rejected):
        return header
    if fault := _header_fault(header):
        return fault
    target = header.codec if rules.codec is None else rules.codec
    if _records_matter(header, target, rules, now_ms):
        return _judge_records(view, header, target, rules, now_ms)
    return _accepted(view, header, rules, now_ms, header.max_timestamp_ms)


def ordinary_fields(view: memoryview, rules: BatchRules, now_ms: int) -> HeaderFields | None:
    """The short way for one whole batch in which nothing is unusual; None where the long way must judge."""
    size = len(view)
    if not rules.asks_for_header_only or not HEADER_BYTES <= size <= rules.max_batch_bytes:
        return None
    fields = unpack_header(view)
    (
        base_offset, length, _, magic, crc, attributes, last_offset_delta, base_timestamp_ms,
        max_timestamp_ms, producer_id, _, base_sequence, count,
    ) = fields  # fmt: skip
    newest_ms = now_ms + rules.timestamp_after_max_ms
    if (
        base_offset
        or length + LOG_OVERHEAD_BYTES != size
        or magic != MAGIC
        or attributes not in ORDINARY_ATTRIBUTES
        or count != last_offset_delta + 1
        or count <= 0
        or base_sequence < 0 <= producer_id
        or max_timestamp_ms > newest_ms
        or base_timestamp_ms > newest_ms
        or crc32c(view[CRC_COVERS_FROM:]) != crc
    ):
        return None
    return fields


def trust(data: memoryview, rules: BatchRules) -> Accepted | Rejected:
    """A batch that this broker has built itself, which may be a control batch; only its size is judged."""
    header = batches.read_header(data)
    if header.size_bytes > rules.max_batch_bytes:
        return _too_large(header.size_bytes, rules)
    return _alone(data, header)


def _alone(batch: memoryview, header: BatchHeader) -> Accepted:
    return Accepted(batch, ((0, header),), header.record_count, header.max_timestamp_ms)


def _checked_header(view: memoryview, rules: BatchRules) -> BatchHeader | Rejected:
    """The header of bytes that are a batch; their faults in the order in which Kafka looks for them."""
    base_offset = int.from_bytes(view[:8], "big", signed=True)
    if base_offset != 0:
        return Rejected(ErrorCode.INVALID_RECORD, f"base offset is {base_offset}, a client must send 0")
    if len(view) > rules.max_batch_bytes:
        return _too_large(len(view), rules)
    if len(view) < HEADER_BYTES:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"a batch of {len(view)} bytes is shorter than its header")
    header = batches.read_header(view)
    if not batches.crc_is_valid(view, 0, header):
        return Rejected(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch is wrong")
    if header.attributes & CODEC_MASK not in CODECS:
        message = f"unknown compression codec {header.attributes & CODEC_MASK}"
        return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    return header


def _header_fault(header: BatchHeader) -> Rejected | None:
    """Contradictions within a header whose CRC is right."""
    count = header.record_count
    if header.last_offset_delta < 0:
        message = f"the last offset delta is {header.last_offset_delta}"
    elif count <= 0:
        message = f"the batch claims {count} records"
    elif count != header.last_offset_delta + 1:
        message = f"the batch claims {count} records, its offsets are {header.last_offset_delta + 1}"
    elif header.is_control:
        message = "a client may not write control batches"
    elif header.has_producer_id and header.base_sequence < 0:
        message = f"producer {header.producer_id} sent the sequence number {header.base_sequence}"
    else:
        return None
    return Rejected(ErrorCode.INVALID_RECORD, message)


def _records_matter(header: BatchHeader, target: Codec, rules: BatchRules, now_ms: int) -> bool:
    """Whether the header alone cannot settle it."""
    if rules.validate_records or rules.compacted or target is not header.codec:
        return True
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.is_log_append_time
    # The header holds the first and the greatest timestamp, never the smallest. Where one of them is out of
    # bounds the reply must name the records.
    return (
        rules.bounds_old_timestamps
        or rules.timestamp_fault(header.max_timestamp_ms, now_ms) is not None
        or rules.timestamp_fault(header.base_timestamp_ms, now_ms) is not None
    )


def _accepted(
    view: memoryview, header: BatchHeader, rules: BatchRules, now_ms: int, newest_ms: int
) -> Accepted:
    """Take the batch, once its header tells the timestamp type and the greatest timestamp truly."""
    append_time = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    max_timestamp_ms = now_ms if append_time else newest_ms
    if header.is_log_append_time is not append_time or header.max_timestamp_ms != max_timestamp_ms:
        batches.set_timestamps(view, 0, log_append_time=append_time, max_timestamp_ms=max_timestamp_ms)
        header = batches.read_header(view)
    return _alone(view, header)


def _judge_records(
    view: memoryview, header: BatchHeader, target: Codec, rules: BatchRules, now_ms: int
) -> Accepted | Rejected:
    """Read every record, then keep the batch as it came, or recompress it."""
    if header.codec is Codec.LZ4 and has_linked_lz4_blocks(view[batches.HEADER_BYTES :]):
        return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "lz4 blocks that depend on each other")
    try:
        plain = plain_batch(view, 0, header, rules.decompressed_limit_bytes)
    except DecompressedTooLargeError as error:
        return Rejected(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except DecompressionError as error:
        return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    checked = check_records(plain, rules, now_ms)
    if isinstance(checked, Rejected):
        return checked
    if target is not header.codec:
        view = _compressed_anew(plain, checked, target, rules)
        header = batches.read_header(view)
        if len(view) > rules.max_batch_bytes:
            return _too_large(len(view), rules)
    elif header.codec is not Codec.NONE and not checked.offsets_in_order:
        return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "the records' offsets do not count from 0")
    return _accepted(view, header, rules, now_ms, checked.newest_ms)


def _compressed_anew(plain: PlainBatch, checked: Checked, target: Codec, rules: BatchRules) -> memoryview:
    """The same records, producer and sequence under another codec; offsets counted from 0."""
    if not checked.offsets_in_order:
        records = decode_area(plain.area, plain.header)
        return memoryview(build_like(plain.header, records, target, rules.compression_level))
    packed = compress(target, plain.area, rules.compression_level)
    data = bytearray(batches.HEADER_BYTES) + packed
    attributes = plain.header.attributes & ~CODEC_MASK | target
    batches.write_header(data, 0, plain.header._replace(size_bytes=len(data), attributes=attributes))
    return memoryview(data)


def _too_large(size: int, rules: BatchRules) -> Rejected:
    return Rejected(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the batch has {size} bytes, the topic allows {rules.max_batch_bytes} (max.message.bytes)",
    )
