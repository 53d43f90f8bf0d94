"""Finding the one batch in the records field of a produce request, before anything in it is believed.

Kafka cuts a field into batches by their claimed lengths, and the faults it finds there differ in reach: a
first batch that cannot be cut spoils the whole request (`first_batch_fault`, for the produce handler), every
other fault only its partition (`find_batch`). Where Kafka answers UNKNOWN_SERVER_ERROR, because it stumbles
over such bytes rather than judges them, so do we: clients see the same code.
"""

import struct
from typing import Final

from riverlog.model.errors import ErrorCode
from riverlog.records.batch import (
    ATTRIBUTES_LOW_BYTE_AT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    PRODUCER_ID_AT,
    TRANSACTIONAL_FLAG,
    claimed_size,
)
from riverlog.records.rules import Rejected

_length_and_magic: Final = struct.Struct(">8xi4xb").unpack_from
_length_magic_attributes: Final = struct.Struct(">8xi4xb4xh").unpack_from
_UP_TO_MAGIC_BYTES = MAGIC_AT + 1
_UP_TO_PRODUCER_ID_BYTES = PRODUCER_ID_AT + 8
_SMALLEST_LENGTH = 14
_LARGEST_SIZE = (1 << 31) - 1


def is_plain_batch(field: memoryview) -> bool:
    """Whether the field is one whole batch outside of any transaction: nothing here has a fault to find."""
    if len(field) < HEADER_BYTES:
        return False
    length, magic, attributes = _length_magic_attributes(field)
    return bool(
        length + LOG_OVERHEAD_BYTES == len(field) and magic == MAGIC and not attributes & TRANSACTIONAL_FLAG
    )


def first_batch_fault(field: memoryview) -> Rejected | None:
    """A fault for which Kafka refuses every partition of the request, not only this one."""
    if _is_one_whole_batch(field):
        return None
    first = _batch_size_at(field, 0)
    if isinstance(first, Rejected) and first.error is ErrorCode.CORRUPT_MESSAGE:
        return Rejected(first.error, first.message, tell_client=True)
    return None


def is_transactional(field: memoryview) -> bool:
    """Whether the first batch claims to be part of a transaction; the request must then name one."""
    return len(field) > ATTRIBUTES_LOW_BYTE_AT and bool(field[ATTRIBUTES_LOW_BYTE_AT] & TRANSACTIONAL_FLAG)


def find_batch(field: memoryview) -> memoryview | Rejected:
    """The bytes of the one batch. What follows it is dropped if it is not a whole batch itself."""
    if _is_one_whole_batch(field):
        return field
    first = _batch_size_at(field, 0)
    if isinstance(first, Rejected):
        return first
    if first is None:
        return Rejected(ErrorCode.INVALID_RECORD, "there is no whole record batch in the request")
    if field[MAGIC_AT] != MAGIC:
        return Rejected(ErrorCode.INVALID_RECORD, f"batch of magic {field[MAGIC_AT]}; only magic 2 is taken")
    second = _batch_size_at(field, first)
    if isinstance(second, Rejected):
        return second
    if second is not None:
        return Rejected(ErrorCode.INVALID_RECORD, "more than one record batch for a partition")
    if first < _UP_TO_PRODUCER_ID_BYTES:
        return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch of {first} bytes has no producer id")
    return field[:first]


def _is_one_whole_batch(field: memoryview) -> bool:
    """What nearly every field is, told at a glance; the others are looked at more closely."""
    if len(field) < HEADER_BYTES:
        return False
    length, magic = _length_and_magic(field)
    return bool(length + LOG_OVERHEAD_BYTES == len(field) and magic == MAGIC)


def _batch_size_at(field: memoryview, position: int) -> int | Rejected | None:
    """The size of the batch at `position`, None where there is none or not all of it."""
    left = len(field) - position
    if left < LOG_OVERHEAD_BYTES:
        return None
    size = claimed_size(field, position)
    if size - LOG_OVERHEAD_BYTES < _SMALLEST_LENGTH:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"a batch claims to have {size} bytes")
    if left < _UP_TO_MAGIC_BYTES:
        return None
    magic = field[position + MAGIC_AT]
    if magic > MAGIC:
        return Rejected(ErrorCode.CORRUPT_MESSAGE, f"a batch has the unknown magic {magic}")
    if size > _LARGEST_SIZE:
        return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch claims to have {size} bytes")
    return size if size <= left else None
