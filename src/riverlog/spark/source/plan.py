"""Which task reads what: offset ranges cut into splits. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import floor
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
    return [
        Split(each.at, each.start, each.end, topic_ids.get(each.at.topic))
        for each in cut_ranges(ranges, min_partitions, max_records)
    ]


def cut_ranges(ranges: list[Range], min_partitions: int | None, max_records: int | None) -> list[Range]:
    """What there is to read in pieces, of which Spark's connector would make as many.

    First none has more than `max_records`. If these are fewer than `min_partitions`, the large ones are cut
    further, by their share of what all large ones have together.
    """
    pieces = [each for each in ranges if each.size]
    if max_records is not None:
        pieces = [part for each in pieces for part in cut(each, -(-each.size // max_records))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(each.size for each in pieces)
    small = [each for each in pieces if _share(each.size, total, min_partitions) == 1]
    # By partition: where one piece of it is small, all are left as they are.
    left = {each.at for each in small}
    large_total = total - sum(each.size for each in small)
    large_min = max(1, min_partitions - len(small))
    return [
        part
        for each in pieces
        for part in cut(each, 1 if each.at in left else _share(each.size, large_total, large_min))
    ]


def _share(size: int, total: int, parts: int) -> int:
    return max(1, floor(size / total * parts + 0.5))


def cut(whole: Range, parts: int) -> list[Range]:
    """Parts of about one size, the smaller ones first, none of them empty."""
    parts = max(1, min(parts, whole.size))
    cuts = [whole.start]
    for left in range(parts, 0, -1):
        cuts.append(cuts[-1] + (whole.end - cuts[-1]) // left)
    return [Range(whole.at, start, end) for start, end in pairwise(cuts)]


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
