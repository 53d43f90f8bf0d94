"""Which of a log's oldest segments may go. Pure apart from asking a segment how new its records are.

Only whole segments below the high watermark go, from the oldest on, and an empty active segment never does.
When everything may go, the caller rolls first, so that the log keeps its end offset.
"""

from collections.abc import Callable

from riverlog.model.config.slices import LogConfig
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.segment_list import SegmentList


def decide_retention(
    segments: SegmentList,
    config: LogConfig,
    *,
    high_watermark: int,
    log_start_offset: int,
    now_ms: int,
    only_below_start: bool = False,
) -> int:
    """How many segments to delete, counted from the oldest."""
    count = _deletable(
        segments, high_watermark, lambda segment: segment.next_offset <= log_start_offset, keep_active=True
    )
    if only_below_start or not config.deletes_old_segments:
        return count
    if config.retention_ms is not None:
        oldest_ms = now_ms - config.retention_ms
        expired = _deletable(segments, high_watermark, lambda s: s.largest_timestamp_ms() < oldest_ms)
        count = max(count, expired)
    if config.retention_bytes is not None:
        count = max(count, _over_size(segments, high_watermark, retention_bytes=config.retention_bytes))
    return count


def _over_size(segments: SegmentList, high_watermark: int, *, retention_bytes: int) -> int:
    excess = segments.size_bytes - retention_bytes

    def still_too_large(segment: Segment) -> bool:
        nonlocal excess
        if excess - segment.size_bytes < 0:
            return False
        excess -= segment.size_bytes
        return True

    return _deletable(segments, high_watermark, still_too_large)


def _deletable(
    segments: SegmentList,
    high_watermark: int,
    may_go: Callable[[Segment], bool],
    *,
    keep_active: bool = False,
) -> int:
    count = 0
    for segment in segments:
        is_active = segment is segments.active
        if is_active and (keep_active or segment.size_bytes == 0):
            break
        if segment.next_offset > high_watermark or not may_go(segment):
            break
        count += 1
    return count
