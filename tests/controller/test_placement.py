"""Where replicas go: over racks and hosts, and leaders evenly."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from riverlog.controller.decisions.placement import arrange, host_of, place
from riverlog.metadata.image import BrokerImage
from riverlog.model.ids import NodeId


def broker(node_id: int, rack: str | None = None, host: str | None = None) -> BrokerImage:
    return BrokerImage(NodeId(node_id), {}, rack, host=host)


clusters = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.sampled_from([None, "1", "2", "3"])),
    min_size=1,
    max_size=8,
).map(
    lambda found: [
        # A host is in one rack.
        broker(3 * number, rack, None if host is None else f"{rack}{host}")
        for number, (rack, host) in enumerate(found)
    ]
)


@given(clusters, st.integers(1, 60), st.integers(0, 1000), st.data())
def test_no_broker_twice_leaders_even_and_hosts_and_racks_distinct_while_there_are_enough(
    brokers: list[BrokerImage], partitions: int, start: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(brokers)))
    placed = place(brokers, partitions=partitions, replication_factor=factor, start=start)
    known = {each.node_id: each for each in brokers}
    hosts, racks = {host_of(each) for each in brokers}, {each.rack for each in brokers}
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({host_of(known[each]) for each in replicas}) == min(factor, len(hosts))
        assert len({known[each].rack for each in replicas}) == min(factor, len(racks))
    leads = [sum(replicas[0] == node_id for replicas in placed) for node_id in known]
    assert max(leads) - min(leads) <= 1


@given(clusters, st.integers(1, 20), st.integers(1, 20), st.integers(0, 1000), st.integers(0, 1000))
def test_leaders_stay_even_when_a_topic_grows(
    brokers: list[BrokerImage], first: int, more: int, start: int, other_start: int
) -> None:
    placed = place(brokers, partitions=first, replication_factor=1, start=start)
    placed += place(brokers, partitions=more, replication_factor=1, start=other_start, after=placed[-1][0])
    leads = Counter(replicas[0] for replicas in placed)
    counts = [leads[each.node_id] for each in brokers]
    assert max(counts) - min(counts) <= 1


@given(clusters)
def test_neighbours_in_the_round_are_in_other_racks_while_several_have_brokers_left(
    brokers: list[BrokerImage],
) -> None:
    order = arrange(brokers)
    assert sorted(each.node_id for each in order) == [each.node_id for each in brokers]
    smallest = min(Counter(each.rack for each in brokers).values())
    racks = len({each.rack for each in brokers})
    for turn in range(smallest):
        assert len({each.rack for each in order[turn * racks : (turn + 1) * racks]}) == racks


def test_brokers_of_one_rack_and_hosts_of_their_own_are_taken_in_the_order_of_their_numbers() -> None:
    placed = place([broker(2), broker(1), broker(3)], partitions=4, replication_factor=2, start=0)
    assert placed == ((1, 2), (2, 3), (3, 1), (1, 3))


def test_replicas_avoid_the_host_of_the_leader_before_its_rack() -> None:
    brokers = [broker(1, "a", "x"), broker(2, "a", "x"), broker(3, "a", "y")]
    placed = place(brokers, partitions=6, replication_factor=2, start=0)
    assert all(3 in replicas for replicas in placed)
