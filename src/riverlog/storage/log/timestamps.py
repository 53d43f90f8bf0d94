"""Finding offsets by timestamp, exactly: the time index says where to begin, the records decide.

An entry of the time index that the log does not bear out is passed over and reported. Raises
`DamagedLogError` where the batches that decide are damaged.
"""

from typing import NamedTuple

from riverlog.model.errors import DamagedLogError
from riverlog.model.ids import LeaderEpoch
from riverlog.records.batch import BatchHeader, crc_is_valid
from riverlog.records.record import Record, records_of
from riverlog.storage.files.index_files import TimeEntry
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.segment_list import SegmentList


class TimestampedOffset(NamedTuple):
    timestamp_ms: int
    offset: int
    leader_epoch: LeaderEpoch


def first_at_or_after(
    segments: SegmentList, timestamp_ms: int, *, log_start_offset: int
) -> TimestampedOffset | None:
    """The first record, from the log's start on, that is not older than `timestamp_ms`."""
    for segment in segments:
        if segment.size_bytes and segment.largest_timestamp_ms() >= timestamp_ms:
            found = _search(segment, timestamp_ms, log_start_offset=log_start_offset)
            if found is not None:
                return found
    return None


def newest(segments: SegmentList) -> TimestampedOffset | None:
    """The first record that has the greatest timestamp of the log."""
    best: Segment | None = None
    for segment in segments:
        if segment.size_bytes and (
            best is None or segment.largest_timestamp_ms() > best.largest_timestamp_ms()
        ):
            best = segment
    if best is None or best.max_timestamp_ms is None or best.max_timestamp_ms < 0:
        return None
    if not best.bears_out(TimeEntry((best.max_timestamp_ms, best.max_timestamp_offset - best.base_offset))):
        best.find_newest()
    located = best.locate(best.max_timestamp_offset)
    if located is None:
        return None
    position, header = next(best.headers(located[0]))
    for record in _records(best, position, header):
        if record.timestamp_ms == best.max_timestamp_ms:
            return TimestampedOffset(record.timestamp_ms, record.offset, header.leader_epoch)
    return TimestampedOffset(best.max_timestamp_ms, header.last_offset, header.leader_epoch)


def _search(segment: Segment, timestamp_ms: int, *, log_start_offset: int) -> TimestampedOffset | None:
    entry = segment.time_index.entry_before(timestamp_ms)
    offset = segment.base_offset
    if entry is not None and segment.bears_out(entry):
        offset += entry[1]
    located = segment.locate(max(offset, log_start_offset))
    if located is None:
        return None
    for position, header in segment.headers(located[0]):
        if header.max_timestamp_ms < timestamp_ms or header.last_offset < log_start_offset:
            continue
        for record in _records(segment, position, header):
            if record.timestamp_ms >= timestamp_ms and record.offset >= log_start_offset:
                return TimestampedOffset(record.timestamp_ms, record.offset, header.leader_epoch)
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> list[Record]:
    file = segment.log.get()
    batch = file.pread(header.size_bytes, position)
    if not crc_is_valid(batch, 0, header):
        raise DamagedLogError(file.path, position, header.base_offset, "the CRC of the batch there is wrong")
    return list(records_of(batch))
