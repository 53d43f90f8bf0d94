"""Splits, limits and filters, without a cluster."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from riverlog.model.ids import TopicPartition
from riverlog.spark.source.places import from_json, to_json
from riverlog.spark.source.plan import Range, Split, limited, plan_splits
from riverlog.spark.source.push_down import Bounds, push_down
from riverlog.spark.source.running_query import name_in

A, B, C = (TopicPartition("t", index) for index in range(3))


def covered(splits: list[Split]) -> list[tuple[TopicPartition, int]]:
    return [(split.at, offset) for split in splits for offset in range(split.start, split.end)]


def test_each_partition_with_something_to_read_is_one_split() -> None:
    splits = plan_splits([Range(A, 0, 10), Range(B, 5, 5), Range(C, 3, 4)], {})
    assert [(split.at, split.start, split.end) for split in splits] == [(A, 0, 10), (C, 3, 4)]


def test_large_partitions_are_cut_to_reach_min_partitions() -> None:
    splits = plan_splits([Range(A, 0, 900), Range(B, 0, 100)], {}, min_partitions=10)
    assert [split.at for split in splits].count(A) == 9
    assert len(splits) == 10


def test_max_records_cuts_further() -> None:
    splits = plan_splits([Range(A, 0, 25)], {}, max_records=10)
    assert [split.end - split.start for split in splits] == [8, 8, 9]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=4),
    st.none() | st.integers(1, 20),
    st.none() | st.integers(1, 9),
)
def test_splits_cover_exactly_what_was_asked(
    bounds: list[tuple[int, int]], least: int | None, most: int | None
) -> None:
    ranges = [
        Range(TopicPartition("t", index), start, start + size) for index, (start, size) in enumerate(bounds)
    ]
    splits = plan_splits(ranges, {}, min_partitions=least, max_records=most)
    assert covered(splits) == [(each.at, offset) for each in ranges for offset in range(each.start, each.end)]
    assert all(split.end - split.start <= (most or 100) for split in splits)


@given(
    st.dictionaries(
        st.sampled_from([A, B, C]), st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1
    ),
    st.integers(1, 120),
)
def test_a_limit_is_reached_and_never_passed(
    sizes: dict[TopicPartition, tuple[int, int]], rows_max: int
) -> None:
    starts = {at: start for at, (start, _) in sizes.items()}
    ends = {at: start + size for at, (start, size) in sizes.items()}
    taken = limited(starts, ends, rows_max)
    assert all(starts[at] <= taken[at] <= ends[at] for at in sizes)
    waiting = sum(size for _, size in sizes.values())
    assert sum(taken[at] - starts[at] for at in sizes) == min(waiting, rows_max)


def test_a_limit_is_shared_by_what_each_partition_has() -> None:
    assert limited({A: 0, B: 0}, {A: 900, B: 100}, 10) == {A: 9, B: 1}


def test_offsets_are_written_as_spark_writes_them() -> None:
    written = to_json({B: 7, A: 3})
    assert written == {"t": {"0": 3, "1": 7}}
    assert from_json(written) == {A: 3, B: 7}


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        (EqualTo(("partition",), 1), [B]),
        (Not(EqualTo(("partition",), 1)), [A, C]),
        (In(("partition",), (0, 2)), [A, C]),
        (GreaterThan(("partition",), 0), [B, C]),
        (LessThanOrEqual(("partition",), 0), [A]),
        (EqualTo(("topic",), "u"), []),
        (StringStartsWith(("topic",), "t"), [A, B, C]),
    ],
)
def test_conditions_on_partitions_are_taken_over(condition: Filter, taken: list[TopicPartition]) -> None:
    pushed, left = push_down([condition])
    assert left == []
    assert [at for at in (A, B, C) if pushed.takes(at)] == taken


def test_a_range_of_offsets_is_taken_over() -> None:
    pushed, left = push_down(
        [GreaterThanOrEqual(("offset",), 3), LessThan(("offset",), 8), IsNotNull(("offset",))]
    )
    assert left == []
    assert pushed.within(Range(A, 0, 100)) == Range(A, 3, 8)
    assert pushed.within(Range(A, 9, 100)).size == 0
    only, _ = push_down([EqualTo(("offset",), 5)])
    assert only.within(Range(A, 0, 100)) == Range(A, 5, 6)


def test_a_time_narrows_and_is_looked_at_again() -> None:
    condition = GreaterThan(("timestamp",), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    pushed, left = push_down([condition])
    assert left == [condition]
    assert pushed.timestamps_us == Bounds(1_000_001)


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("value",), b"x"),
        EqualTo(("partition",), None),
        In(("partition",), (0, None)),
        Not(In(("partition",), (0, None))),
        Not(EqualTo(("offset",), 5)),
        In(("offset",), (5, 6)),
        IsNull(("topic",)),
        EqualTo(("headers", "key"), "x"),
        GreaterThan(("timestamp",), datetime(1970, 1, 1)),
    ],
)
def test_what_cannot_be_kept_exactly_stays_with_spark(condition: Filter) -> None:
    pushed, left = push_down([condition])
    assert left == [condition]
    assert pushed.takes(A)
    assert pushed.within(Range(A, 0, 100)) == Range(A, 0, 100)


def test_the_name_of_a_query_is_found_in_the_description_of_its_jobs() -> None:
    assert name_in("mine\nid = 12\nrunId = 3\nbatch = 0", "12") == "mine"
    assert name_in("id = 12\nrunId = 3\nbatch = 0", "12") is None
    assert name_in("something else", "12") is None
