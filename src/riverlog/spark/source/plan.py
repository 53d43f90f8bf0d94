"""Which task reads what: offset ranges cut into splits. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from riverlog.model.ids import TopicPartition


@dataclass(frozen=True)
class Standing:
    """Where a stream stands before its first batch."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, UUID | None]
    is_restart: bool
    """The position comes from a checkpoint, so there has been a run before this one."""
    loss_is_allowed: bool


@dataclass(frozen=True)
class Introduction:
    """What a task needs to tell a stream's reader under which name the query runs."""

    token: str
    group_prefix: str
    standing: Standing


@dataclass(frozen=True)
class Split(InputPartition):
    """Offsets from `start` up to `end`, which is not read, of one partition."""

    at: TopicPartition
    start: int
    end: int
    topic_id: UUID | None = None
    introduction: Introduction | None = None


@dataclass(frozen=True, slots=True)
class Range:
    at: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.start)


def plan_splits(
    ranges: list[Range],
    topic_ids: Mapping[str, UUID | None],
    *,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[Split]:
    """One for each range, or more, so that there are about `min_partitions` and none is too large."""
    ranges = [each for each in ranges if each.size]
    parts = part_counts(ranges, min_partitions, max_records)
    return [
        Split(each.at, start, end, topic_ids.get(each.at.topic))
        for each in ranges
        for start, end in cut(each, parts[each.at])
    ]


def part_counts(
    ranges: list[Range], min_partitions: int | None, max_records: int | None
) -> dict[TopicPartition, int]:
    """Into how many pieces each range is cut that is not empty."""
    ranges = [each for each in ranges if each.size]
    total = sum(each.size for each in ranges)
    counts = {}
    for each in ranges:
        parts = 1
        if min_partitions is not None and len(ranges) < min_partitions:
            parts = max(1, round(each.size * min_partitions / total))
        if max_records is not None:
            parts = max(parts, -(-each.size // max_records))
        counts[each.at] = parts
    return counts


def cut(whole: Range, parts: int) -> list[tuple[int, int]]:
    parts = max(1, min(parts, whole.size))
    cuts = [whole.start + whole.size * part // parts for part in range(parts + 1)]
    return list(pairwise(cuts))


def limited(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], rows_max: int
) -> dict[TopicPartition, int]:
    """Ends that are `rows_max` offsets behind the starts in all, shared out by what each partition has."""
    waiting = {at: max(0, end - starts[at]) for at, end in ends.items()}
    total = sum(waiting.values())
    if total <= rows_max:
        return dict(ends)
    taken = {at: rows_max * size // total for at, size in waiting.items()}
    # What rounding left over goes to the largest, so that the limit is reached and progress is sure.
    left = rows_max - sum(taken.values())
    for at in sorted(waiting, key=lambda each: (-waiting[each], each)):
        if left == 0:
            break
        if taken[at] < waiting[at]:
            taken[at] += 1
            left -= 1
    return {at: starts[at] + taken[at] if waiting[at] else end for at, end in ends.items()}
