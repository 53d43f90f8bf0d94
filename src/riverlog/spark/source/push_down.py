"""Filters that a batch read takes over from Spark: on topic, partition, offset and timestamp. Pure.

Conditions on topic, partition and a range of offsets are kept exactly by what is read, so Spark need not look
again. A time leaves out what it can, at the start of a partition and row by row, and Spark looks again.
The four columns are never null.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from riverlog.model.ids import TopicPartition
from riverlog.spark.source.plan import Range

_NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TESTS: Final[Mapping[type[Filter], Callable[[Any, Any], bool]]] = {
    EqualTo: lambda value, other: bool(value == other),
    EqualNullSafe: lambda value, other: bool(value == other),
    GreaterThan: lambda value, other: bool(value > other),
    GreaterThanOrEqual: lambda value, other: bool(value >= other),
    LessThan: lambda value, other: bool(value < other),
    LessThanOrEqual: lambda value, other: bool(value <= other),
    In: lambda value, other: value in other,
    StringStartsWith: lambda value, other: bool(value.startswith(other)),
    StringEndsWith: lambda value, other: bool(value.endswith(other)),
    StringContains: lambda value, other: other in value,
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """From `first` on, up to `end`, which is not among them. None: no bound."""

    first: int | None = None
    end: int | None = None

    def and_from(self, first: int) -> "Bounds":
        return replace(self, first=first if self.first is None else max(self.first, first))

    def and_up_to(self, end: int) -> "Bounds":
        return replace(self, end=end if self.end is None else min(self.end, end))


@dataclass(frozen=True, slots=True)
class Pushed:
    """All conditions hold together."""

    on_partitions: tuple[Filter, ...] = ()
    offsets: Bounds = Bounds()
    timestamps_us: Bounds = Bounds()

    def takes(self, at: TopicPartition) -> bool:
        values = {"topic": at.topic, "partition": at.partition}
        return all(_holds(each, values) for each in self.on_partitions)

    def within(self, whole: Range) -> Range:
        start, end = whole.start, whole.end
        if self.offsets.first is not None:
            start = max(start, self.offsets.first)
        if self.offsets.end is not None:
            end = min(end, self.offsets.end)
        return Range(whole.at, start, max(start, end))


def push_down(filters: list[Filter]) -> tuple[Pushed, list[Filter]]:
    """What is taken over, and the filters that Spark still has to look at."""
    pushed = Pushed()
    left: list[Filter] = []
    for each in filters:
        column = _column(each)
        if column in _NEVER_NULL and isinstance(each, IsNotNull):
            continue
        if column in ("topic", "partition") and _is_testable(each):
            pushed = replace(pushed, on_partitions=(*pushed.on_partitions, each))
            continue
        if column == "offset" and (offsets := _narrowed(pushed.offsets, each, _whole)) is not None:
            pushed = replace(pushed, offsets=offsets)
            continue
        if column == "timestamp":
            narrowed = _narrowed(pushed.timestamps_us, each, _microseconds)
            pushed = replace(pushed, timestamps_us=narrowed or pushed.timestamps_us)
        left.append(each)
    return pushed, left


def _column(condition: Filter) -> str | None:
    if isinstance(condition, Not):
        return _column(condition.child)
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    return path[0] if len(path) == 1 else None


def _is_testable(condition: Filter) -> bool:
    if isinstance(condition, Not):
        return _is_testable(condition.child)
    if type(condition) not in _TESTS:
        return False
    value = condition.value  # type: ignore[attr-defined]
    return value is not None and not (isinstance(condition, In) and None in value)


def _holds(condition: Filter, values: Mapping[str, Any]) -> bool:
    if isinstance(condition, Not):
        return not _holds(condition.child, values)
    column = _column(condition)
    assert column is not None
    return _TESTS[type(condition)](values[column], condition.value)  # type: ignore[attr-defined]


def _narrowed(bounds: Bounds, condition: Filter, number_of: Callable[[Any], int | None]) -> Bounds | None:
    """None when the condition is no bound."""
    number = number_of(getattr(condition, "value", None))
    if number is None:
        return None
    match condition:
        case EqualTo() | EqualNullSafe():
            return bounds.and_from(number).and_up_to(number + 1)
        case GreaterThan():
            return bounds.and_from(number + 1)
        case GreaterThanOrEqual():
            return bounds.and_from(number)
        case LessThan():
            return bounds.and_up_to(number)
        case LessThanOrEqual():
            return bounds.and_up_to(number + 1)
        case _:
            return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _microseconds(value: Any) -> int | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(microseconds=1)
