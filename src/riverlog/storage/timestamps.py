"""Finding offsets by timestamp, exactly: the time index says where to begin, the records decide."""

from typing import NamedTuple

from riverlog.records.batch import read_header
from riverlog.records.record import records_of
from riverlog.storage.batch_scan import walk_headers
from riverlog.storage.segment import Segment
from riverlog.storage.segment_list import SegmentList


class TimestampedOffset(NamedTuple):
    timestamp_ms: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: SegmentList, timestamp_ms: int, log_start_offset: int
) -> TimestampedOffset | None:
    """The first record, from the log's start on, that is not older than `timestamp_ms`."""
    for segment in segments:
        if segment.size_bytes and segment.largest_timestamp_ms() >= timestamp_ms:
            found = _search(segment, timestamp_ms, log_start_offset)
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
    located = best.locate(best.max_timestamp_offset)
    if located is None:
        return None
    position, end = located
    batch = best.log.get().pread(end - position, position)
    header = read_header(batch)
    for record in records_of(batch):
        if record.timestamp_ms == best.max_timestamp_ms:
            return TimestampedOffset(record.timestamp_ms, record.offset, header.leader_epoch)
    return TimestampedOffset(best.max_timestamp_ms, header.last_offset, header.leader_epoch)


def _search(segment: Segment, timestamp_ms: int, log_start_offset: int) -> TimestampedOffset | None:
    relative = segment.time_index.offset_before(timestamp_ms)
    relative = max(relative, log_start_offset - segment.base_offset, 0)
    file = segment.log.get()
    for position, header in walk_headers(file, segment.index.position_for(relative), segment.size_bytes):
        if header.max_timestamp_ms < timestamp_ms or header.last_offset < log_start_offset:
            continue
        for record in records_of(file.pread(header.size_bytes, position)):
            if record.timestamp_ms >= timestamp_ms and record.offset >= log_start_offset:
                return TimestampedOffset(record.timestamp_ms, record.offset, header.leader_epoch)
    return None
