"""Who leads a partition when brokers come and go: decided from the image alone."""

from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from riverlog.controller.decisions.elections import Election, decide_election, decide_rebalance
from riverlog.controller.decisions.leadership import (
    ElectionRules,
    Leadership,
    NewState,
    decide_states,
    leads_what_others_could,
)
from riverlog.controller.decisions.refusals import Refusal
from riverlog.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from riverlog.metadata.partition_states import after_isr_change
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicId

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
ALL = (ONE, TWO, THREE)


def registered(**epochs: int) -> dict[NodeId, BrokerImage]:
    """Brokers by name and the epoch of their registration."""
    ids = {"one": ONE, "two": TWO}
    return {ids[name]: BrokerImage(ids[name], {}, None, BrokerEpoch(epoch)) for name, epoch in epochs.items()}


def image_of(*partitions: PartitionImage) -> ClusterImage:
    return ClusterImage(topics={"t": TopicImage("t", TopicId(UUID(int=1)), partitions)})


def decide(image: ClusterImage, brokers: dict[NodeId, BrokerImage], *, alone: bool = False) -> list[NewState]:
    return list(decide_states(image, Leadership(brokers, 7, alone), ["t", "gone"]))


def led(leader: NodeId | None, epoch: int, broker_epoch: int | None, version: int = 3) -> PartitionImage:
    registration = None if broker_epoch is None else BrokerEpoch(broker_epoch)
    return PartitionImage((ONE,), (ONE,), leader, LeaderEpoch(epoch), version, registration)


def test_a_partition_whose_leader_lives_stays_as_it_is() -> None:
    assert decide(image_of(led(ONE, 4, 10)), registered(one=10, two=11)) == []


def test_a_partition_whose_broker_is_gone_has_no_leader_and_keeps_its_isr() -> None:
    [state] = decide(image_of(led(ONE, 4, 10)), registered(two=11))
    assert state == NewState("t", 0, 3, PartitionNode(None, LeaderEpoch(5), (ONE,), 7, None))
    assert decide(image_of(led(None, 5, None)), registered(two=11)) == []


def test_a_broker_that_comes_back_leads_under_the_next_epoch() -> None:
    [state] = decide(image_of(led(None, 5, None)), registered(one=12))
    assert state == NewState("t", 0, 3, PartitionNode(ONE, LeaderEpoch(6), (ONE,), 7, BrokerEpoch(12)))


def test_a_broker_that_was_away_unnoticed_is_elected_again() -> None:
    [state] = decide(image_of(led(ONE, 4, 10)), registered(one=12))
    assert state.node == PartitionNode(ONE, LeaderEpoch(5), (ONE,), 7, BrokerEpoch(12))


def test_a_node_that_is_alone_leads_on() -> None:
    assert decide(image_of(led(ONE, 4, None)), registered(one=12), alone=True) == []
    [state] = decide(image_of(led(None, 4, None)), registered(one=12), alone=True)
    assert state.node == PartitionNode(ONE, LeaderEpoch(5), (ONE,), 7, None)


def test_a_half_made_topic_gets_the_states_it_lacks() -> None:
    missing = PartitionImage((TWO,), (), None, LeaderEpoch(-1), -1)
    [first, second] = decide(image_of(missing, missing, led(ONE, 0, 10)), registered(one=10))
    assert first == NewState("t", 0, None, PartitionNode(None, LeaderEpoch(0), (TWO,), 7, None))
    assert second.partition == 1


def broker(node_id: NodeId, epoch: int = 10, *, leaving: bool = False) -> BrokerImage:
    return BrokerImage(node_id, {}, None, BrokerEpoch(epoch), is_shutting_down=leaving)


def alive(*node_ids: NodeId, leaving: tuple[NodeId, ...] = ()) -> dict[NodeId, BrokerImage]:
    return {each: broker(each, leaving=each in leaving) for each in (*node_ids, *leaving)}


def replicated(
    isr: tuple[NodeId, ...],
    leader: NodeId | None,
    elr: tuple[NodeId, ...] = (),
    last_known: tuple[NodeId, ...] = (),
) -> PartitionImage:
    registration = None if leader is None else BrokerEpoch(10)
    return PartitionImage(ALL, isr, leader, LeaderEpoch(4), 3, registration, elr, last_known, None, 6)


