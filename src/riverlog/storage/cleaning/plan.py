"""What of a log can be cleaned, whether it is worth it, and which segments become one. Reads no records.

The cleanable part ends with a whole segment, below the last stable offset, and before the first segment
that is younger than `min.compaction.lag.ms`.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from riverlog.model.config.slices import LogConfig
from riverlog.storage.files.index_files import OffsetIndex, TimeIndex
from riverlog.storage.log.appends import RELATIVE_OFFSET_MAX
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment import Segment


class Cleanable(NamedTuple):
    """A log's state as the cleaner sees it."""

    first_dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """A dirty record is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def is_due(self, config: LogConfig) -> bool:
        if not config.is_compacted or not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > config.min_cleanable_dirty_ratio


def examine(log: Log, now_ms: int) -> Cleanable:
    first_dirty = log.state.cleaned_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    closed = log.segments[:-1]
    end_offset = closed[0].base_offset if closed else first_dirty
    clean_bytes = dirty_bytes = 0
    dirty: list[Segment] = []
    settled = log.replacement.settled_offset
    youngest_ms = now_ms - log.config.min_compaction_lag_ms
    for segment in closed:
        if segment.next_offset > settled:
            break
        if segment.next_offset <= first_dirty:
            clean_bytes += segment.size_bytes
        else:
            if log.config.min_compaction_lag_ms and segment.largest_timestamp_ms() > youngest_ms:
                break
            dirty_bytes += segment.size_bytes
            dirty.append(segment)
        end_offset = segment.next_offset
    max_lag_ms = log.config.max_compaction_lag_ms
    is_overdue = max_lag_ms is not None and _oldest_ms(dirty, now_ms) < now_ms - max_lag_ms
    return Cleanable(first_dirty, end_offset, clean_bytes, dirty_bytes, is_overdue)


def _oldest_ms(segments: Iterable[Segment], now_ms: int) -> int:
    """When the oldest record was made, as far as the first batches of the segments tell."""
    firsts = (segment.first_batch_ms() for segment in segments if segment.size_bytes)
    return min((first for first in firsts if first >= 0), default=now_ms)


def segments_to_clean(log: Log, end_offset: int) -> list[Segment]:
    """Everything below: superseded records may be anywhere."""
    return [segment for segment in log.segments[:-1] if segment.base_offset < end_offset]


def groups_of(segments: Iterable[Segment], config: LogConfig) -> Iterator[list[Segment]]:
    """Neighbours that fit into one segment together, whatever is taken out of them."""
    group: list[Segment] = []
    for segment in segments:
        if group and not _fits([*group, segment], config):
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _fits(group: list[Segment], config: LogConfig) -> bool:
    return (
        sum(segment.size_bytes for segment in group) <= config.segment_bytes
        and sum(segment.index.count for segment in group) * OffsetIndex.ENTRY_BYTES
        <= config.segment_index_bytes
        and sum(segment.time_index.count for segment in group) * TimeIndex.ENTRY_BYTES
        <= config.segment_index_bytes
        and group[-1].next_offset - group[0].base_offset <= RELATIVE_OFFSET_MAX
    )
