"""Who leads a partition whose state is older than a replica's log: decided from what the replicas tell."""

from collections.abc import Mapping
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from riverlog.controller.decisions.elections import Election, decide_election, decide_rebalance
from riverlog.controller.decisions.leadership import Leadership, NewState, decide_states
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId
from riverlog.model.log_end import LogEnd

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
ALL = (ONE, TWO, THREE)
TOPIC_ID = TopicId(UUID(int=1))
Ends = Mapping[NodeId, LogEnd | None]
"""Of the brokers that are alive; None for one that has told nothing."""


def log_end(epoch: int, offset: int) -> LogEnd:
    return LogEnd(LeaderEpoch(epoch), offset)


def image_of(partition: PartitionImage, ends: Ends) -> ClusterImage:
    brokers = {
        node_id: BrokerImage(
            node_id, {}, None, BrokerEpoch(10), log_ends={} if end is None else {(TOPIC_ID, 0): end}
        )
        for node_id, end in ends.items()
    }
    return ClusterImage(brokers=brokers, topics={"t": TopicImage("t", TOPIC_ID, (partition,))})


def led(leader: NodeId | None, epoch: int = 6, log_epoch: int | None = None) -> PartitionImage:
    registration = None if leader is None else BrokerEpoch(10)
    noted = None if log_epoch is None else LeaderEpoch(log_epoch)
    return PartitionImage(ALL, ALL, leader, LeaderEpoch(epoch), 3, registration, log_epoch=noted)


def decided(partition: PartitionImage, ends: Ends) -> PartitionNode | None:
    image = image_of(partition, ends)
    states = list(decide_states(image, Leadership(image.brokers, 7), ["t"]))
    assert len(states) <= 1
    return states[0].node if states else None


def elected(partition: PartitionImage, ends: Ends, kind: Election) -> NewState | Refusal:
    image = image_of(partition, ends)
    return decide_election(image, Leadership(image.brokers, 7), "t", 0, kind)


def test_what_one_replica_tells_ends_the_leadership_until_all_have_told() -> None:
    node = decided(led(ONE), {ONE: None, TWO: log_end(9, 40), THREE: None})
    assert node == PartitionNode(None, LeaderEpoch(7), ALL, 7, log_epoch=LeaderEpoch(9))
    noted = led(None, 7, 9)
    assert decided(noted, {ONE: None, TWO: log_end(9, 40), THREE: None}) is None
    assert decided(noted, {ONE: None, TWO: None, THREE: None}) is None, "it was started again"
    assert decided(noted, {ONE: log_end(6, 90), TWO: log_end(9, 40)}) is None, "one is away"


def test_the_furthest_leads_alone_above_all_epochs_when_all_have_told() -> None:
    node = decided(led(None, 7, 9), {ONE: log_end(6, 90), TWO: log_end(9, 40), THREE: log_end(9, 41)})
    assert node == PartitionNode(THREE, LeaderEpoch(10), (THREE,), 7, BrokerEpoch(10))


def test_the_same_leader_epoch_is_told_only_by_one_that_has_another_history_under_it() -> None:
    node = decided(led(ONE), {ONE: None, TWO: log_end(6, 40), THREE: None})
    assert node is not None
    assert (node.leader, node.log_epoch) == (None, 6)


def test_what_was_told_under_an_older_state_decides_nothing_more() -> None:
    assert decided(led(TWO, 10), {ONE: log_end(6, 90), TWO: log_end(9, 40), THREE: log_end(9, 41)}) is None


def test_nobody_is_preferred_while_it_is_not_known_how_far_all_are() -> None:
    ends: Ends = {ONE: log_end(6, 90), TWO: log_end(9, 40)}
    outcome = elected(led(None, 7, 9), ends, Election.PREFERRED)
    assert isinstance(outcome, Refusal)
    assert outcome.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    image = image_of(led(None, 7, 9), ends)
    assert decide_rebalance(image, Leadership(image.brokers, 7)) == []


def test_an_unclean_election_takes_the_furthest_of_those_that_have_told_far_above_those_that_have_not() -> (
    None
):
    ends: Ends = {ONE: log_end(6, 90), TWO: log_end(9, 40)}
    outcome = elected(led(None, 7, 9), ends, Election.UNCLEAN)
    assert isinstance(outcome, NewState)
    assert outcome.node == PartitionNode(
        TWO, LeaderEpoch(1009), (TWO,), 7, BrokerEpoch(10), unclean_epoch=LeaderEpoch(1009)
    )
    nobody = elected(led(None, 7, 9), {ONE: None, TWO: None}, Election.UNCLEAN)
    assert isinstance(nobody, Refusal)
    assert nobody.error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


@given(
    st.dictionaries(
        st.sampled_from(ALL), st.none() | st.builds(log_end, st.integers(-1, 12), st.integers(0, 9))
    ),
    st.sampled_from((ONE, None)),
    st.none() | st.integers(0, 12),
)
def test_decisions_settle_and_lead_only_with_the_furthest(
    ends: Ends, leader: NodeId | None, log_epoch: int | None
) -> None:
    partition = led(leader, log_epoch=log_epoch)
    for _ in range(3):
        node = decided(partition, ends)
        if node is None:
            break
        assert node.leader_epoch >= partition.leader_epoch
        if node.log_epoch is None and partition.log_epoch is not None:
            told = {node_id: end for node_id, end in ends.items() if end is not None}
            assert told.keys() == set(ALL)
            assert node.leader is not None
            assert told[node.leader] == max(told.values())
            assert node.leader_epoch > max(end.epoch for end in told.values())
        partition = PartitionImage(
            ALL,
            node.isr,
            node.leader,
            node.leader_epoch,
            partition.partition_epoch + 1,
            node.leader_broker_epoch,
            node.elr,
            node.last_known_elr,
            node.unclean_epoch,
            node.controller_epoch,
            node.log_epoch,
        )
    else:
        raise AssertionError(f"it never settles: {partition}")
