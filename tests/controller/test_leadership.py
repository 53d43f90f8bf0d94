"""Who leads a partition when brokers come and go: decided from the image alone."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from riverlog.controller.leadership import Leadership, NewState, decide_states
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import LeaderEpoch, NodeId

ONE, TWO = NodeId(1), NodeId(2)


def registered(**epochs: int) -> dict[NodeId, BrokerImage]:
    """Brokers by name and the epoch of their registration."""
    ids = {"one": ONE, "two": TWO}
    return {ids[name]: BrokerImage(ids[name], {}, None, epoch) for name, epoch in epochs.items()}


def image_of(*partitions: PartitionImage) -> ClusterImage:
    return ClusterImage(topics={"t": TopicImage("t", UUID(int=1), partitions)})


def decide(image: ClusterImage, brokers: dict[NodeId, BrokerImage], *, alone: bool = False) -> list[NewState]:
    return list(decide_states(image, Leadership(brokers, 7, alone), ["t", "gone"]))


def led(leader: NodeId | None, epoch: int, broker_epoch: int | None, version: int = 3) -> PartitionImage:
    return PartitionImage((ONE,), (ONE,), leader, LeaderEpoch(epoch), version, broker_epoch)


def test_a_partition_whose_leader_lives_stays_as_it_is() -> None:
    assert decide(image_of(led(ONE, 4, 10)), registered(one=10, two=11)) == []


def test_a_partition_whose_broker_is_gone_has_no_leader_and_keeps_its_isr() -> None:
    [state] = decide(image_of(led(ONE, 4, 10)), registered(two=11))
    assert state == NewState("t", 0, 3, PartitionNode(None, LeaderEpoch(5), (ONE,), 7, None))
    assert decide(image_of(led(None, 5, None)), registered(two=11)) == []


def test_a_broker_that_comes_back_leads_under_the_next_epoch() -> None:
    [state] = decide(image_of(led(None, 5, None)), registered(one=12))
    assert state == NewState("t", 0, 3, PartitionNode(ONE, LeaderEpoch(6), (ONE,), 7, 12))


def test_a_broker_that_was_away_unnoticed_is_elected_again() -> None:
    [state] = decide(image_of(led(ONE, 4, 10)), registered(one=12))
    assert state.node == PartitionNode(ONE, LeaderEpoch(5), (ONE,), 7, 12)


def test_a_node_that_is_alone_leads_on() -> None:
    assert decide(image_of(led(ONE, 4, None)), registered(one=12), alone=True) == []
    [state] = decide(image_of(led(None, 4, None)), registered(one=12), alone=True)
    assert state.node == PartitionNode(ONE, LeaderEpoch(5), (ONE,), 7, None)


def test_a_half_made_topic_gets_the_states_it_lacks() -> None:
    missing = PartitionImage((TWO,), (), None, LeaderEpoch(-1), -1)
    [first, second] = decide(image_of(missing, missing, led(ONE, 0, 10)), registered(one=10))
    assert first == NewState("t", 0, None, PartitionNode(None, LeaderEpoch(0), (TWO,), 7, None))
    assert second.partition == 1


brokers = st.dictionaries(st.sampled_from([ONE, TWO, NodeId(3)]), st.integers(1, 4)).map(
    lambda found: {each: BrokerImage(each, {}, None, epoch) for each, epoch in found.items()}
)
states = st.builds(
    lambda replicas, in_sync, leader, epoch, broker_epoch: PartitionImage(
        replicas, replicas[:in_sync], replicas[0] if leader else None, LeaderEpoch(epoch), 0, broker_epoch
    ),
    st.permutations([ONE, TWO, NodeId(3)]).map(tuple),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(1, 4)),
)


@given(states, brokers)
def test_every_decision_rises_the_epoch_keeps_the_isr_and_needs_no_second(
    before: PartitionImage, alive: dict[NodeId, BrokerImage]
) -> None:
    changes = decide(image_of(before), alive)
    after = before
    for change in changes:
        node = change.node
        assert node.leader_epoch == before.leader_epoch + 1
        assert node.isr == before.isr
        assert node.leader is None or (node.leader in alive and node.leader in before.isr)
        after = PartitionImage(
            before.replicas, node.isr, node.leader, node.leader_epoch, 1, node.leader_broker_epoch
        )
    assert (after.leader is not None) == any(each in alive for each in before.isr)
    assert decide(image_of(after), alive) == []
