"""The aborted transactions that touch a range of a log, by the transaction indexes of its segments.

Such an index has no checksum, and a wrong entry would show a reader of committed records what was taken back.
So the entries that were found on disk are compared with the log before they are first used: there must be the
abort marker of that producer where the transaction ends, and a first batch of it where it begins, as far as
the log still has it. Raises `DamagedLogError` where that is not so. The last stable offset of an entry, which
says that no later one matters, counts only when the next entry confirms it.
"""

from typing import Final

from riverlog.model.errors import DamagedLogError
from riverlog.records.batch import BatchHeader, crc_is_valid, read_header
from riverlog.storage.files.transaction_index import ENTRY_BYTES, AbortedTransaction
from riverlog.storage.log.batch_scan import scan_batches
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.segment_list import SegmentList
from riverlog.storage.producers.state import end_marker

_NEIGHBOURHOOD_BYTES: Final = 1024 * 1024
"""How far around its beginning a transaction's neighbours of the same producer are looked for."""


def aborted_between(segments: SegmentList, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    found: list[AbortedTransaction] = []
    is_past = False
    for segment in segments.from_offset(start_offset):
        index = segment.transactions
        if index.unchecked_count:
            _compare(segments, segment)
        for aborted in index:
            if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                found.append(aborted)
            was_past, is_past = is_past, aborted.last_stable_offset >= end_offset
            if is_past and was_past:
                return found
    return found


def _compare(segments: SegmentList, segment: Segment) -> None:
    index = segment.transactions
    previous = -1
    for number, aborted in enumerate(index):
        if number == index.unchecked_count:
            break
        try:
            what = _contradiction(segments, aborted, previous)
        except DamagedLogError:
            what = None  # It is the log that is damaged: an entry that points at that place is believed.
        if what is not None:
            raise DamagedLogError(
                index.path,
                number * ENTRY_BYTES,
                segment.base_offset,
                f"the log contradicts the aborted transaction there: {what}",
            )
        previous = aborted.last_offset
    index.unchecked_count = 0


def _contradiction(segments: SegmentList, aborted: AbortedTransaction, previous: int) -> str | None:
    """Raises `DamagedLogError` where the log cannot tell."""
    producer_id, first_offset, last_offset, _ = aborted
    if last_offset <= previous:
        return "it is out of order"
    if not 0 <= first_offset < last_offset:
        return "it ends before it begins"
    ends_in = segments[segments.number_at(last_offset)]
    if (end := _batch_at(ends_in, last_offset)) is None or not _is_abort_of(end, producer_id):
        return f"producer {producer_id} has no abort marker at offset {last_offset}"
    begins_in = segments[segments.number_at(first_offset)]
    if first_offset < begins_in.base_offset or (first := _batch_at(begins_in, first_offset)) is None:
        return None  # Retention or compaction has taken its beginning.
    position, header, _ = first
    if header.base_offset > first_offset:
        return None
    if header.base_offset != first_offset or header.producer_id != producer_id or header.is_control:
        return f"producer {producer_id} begins nothing at offset {first_offset}"
    return _contradiction_nearby(begins_in, position, aborted)


def _contradiction_nearby(segment: Segment, begin: int, aborted: AbortedTransaction) -> str | None:
    """Whether the producer's transaction has begun before, or ends elsewhere, as far as that is nearby."""
    producer_id, first_offset, last_offset, _ = aborted
    entry = segment.index.entry_before(max(begin - _NEIGHBOURHOOD_BYTES, 0))
    start = 0 if entry is None else entry[1]
    what: str | None = None
    for position, header in segment.headers(start):
        if position - begin > _NEIGHBOURHOOD_BYTES or header.base_offset >= last_offset:
            break
        if header.producer_id != producer_id:
            continue
        if position < begin:
            is_data = header.is_transactional and not header.is_control
            what = f"producer {producer_id} has begun before offset {first_offset}" if is_data else None
        elif header.is_control:
            what = what or f"producer {producer_id} has ended by offset {header.base_offset}"
            break
    if what is not None:
        _require_sound(segment, start, begin + _NEIGHBOURHOOD_BYTES)
    return what


def _batch_at(segment: Segment, offset: int) -> tuple[int, BatchHeader, bytes] | None:
    located = segment.locate(offset)
    if located is None:
        return None
    position, end = located
    file = segment.log.get()
    data = file.pread(end - position, position)
    header = read_header(data)
    if not crc_is_valid(data, 0, header):
        raise DamagedLogError(file.path, position, header.base_offset, "the CRC of the batch there is wrong")
    return position, header, data


def _is_abort_of(found: tuple[int, BatchHeader, bytes], producer_id: int) -> bool:
    _, header, data = found
    marker = end_marker(header, data, 0)
    return marker is not None and marker.is_abort and header.producer_id == producer_id


def _require_sound(segment: Segment, start: int, end: int) -> None:
    """What is said of neighbours holds only if none of them is damaged."""
    file = segment.log.get()
    for position, header, view, at in scan_batches(file, start, min(end, segment.size_bytes)):
        if not crc_is_valid(view, at, header):
            raise DamagedLogError(file.path, position, header.base_offset, "the CRC there is wrong")
