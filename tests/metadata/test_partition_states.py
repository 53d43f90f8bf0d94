"""The rule of the ISR and the eligible leader replicas that leaders and the controller share."""

from hypothesis import given
from hypothesis import strategies as st

from riverlog.metadata.image import PartitionImage
from riverlog.metadata.partition_states import (
    after_isr_change,
    effective_min_isr,
    node_of,
    without_incomplete,
)
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
PARTITION = PartitionImage(
    (ONE, TWO, THREE), (ONE, TWO, THREE), ONE, LeaderEpoch(4), 7, BrokerEpoch(12), (), (), LeaderEpoch(2), 5
)


def test_a_replica_that_leaves_a_large_enough_isr_is_no_eligible_leader() -> None:
    node = after_isr_change(PARTITION, (ONE, TWO), min_isr=2)
    assert node == PartitionNode(ONE, LeaderEpoch(4), (ONE, TWO), 5, BrokerEpoch(12), (), (), LeaderEpoch(2))


def test_a_replica_that_leaves_an_isr_below_the_minimum_is_an_eligible_leader() -> None:
    smaller = PARTITION._replace(isr=(ONE, TWO))
    assert after_isr_change(smaller, (ONE,), min_isr=2).elr == (TWO,)


def test_all_that_leave_at_once_have_what_was_committed() -> None:
    assert after_isr_change(PARTITION, (ONE,), min_isr=2).elr == (TWO, THREE)


def test_eligible_leaders_stay_until_the_isr_has_its_minimum() -> None:
    below = PARTITION._replace(isr=(ONE,), elr=(TWO,), last_known_elr=(THREE,))
    assert after_isr_change(below, (ONE,), min_isr=2).elr == (TWO,)
    after = after_isr_change(below, (THREE, ONE), min_isr=2)
    assert (after.isr, after.elr, after.last_known_elr) == ((ONE, THREE), (), ())


def test_an_eligible_leader_that_is_in_sync_again_is_no_longer_listed() -> None:
    below = PARTITION._replace(isr=(ONE,), elr=(TWO, THREE))
    node = after_isr_change(below, (ONE, TWO), min_isr=3)
    assert (node.isr, node.elr) == ((ONE, TWO), (THREE,))


def test_who_may_have_lost_data_is_no_eligible_leader() -> None:
    below = PARTITION._replace(isr=(ONE, TWO), elr=(THREE,))
    assert after_isr_change(below, (ONE,), min_isr=3, incomplete=(TWO,)).elr == (THREE,)


def test_no_more_is_asked_than_there_are_replicas() -> None:
    single = PARTITION._replace(replicas=(ONE,), isr=(ONE,))
    assert effective_min_isr(single, 3) == 1
    assert after_isr_change(single, (ONE,), min_isr=3).elr == ()


SOME = st.sets(st.sampled_from((ONE, TWO, THREE)))


@given(before=SOME, elr=SOME, after=SOME, min_isr=st.integers(1, 4))
def test_nobody_is_lost_below_the_minimum_and_nobody_kept_at_it(
    before: set[NodeId], elr: set[NodeId], after: set[NodeId], min_isr: int
) -> None:
    partition = PARTITION._replace(isr=tuple(sorted(before)), elr=tuple(sorted(elr - before)))
    node = after_isr_change(partition, after, min_isr)
    assert node._replace(isr=partition.isr, elr=partition.elr) == node_of(partition)
    assert set(node.isr) == after
    assert set(node.isr).isdisjoint(node.elr)
    if len(after) >= min(min_isr, 3):
        assert node.elr == ()
    else:
        assert {*node.isr, *node.elr} == after | before | elr


def left(partition: PartitionImage, node_id: NodeId, *, has_log: bool = True) -> tuple[object, ...]:
    node = without_incomplete(partition, node_id, min_isr=2, has_log=has_log)
    return node.leader, node.leader_epoch, node.isr, node.elr, node.last_known_elr


def test_a_replica_that_may_lack_data_leaves_isr_elr_and_office() -> None:
    assert left(PARTITION, TWO) == (ONE, 4, (ONE, THREE), (), ())
    assert left(PARTITION, ONE) == (None, 5, (TWO, THREE), (), ())
    below = PARTITION._replace(isr=(ONE,), elr=(TWO, THREE))
    assert left(below, TWO) == (ONE, 4, (ONE,), (THREE,), ())


def test_eligible_leaders_follow_an_only_replica_in_sync_that_may_lack_data() -> None:
    assert left(PARTITION._replace(isr=(ONE,), elr=(THREE,)), ONE) == (None, 5, (THREE,), (), ())


def test_the_last_in_sync_that_may_lack_data_is_the_last_known_leader_unless_its_log_is_lost() -> None:
    alone = PARTITION._replace(isr=(ONE,))
    assert left(alone, ONE) == (None, 5, (), (), (ONE,))
    assert left(alone, ONE, has_log=False) == (None, 5, (), (), ())