def next_state(
    partition: PartitionImage, brokers: dict[NodeId, BrokerImage], min_isr: int = 1, *, unclean: bool = False
) -> PartitionNode | None:
    return Leadership(brokers, 7).next_state(partition, ElectionRules(min_isr, unclean))


def test_the_first_replica_in_sync_that_is_alive_leads_and_the_dead_leave_the_isr() -> None:
    node = next_state(replicated(ALL, ONE), alive(TWO, THREE))
    assert node == PartitionNode(TWO, LeaderEpoch(5), (TWO, THREE), 7, BrokerEpoch(10))


def test_a_broker_whose_directory_has_failed_counts_as_gone_there_and_nowhere_else() -> None:
    image = image_of(replicated(ALL, ONE), replicated(ALL, ONE), replicated((ONE,), ONE))
    topic_id = image.topics["t"].topic_id
    brokers = alive(*ALL)
    brokers[ONE] = brokers[ONE]._replace(offline=frozenset({(topic_id, 0), (topic_id, 2)}))
    first, third = decide(image, brokers)
    assert (first.partition, third.partition) == (0, 2)
    assert first.node == PartitionNode(TWO, LeaderEpoch(5), (TWO, THREE), 7, BrokerEpoch(10))
    assert third.node == PartitionNode(None, LeaderEpoch(5), (ONE,), 7, None), "it alone may have the data"


def test_a_follower_that_dies_leaves_the_isr_under_the_same_leader_epoch() -> None:
    node = next_state(replicated(ALL, ONE), alive(ONE, THREE))
    assert node == PartitionNode(ONE, LeaderEpoch(4), (ONE, THREE), 7, BrokerEpoch(10))


def test_who_dies_below_the_minimum_stays_an_eligible_leader() -> None:
    node = next_state(replicated((ONE, TWO), ONE), alive(ONE, THREE), min_isr=2)
    assert node is not None
    assert (node.isr, node.elr, node.leader_epoch) == ((ONE,), (TWO,), 4)


def test_the_last_in_sync_stays_in_the_isr_when_it_dies_and_nobody_leads() -> None:
    node = next_state(replicated((ONE,), ONE), alive(TWO, THREE))
    assert node == PartitionNode(None, LeaderEpoch(5), (ONE,), 7, None)
    assert next_state(replicated((ONE,), None), alive(TWO, THREE)) is None


def test_an_isr_of_which_all_are_dead_stays_as_it_was() -> None:
    node = next_state(replicated((ONE, TWO), ONE), alive(THREE))
    assert node is not None
    assert (node.leader, node.isr) == (None, (ONE, TWO))


def test_an_eligible_leader_replica_leads_when_nobody_in_sync_is_alive() -> None:
    node = next_state(replicated((ONE,), ONE, elr=(THREE,)), alive(TWO, THREE), min_isr=2)
    assert node == PartitionNode(THREE, LeaderEpoch(5), (THREE,), 7, BrokerEpoch(10), (ONE,))


def test_the_last_known_leader_leads_alone_and_uncleanly() -> None:
    node = next_state(replicated((), None, last_known=(TWO,)), alive(ONE, TWO))
    assert node == PartitionNode(TWO, LeaderEpoch(5), (TWO,), 7, BrokerEpoch(10), (), (), LeaderEpoch(5))
    assert next_state(replicated((), None, last_known=(TWO,)), alive(ONE, THREE)) is None
    assert next_state(replicated((), None, last_known=(ONE, TWO)), alive(ONE, TWO)) is None
    assert next_state(replicated((), None), alive(ONE, TWO)) is None


def test_an_unclean_election_takes_any_that_is_alive_and_forgets_the_others() -> None:
    before = replicated((ONE,), ONE, elr=(TWO,))
    node = next_state(before, alive(THREE), min_isr=2, unclean=True)
    assert node == PartitionNode(THREE, LeaderEpoch(5), (THREE,), 7, BrokerEpoch(10), (), (), LeaderEpoch(5))


def test_an_unclean_election_is_the_last_resort() -> None:
    node = next_state(replicated((ONE, TWO), ONE), alive(TWO, THREE), unclean=True)
    assert node is not None
    assert (node.leader, node.unclean_epoch) == (TWO, None)


