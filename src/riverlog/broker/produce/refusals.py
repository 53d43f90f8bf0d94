"""What is refused of a produce before any log is asked: the request as a whole, and a partition's records."""

from riverlog.broker.produce.long_produce import parts_of
from riverlog.model.errors import ErrorCode
from riverlog.model.pieces import Pieces
from riverlog.records.batch import ATTRIBUTES_LOW_BYTE_AT, CODEC_MASK
from riverlog.records.compression import Codec
from riverlog.records.records_field import find_batch, first_batch_fault, is_transactional
from riverlog.records.rules import Rejected
from riverlog.replication.append_outcomes import AppendRefused
from riverlog.wire.messages.produce import ProduceRequest

_ACKS = frozenset({-1, 0, 1})
_ZSTD_VERSION_MIN = 7


def refusal_of_all(request: ProduceRequest) -> AppendRefused | None:
    """What is wrong with the request as a whole, and so with every partition in it."""
    if request.acks not in _ACKS:
        return AppendRefused(ErrorCode.INVALID_REQUIRED_ACKS)
    transactional = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview):
                if fault := first_batch_fault(data.records):
                    return AppendRefused(fault.error, fault.reply_message)
                transactional = transactional or is_transactional(data.records)
    if transactional and request.transactional_id is None:
        return AppendRefused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return None


def refusal_of_all_in_pieces(request: ProduceRequest) -> Pieces[AppendRefused | None]:
    found: AppendRefused | None = None
    for some in parts_of(request):
        refusal = refusal_of_all(some)
        if refusal is not None and refusal.error is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return refusal
        found = found or refusal
        yield None
    return found


def refusal_of_records(records: object, version: int) -> AppendRefused | None:
    """What is wrong before the log is even asked."""
    if not isinstance(records, memoryview):
        # Kafka leaves a client that sends null records without any answer.
        return AppendRefused(ErrorCode.INVALID_RECORD)
    batch = find_batch(records)
    if isinstance(batch, Rejected):
        return AppendRefused(batch.error, batch.reply_message)
    if version < _ZSTD_VERSION_MIN and batch[ATTRIBUTES_LOW_BYTE_AT] & CODEC_MASK == Codec.ZSTD:
        return AppendRefused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return None
