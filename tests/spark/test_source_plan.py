"""Splits, shares of tasks and limits, without a cluster."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.model.ids import TopicPartition
from riverlog.spark.source.places import from_json, to_json
from riverlog.spark.source.plan import Range, Split, limited, plan_splits
from riverlog.spark.source.running_query import name_in
from riverlog.spark.source.shares import Piece, Share, plan_shares

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


def test_partitions_that_are_not_cut_do_not_count_for_the_others() -> None:
    """As in Spark's connector; `interop` asks it about many more."""
    splits = plan_splits([Range(A, 0, 2000), Range(B, 0, 10), Range(C, 0, 990)], {}, min_partitions=8)
    assert [split.at for split in splits] == [A] * 5 + [B] + [C] * 2


def test_a_limit_comes_first_and_counts_for_min_partitions() -> None:
    splits = plan_splits([Range(A, 0, 100)], {}, min_partitions=4, max_records=30)
    assert [split.end - split.start for split in splits] == [25, 25, 25, 25]
    splits = plan_splits([Range(A, 0, 100)], {}, min_partitions=6, max_records=30)
    assert [split.end - split.start for split in splits] == [12, 13] * 4


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


def bounds_of(piece: Piece, start: int, end: int) -> tuple[int, int]:
    part = piece.of(Range(piece.at, start, end))
    return part.start, part.end


def read_by(
    shares: list[Share], partitions: list[TopicPartition], start: int, end: int
) -> list[tuple[TopicPartition, int]]:
    """Every offset that some task reads."""
    return sorted(
        (piece.at, offset)
        for share in shares
        for piece in share.pieces(partitions)
        for offset in range(*bounds_of(piece, start, end))
    )


def test_each_partition_has_a_task_even_while_it_is_empty() -> None:
    shares = plan_shares([Range(A, 0, 10), Range(B, 5, 5)])
    assert [share.piece for share in shares] == [Piece(A), Piece(B)]


def test_only_the_first_and_the_last_piece_of_a_partition_are_open() -> None:
    shares = plan_shares([Range(A, 2, 11)], max_records=3)
    assert [share.piece for share in shares] == [Piece(A, None, 5), Piece(A, 5, 8), Piece(A, 8, None)]


def test_there_is_a_task_for_what_comes_when_nothing_is_there() -> None:
    [share] = plan_shares([])
    assert list(share.pieces([A, B])) == [Piece(A), Piece(B)]


@given(
    st.lists(st.integers(0, 30), max_size=3),
    st.sets(st.sampled_from([*(TopicPartition("t", n) for n in range(6)), TopicPartition("u", 0)])),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(1, 5),
    st.tuples(st.integers(0, 20), st.integers(0, 30)),
)
def test_tasks_planned_once_read_each_offset_once_whatever_there_is_later(
    sizes: list[int],
    later: set[TopicPartition],
    least: int | None,
    most: int | None,
    bounds: tuple[int, int],
) -> None:
    ranges = [Range(TopicPartition("t", index), 0, size) for index, size in enumerate(sizes)]
    shares = plan_shares(ranges, min_partitions=least, max_records=most)
    start, end = bounds[0], sum(bounds)
    there = sorted(later)
    assert read_by(shares, there, start, end) == [(at, n) for at in there for n in range(start, end)]


def test_a_task_that_looks_later_takes_nothing_from_one_that_looked_before() -> None:
    shares = plan_shares([Range(A, 0, 1), Range(TopicPartition("u", 0), 0, 1)])
    before, after = [A, TopicPartition("u", 0)], [A, B, C, TopicPartition("u", 0)]
    known = {piece.at for piece in [*shares[0].pieces(before), *shares[1].pieces(after)]}
    assert known >= set(before)


def test_the_name_of_a_query_is_found_in_the_description_of_its_jobs() -> None:
    assert name_in("mine\nid = 12\nrunId = 3\nbatch = 0", "12") == "mine"
    assert name_in("id = 12\nrunId = 3\nbatch = 0", "12") is None
    assert name_in("something else", "12") is None