def test_a_leader_that_is_about_to_go_hands_over_and_leaves_the_isr() -> None:
    node = next_state(replicated(ALL, ONE), alive(TWO, THREE, leaving=(ONE,)))
    assert node == PartitionNode(TWO, LeaderEpoch(5), (TWO, THREE), 7, BrokerEpoch(10))
    again = next_state(replicated((ONE,), ONE, elr=(TWO,)), alive(TWO, leaving=(ONE,)), min_isr=2)
    assert again == PartitionNode(TWO, LeaderEpoch(5), (TWO,), 7, BrokerEpoch(10), (ONE,))


def test_a_leader_that_is_about_to_go_leads_on_while_nobody_else_can() -> None:
    assert next_state(replicated((ONE,), ONE), alive(TWO, leaving=(ONE,))) is None
    node = next_state(replicated((ONE, TWO), ONE), alive(leaving=(ONE, TWO)))
    assert node is None


def test_the_eligible_leaders_end_when_the_minimum_is_reached_by_a_setting() -> None:
    before = replicated((ONE,), ONE, elr=(TWO,))
    assert next_state(before, alive(ONE), min_isr=2) is None
    node = next_state(before, alive(ONE), min_isr=1)
    assert node == PartitionNode(ONE, LeaderEpoch(4), (ONE,), 7, BrokerEpoch(10))


def test_a_broker_serves_until_it_leads_nothing_that_another_could_lead() -> None:
    def is_awaited(partition: PartitionImage, brokers: dict[NodeId, BrokerImage]) -> bool:
        topics = {"t": TopicImage("t", TopicId(UUID(int=1)), (partition,))}
        return leads_what_others_could(ClusterImage(brokers=brokers, topics=topics), ONE)

    assert is_awaited(replicated(ALL, ONE), alive(TWO, leaving=(ONE,)))
    assert is_awaited(replicated((ONE,), ONE, elr=(TWO,)), alive(TWO, leaving=(ONE,)))
    assert not is_awaited(replicated((ONE,), ONE), alive(TWO, leaving=(ONE,)))
    assert not is_awaited(replicated(ALL, ONE), alive(leaving=(ONE, TWO)))
    assert not is_awaited(replicated(ALL, TWO), alive(TWO, leaving=(ONE,)))


def election(partition: PartitionImage, brokers: dict[NodeId, BrokerImage], kind: Election) -> object:
    image = ClusterImage(brokers=brokers, topics={"t": TopicImage("t", TopicId(UUID(int=1)), (partition,))})
    outcome = decide_election(image, Leadership(brokers, 7), "t", 0, kind)
    return outcome.error if isinstance(outcome, Refusal) else (outcome.node.leader, outcome.node.leader_epoch)


def test_a_preferred_election_is_only_to_a_replica_in_sync() -> None:
    asked = Election.PREFERRED
    assert election(replicated(ALL, TWO), alive(*ALL), asked) == (ONE, 5)
    assert election(replicated(ALL, ONE), alive(*ALL), asked) is ErrorCode.ELECTION_NOT_NEEDED
    refused = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert election(replicated((TWO, THREE), TWO), alive(*ALL), asked) is refused
    assert election(replicated((TWO,), TWO, elr=(ONE,)), alive(*ALL), asked) is refused
    assert election(replicated(ALL, TWO), alive(TWO, THREE), asked) is refused
    assert election(replicated(ALL, TWO), alive(TWO, leaving=(ONE,)), asked) is refused


def test_an_unclean_election_that_is_asked_for() -> None:
    asked = Election.UNCLEAN
    assert election(replicated((ONE,), None), alive(THREE), asked) == (THREE, 5)
    assert election(replicated((), None), alive(ONE), asked) == (ONE, 5)
    assert election(replicated(ALL, ONE), alive(ONE), asked) is ErrorCode.ELECTION_NOT_NEEDED
    assert election(replicated((ONE,), None), {}, asked) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_leaders_go_back_to_their_preferred_replicas_fifty_at_a_time() -> None:
    moved = [replicated(ALL, TWO), replicated((TWO,), TWO), replicated(ALL, ONE)] + [
        replicated(ALL, TWO)
    ] * 60
    brokers = alive(*ALL)
    image = ClusterImage(brokers=brokers, topics={"t": TopicImage("t", TopicId(UUID(int=1)), tuple(moved))})
    states = decide_rebalance(image, Leadership(brokers, 7))
    assert [state.partition for state in states] == [0, *range(3, 52)]
    assert {(state.node.leader, state.node.isr) for state in states} == {(ONE, ALL)}


