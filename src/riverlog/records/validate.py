"""Whether a produced batch may enter a log, and in which form.

Answers what Apache Kafka answers to the same bytes, as an error code and the indices of bad records; the
wording of messages is ours. A batch is checked as a whole, without decompressing it: lengths, magic, CRC,
counts, attributes, timestamps. Its records are read only where the rules need them: a compacted topic (every
record has a key), another compression than the producer's, or `validate_records`
(docs/adr/0004-validate-batches-whole.md). Not checked here: sequence numbers and epochs of producers, which
are the log's to judge, and which request versions may carry zstd, which the produce handler knows.
"""

from riverlog.model.errors import ErrorCode
from riverlog.records import batch as batches
from riverlog.records.batch import BatchHeader
from riverlog.records.compression import Codec, DecompressedTooLargeError, DecompressionError, compress
from riverlog.records.record import PlainBatch, plain_batch
from riverlog.records.record_checks import check_records
from riverlog.records.rules import Accepted, BatchRules, Rejected, TimestampType

__all__ = ["Accepted", "BatchRules", "Rejected", "TimestampType", "validate"]

_SMALLEST_LENGTH = 14
_HEADER_UP_TO_MAGIC_BYTES = 17


def validate(data: memoryview | bytearray, rules: BatchRules, now_ms: int) -> Accepted | Rejected:
    """Judge the records field of one partition in a produce request.

    `data` must be writable: a log-append-time stamp and a corrected max timestamp are put in place. Bytes
    after the first batch that are no whole batch themselves are cut off, as Kafka does.
    """
    view = memoryview(data)
    size = _first_batch_size(view)
    if isinstance(size, Rejected):
        return size
    view = view[:size]
    if size > rules.max_batch_bytes:
        return _too_large(size, rules)
    if size < batches.HEADER_BYTES:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes is shorter than its header")
    header = batches.read_header(view)
    if header.base_offset != 0:
        return Rejected(
            ErrorCode.INVALID_RECORD, f"base offset is {header.base_offset}, a client must send 0"
        )
    if not batches.crc_is_valid(view, 0, header):
        return Rejected(ErrorCode.CORRUPT_MESSAGE, "the CRC of the batch is wrong")
    return _judge_header(header) or _judge_content(view, header, rules, now_ms)


def _first_batch_size(view: memoryview) -> int | Rejected:
    """The size of the one batch in `view`; a request carries exactly one whole batch for a partition."""
    first = _batch_size_at(view, 0)
    if isinstance(first, Rejected):
        return first
    if first is None:
        return Rejected(ErrorCode.INVALID_RECORD, "there is no whole record batch in the request")
    if view[16] != batches.MAGIC:
        return Rejected(ErrorCode.INVALID_RECORD, f"batch of magic {view[16]}; only magic 2 is taken")
    second = _batch_size_at(view, first)
    if isinstance(second, Rejected):
        return second
    if second is not None:
        return Rejected(ErrorCode.INVALID_RECORD, "more than one record batch for a partition")
    return first


def _batch_size_at(view: memoryview, position: int) -> int | Rejected | None:
    left = len(view) - position
    if left < _HEADER_UP_TO_MAGIC_BYTES:
        return None
    size = batches.claimed_size(view, position)
    magic = view[position + 16]
    if size - batches.LOG_OVERHEAD_BYTES < _SMALLEST_LENGTH:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"a batch claims a length of {size} bytes")
    if magic > batches.MAGIC:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"a batch has the unknown magic {magic}")
    return size if size <= left else None


def _judge_header(header: BatchHeader) -> Rejected | None:
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
    elif header.attributes & batches.CODEC_MASK > max(Codec):
        message = f"unknown compression codec {header.attributes & batches.CODEC_MASK}"
    else:
        return None
    return Rejected(ErrorCode.INVALID_RECORD, message)


def _judge_content(
    view: memoryview, header: BatchHeader, rules: BatchRules, now_ms: int
) -> Accepted | Rejected:
    if header.is_log_append_time:
        return Rejected(ErrorCode.INVALID_TIMESTAMP, "only a broker may mark a batch as log-append-time")
    target = header.codec if rules.codec is None else rules.codec
    if rules.validate_records or rules.compacted or target is not header.codec:
        return _judge_records(view, header, target, rules, now_ms)
    if rules.timestamp_type is TimestampType.CREATE:
        for timestamp_ms in (header.base_timestamp_ms, header.max_timestamp_ms):
            if fault := rules.timestamp_fault(timestamp_ms, now_ms):
                return Rejected(ErrorCode.INVALID_TIMESTAMP, fault)
        return _accepted(view, header)
    batches.set_log_append_time(view, 0, now_ms)
    return _accepted(view, batches.read_header(view))


def _accepted(view: memoryview, header: BatchHeader) -> Accepted:
    return Accepted(view, ((0, header),), header.record_count, header.max_timestamp_ms)


def _judge_records(
    view: memoryview, header: BatchHeader, target: Codec, rules: BatchRules, now_ms: int
) -> Accepted | Rejected:
    """Read every record, then keep the batch as it came, or compress it anew."""
    try:
        plain = plain_batch(view, 0, header, rules.decompressed_limit_bytes)
    except DecompressedTooLargeError as error:
        return Rejected(ErrorCode.MESSAGE_TOO_LARGE, str(error))
    except DecompressionError as error:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, str(error))
    newest_ms = check_records(plain, rules, now_ms)
    if isinstance(newest_ms, Rejected):
        return newest_ms
    if target is not header.codec:
        view = _compressed_anew(plain, target, rules)
        if len(view) > rules.max_batch_bytes:
            return _too_large(len(view), rules)
    if rules.timestamp_type is TimestampType.APPEND:
        batches.set_log_append_time(view, 0, now_ms)
    elif newest_ms != header.max_timestamp_ms:
        # The header is the client's claim; time lookups trust it, so it must be true once it is known.
        batches.set_max_timestamp(view, 0, newest_ms)
    return _accepted(view, batches.read_header(view))


def _compressed_anew(plain: PlainBatch, target: Codec, rules: BatchRules) -> memoryview:
    """The same records, producer and sequence under another codec."""
    packed = compress(target, plain.area, rules.compression_level)
    header = plain.header
    data = bytearray(batches.HEADER_BYTES) + packed
    attributes = header.attributes & ~batches.CODEC_MASK | target
    batches.write_header(data, 0, header._replace(size_bytes=len(data), attributes=attributes))
    return memoryview(data)


def _too_large(size: int, rules: BatchRules) -> Rejected:
    return Rejected(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"the batch has {size} bytes, the topic allows {rules.max_batch_bytes} (max.message.bytes)",
    )
