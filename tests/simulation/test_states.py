"""What the simulator holds against the partition states that are written to the store."""

from collections import Counter
from uuid import UUID

import pytest

from riverlog.metadata import layout, payloads
from riverlog.metadata.payloads import PartitionNode, TopicNode
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId
from riverlog.model.metadata_store import Create, Set
from riverlog.testing.simulated_store import SimulatedEnsemble
from riverlog.testing.simulation.checks.states import PartitionStates
from riverlog.testing.simulation.violations import Violation

_ONE, _TWO = NodeId(1), NodeId(2)
_STATE = layout.partition_state("t", 0)


class _Store:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._ensemble = SimulatedEnsemble()
        self.states = PartitionStates(self._ensemble, self.counts)
        topic = payloads.encode_topic(TopicNode(TopicId(UUID(int=7)), ((_ONE, _TWO),)))
        above = [layout.parent(layout.TOPICS), layout.TOPICS]
        for path in [*above, layout.topic("t"), layout.partitions("t"), layout.partition("t", 0)]:
            self._ensemble.commit([Create(path, topic)], 0)
        self._ensemble.commit([Create(_STATE, payloads.encode_partition(_state(_ONE, 5)))], 0)
        self.states.look()

    def write(self, state: PartitionNode) -> None:
        self._ensemble.commit([Set(_STATE, payloads.encode_partition(state))], 0)
        self.states.look()


def _state(
    leader: NodeId | None, epoch: int, isr: tuple[NodeId, ...] = (_ONE, _TWO), controller_epoch: int = 3
) -> PartitionNode:
    return PartitionNode(leader, LeaderEpoch(epoch), isr, controller_epoch)


@pytest.fixture
def store() -> _Store:
    return _Store()


def test_elections_are_counted(store: _Store) -> None:
    store.write(_state(_TWO, 6))
    store.write(_state(None, 7))
    store.write(_state(_ONE, 8, (_ONE,)))
    assert store.counts["elections"] == 2


@pytest.mark.parametrize(
    ("state", "broken"),
    [
        (_state(_ONE, 4), "I8: t-0: the leader epoch goes back"),
        (_state(_TWO, 5), "I8: t-0: two leaders of one epoch"),
        (_state(_TWO, 6, (_ONE,)), "I8: t-0: the leader 2 is not in sync"),
        (_state(None, 6, ()), "I8: t-0: nobody is left who may lead"),
        (_state(_TWO, 6, (_TWO, NodeId(9))), "I8: t-0: .* names others than the replicas"),
        (_state(_TWO, 6, controller_epoch=2), "I17: t-0: the controller epoch goes back"),
    ],
)
def test_a_state_that_may_not_be_written_is_noticed(store: _Store, state: PartitionNode, broken: str) -> None:
    with pytest.raises(Violation, match=broken):
        store.write(state)


@pytest.mark.parametrize(
    ("state", "is_replaceable"),
    [
        (_state(_ONE, 6), True),
        (_state(_ONE, 6, (_ONE,)), False),
        (_state(None, 6, (_ONE,)), False),
        (_state(None, 6), True),
        (_state(_TWO, 6, (_TWO,)), True),
        (_state(_ONE, 6, (_ONE,))._replace(elr=(_TWO,)), True),
        (_state(None, 6, (_ONE,))._replace(last_known_elr=(_TWO,)), True),
    ],
)
def test_a_leader_that_only_it_can_follow_is_not_replaceable(
    store: _Store, state: PartitionNode, is_replaceable: bool
) -> None:
    """Also after the store has taken it for dead, and calls the partition led by nobody."""
    store.write(state)
    assert store.states.is_replaceable(TopicId(UUID(int=7)), 0, _ONE) is is_replaceable