brokers = st.dictionaries(st.sampled_from([ONE, TWO, NodeId(3)]), st.integers(1, 4)).map(
    lambda found: {each: BrokerImage(each, {}, None, BrokerEpoch(epoch)) for each, epoch in found.items()}
)


class Replicas:
    """A partition under a leader that keeps to the rules: what is committed, and who has it."""

    def __init__(self, min_isr: int) -> None:
        self.min_isr = min_isr
        self.image = replicated(ALL, ONE)
        self.epochs = dict.fromkeys(ALL, 10)
        self.brokers = alive(*ALL)
        self.ends = dict.fromkeys(ALL, 0)
        self.committed = 0
        self.led = {4: ONE}

    def leader(self) -> NodeId | None:
        leader = self.image.leader
        return leader if leader in self.brokers else None

    def take(self, node: PartitionNode | None) -> None:
        if node is None:
            return
        was = self.image
        assert node.leader_epoch >= was.leader_epoch
        assert node.leader is None or node.leader in node.isr
        assert was.isr == () or node.isr
        if node.leader is not None and node.leader_epoch > was.leader_epoch:
            assert node.leader_epoch not in self.led
            self.led[node.leader_epoch] = node.leader
            assert self.ends[node.leader] >= self.committed, "a leader without what is committed"
            for each in ALL:  # Who follows truncates to what the leader has.
                self.ends[each] = min(self.ends[each], self.ends[node.leader])
        self.image = PartitionImage(ALL, *_fields(node, was.partition_epoch + 1))

    def settle(self) -> None:
        self.take(Leadership(self.brokers, 7).next_state(self.image, ElectionRules(self.min_isr)))

    def commit(self) -> None:
        enough = len(self.image.isr) >= min(self.min_isr, len(ALL))
        if self.leader() is not None and enough and not self.image.elr:
            self.committed = max(self.committed, min(self.ends[each] for each in self.image.isr))


def _fields(node: PartitionNode, version: int) -> tuple[Any, ...]:
    return (
        node.isr,
        node.leader,
        node.leader_epoch,
        version,
        node.leader_broker_epoch,
        node.elr,
        node.last_known_elr,
        node.unclean_epoch,
        node.controller_epoch,
    )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["die", "come", "leave", "write", "copy", "shrink", "grow", "settle"]),
        st.sampled_from(ALL),
    ),
    max_size=60,
)


@settings(max_examples=400)
@given(STEPS, st.integers(1, 3))
def test_whoever_is_elected_has_all_that_was_committed(steps: list[tuple[str, NodeId]], min_isr: int) -> None:
    model = Replicas(min_isr)
    for step, who in steps:
        leader = model.leader()
        if step == "die":
            model.brokers.pop(who, None)
        elif step == "come" and who not in model.brokers:
            model.epochs[who] += 1
            model.brokers[who] = broker(who, model.epochs[who])
        elif step == "leave" and who in model.brokers:
            model.brokers[who] = broker(who, model.epochs[who], leaving=True)
        elif step == "settle":
            model.settle()
        elif leader is None or model.epochs[leader] != model.image.leader_broker_epoch:
            continue  # It does not lead under this registration.
        elif step == "write":
            model.ends[leader] += 1
        elif step == "copy" and who in model.brokers:
            model.ends[who] = model.ends[leader]
        elif step == "shrink" and who != leader:
            rest = [each for each in model.image.isr if each != who]
            model.take(after_isr_change(model.image, rest, model.min_isr))
        elif step == "grow" and who in model.brokers and model.ends[who] >= model.ends[leader]:
            model.take(after_isr_change(model.image, [*model.image.isr, who], model.min_isr))
        model.commit()
    model.brokers = alive(*ALL)
    model.settle()
    assert model.leader() is not None


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
def test_every_decision_needs_no_second_and_takes_nobody_into_the_isr(
    before: PartitionImage, found: dict[NodeId, BrokerImage]
) -> None:
    changes = decide(image_of(before), found)
    after = before
    for change in changes:
        node = change.node
        assert set(node.isr) <= set(before.isr)
        assert node.isr
        if node.leader != before.leader or node.leader_broker_epoch != before.leader_broker_epoch:
            assert node.leader_epoch == before.leader_epoch + 1
        assert node.leader is None or (node.leader in found and node.leader in before.isr)
        after = PartitionImage(before.replicas, *_fields(node, 1))
    assert (after.leader is not None) == any(each in found for each in before.isr)
    assert decide(image_of(after), found) == []
