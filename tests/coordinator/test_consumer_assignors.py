"""What both assignors promise, whoever subscribes to whatever and whatever was assigned before."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riverlog.coordinator.groups.assignors import ASSIGNORS, Assignment, Subscriber
from riverlog.model.ids import TopicId

A, B, C = (TopicId(UUID(int=number)) for number in (1, 2, 3))
TOPICS = st.frozensets(st.sampled_from([A, B, C]))
SIZES = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in (A, B, C)})
MEMBER_IDS = st.sampled_from(["kim", "ann", "zoe", "bob", "eve"])
# What was assigned before may be anything that old records say: gone topics, too many partitions, two owners.
BEFORE = st.dictionaries(
    st.sampled_from([A, B, C]),
    st.frozensets(st.integers(0, 11), min_size=1).map(lambda found: tuple(sorted(found))),
)
SUBSCRIBERS = st.dictionaries(
    MEMBER_IDS,
    st.builds(Subscriber, TOPICS, BEFORE, st.none() | st.sampled_from(["i1", "i2"])),
    min_size=1,
)
ALIKE = st.builds(
    lambda topics, members: {name: each._replace(topics=topics) for name, each in members.items()},
    TOPICS,
    SUBSCRIBERS,
)

Sizes = Mapping[TopicId, int]


def sizes(assigned: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, each.values())) for each in assigned.values()]


def again(members: Mapping[str, Subscriber], assigned: Mapping[str, Assignment]) -> dict[str, Subscriber]:
    return {name: each._replace(current=assigned.get(name, {})) for name, each in members.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(members=SUBSCRIBERS, partitions=SIZES)
def test_each_partition_goes_to_one_member_that_reads_its_topic(
    name: str, members: dict[str, Subscriber], partitions: Sizes
) -> None:
    assigned = ASSIGNORS[name](members, partitions)
    given_out = [
        (topic, index)
        for member_id, assignment in assigned.items()
        for topic, indexes in assignment.items()
        for index in indexes
        if topic in members[member_id].topics
    ]
    wanted = {topic for member in members.values() for topic in member.topics}
    assert assigned.keys() == members.keys()
    assert sum(sizes(assigned)) == len(given_out)
    assert sorted(given_out) == sorted(
        (topic, index) for topic in wanted for index in range(partitions[topic])
    )


@pytest.mark.parametrize("name", ASSIGNORS)
@given(members=SUBSCRIBERS, partitions=SIZES)
def test_nothing_moves_when_nothing_has_changed(
    name: str, members: dict[str, Subscriber], partitions: Sizes
) -> None:
    assigned = ASSIGNORS[name](members, partitions)
    assert ASSIGNORS[name](again(members, assigned), partitions) == assigned


@given(members=ALIKE, partitions=SIZES)
def test_uniform_shares_differ_by_one_at_most_when_all_read_the_same(
    members: dict[str, Subscriber], partitions: Sizes
) -> None:
    shares = sizes(ASSIGNORS["uniform"](members, partitions))
    assert max(shares) - min(shares) <= 1


@given(members=SUBSCRIBERS, partitions=SIZES)
def test_no_single_move_makes_a_uniform_assignment_more_even(
    members: dict[str, Subscriber], partitions: Sizes
) -> None:
    assigned = ASSIGNORS["uniform"](members, partitions)
    share = dict(zip(assigned, sizes(assigned), strict=True))
    for owner, assignment in assigned.items():
        for topic in assignment:
            readers = [name for name, each in members.items() if topic in each.topics]
            assert share[owner] - min(share[name] for name in readers) <= 1


@given(members=ALIKE, partitions=SIZES)
def test_a_new_member_takes_only_its_share_and_nobody_else_gets_more(
    members: dict[str, Subscriber], partitions: Sizes
) -> None:
    before = ASSIGNORS["uniform"](members, partitions)
    topics = next(iter(members.values())).topics
    after = ASSIGNORS["uniform"]({**again(members, before), "newcomer": Subscriber(topics, {})}, partitions)
    for member_id, assignment in before.items():
        for topic, indexes in after[member_id].items():
            assert set(indexes) <= set(assignment[topic])


@given(members=ALIKE, partitions=SIZES, gone=st.integers(0, 4))
def test_who_stays_keeps_everything_when_a_member_goes(
    members: dict[str, Subscriber], partitions: Sizes, gone: int
) -> None:
    before = ASSIGNORS["uniform"](members, partitions)
    left = again(members, before)
    del left[sorted(left)[gone % len(left)]]
    if left:
        after = ASSIGNORS["uniform"](left, partitions)
        for member_id in left:
            for topic, indexes in before[member_id].items():
                assert set(indexes) <= set(after[member_id][topic])


@given(members=ALIKE, size=st.integers(0, 9))
def test_ranges_are_without_gaps_and_the_same_for_topics_of_one_size(
    members: dict[str, Subscriber], size: int
) -> None:
    assigned = ASSIGNORS["range"](members, dict.fromkeys((A, B, C), size))
    for assignment in assigned.values():
        assert len(set(assignment.values())) <= 1
        for indexes in assignment.values():
            assert indexes == tuple(range(indexes[0], indexes[-1] + 1))


def test_ranges_go_to_instances_first_and_then_by_member_id() -> None:
    members = {
        "a": Subscriber(frozenset({A}), {}),
        "b": Subscriber(frozenset({A}), {}),
        "z": Subscriber(frozenset({A}), {}, "instance"),
    }
    assert ASSIGNORS["range"](members, {A: 5}) == {"z": {A: (0, 1)}, "a": {A: (2, 3)}, "b": {A: (4,)}}


def test_uniform_gives_what_kafka_gives_when_members_join_one_by_one() -> None:
    """As Apache Kafka 4.3.1 answered for topics of seven and three partitions."""
    topics, partitions = frozenset({A, B}), {A: 7, B: 3}
    members: dict[str, Subscriber] = {"M": Subscriber(topics, {})}
    assigned = ASSIGNORS["uniform"](members, partitions)
    for name, expected in (
        ("A", {"M": {A: (0, 1, 2, 3, 4)}, "A": {A: (5, 6), B: (0, 1, 2)}}),
        ("Z", {"M": {A: (0, 1, 2)}, "A": {A: (5, 6), B: (0, 1)}, "Z": {A: (3, 4), B: (2,)}}),
    ):
        members = {**again(members, assigned), name: Subscriber(topics, {})}
        assigned = ASSIGNORS["uniform"](members, partitions)
        assert assigned == expected


def test_uniform_gives_what_kafka_gives_when_subscriptions_differ() -> None:
    members = {"M": Subscriber(frozenset({A, B}), {A: tuple(range(7)), B: (0, 1, 2)})}
    members["A"] = Subscriber(frozenset({A}), {})
    assigned = ASSIGNORS["uniform"](members, {A: 7, B: 3})
    assert assigned == {"M": {A: (0, 1), B: (0, 1, 2)}, "A": {A: (2, 3, 4, 5, 6)}}
    members = {**again(members, assigned), "Z": Subscriber(frozenset({B}), {})}
    assigned = ASSIGNORS["uniform"](members, {A: 7, B: 3})
    assert assigned == {"M": {A: (0, 1, 6)}, "A": {A: (2, 3, 4, 5)}, "Z": {B: (0, 1, 2)}}
