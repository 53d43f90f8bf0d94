"""Every member of an ISR or ELR holds everything that is committed, whenever one is written, and whenever
something is committed (I8).

A machine that has lost power or a disk may lack something, and be in an ISR until it has started again: it
leaves what it was in by itself before it serves. So it is looked at when it does. With `riverlog.acks.fsync`
a power cut is no excuse.
"""

from collections.abc import Mapping

from riverlog.model.ids import NodeId
from riverlog.testing.simulation.checks.ledger import PartitionLedger
from riverlog.testing.simulation.checks.replica_observer import Replicas
from riverlog.testing.simulation.checks.states import PartitionState
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.violations import Violation


class MembershipCheck:
    def __init__(self, replicas: Replicas, nodes: Mapping[str, SimulatedNode]) -> None:
        self._replicas, self._nodes = replicas, nodes
        self._suspects: set[str] = set()
        replicas.states.on_written.append(self._check)
        replicas.on_committed.append(self._check_committed)
        replicas.states.losses.may_lack = self._may_lack

    def note_loss(self, node: SimulatedNode) -> None:
        """It may lack what it has said it has, until it serves again."""
        self._suspects.add(node.name)

    def note_serving(self, node: SimulatedNode) -> None:
        if node.name not in self._suspects:
            return
        self._suspects.discard(node.name)
        for state in self._replicas.states.present.values():
            if node.node_id in state.eligible:
                self._check(state)

    def _may_lack(self, node_id: NodeId) -> bool:
        return any(node.name in self._suspects for node in self._nodes.values() if node.node_id == node_id)

    def _check_committed(self, ledger: PartitionLedger) -> None:
        state = self._replicas.states.present.get((ledger.topic_id, ledger.index))
        if state is not None:
            self._check(state)

    def _check(self, state: PartitionState) -> None:
        ledger = self._replicas.ledger.partitions.get((state.topic_id, state.index))
        if ledger is None or ledger.end == 0 or _is_being_cut(state, ledger.unclean_epoch):
            return
        for node in self._nodes.values():
            if node.node_id not in state.eligible or node.name in self._suspects:
                continue
            held = self._replicas.holdings.of(node, ledger).look()
            if held < ledger.end:
                what = f"{node.name} has what is committed up to {held}, not to {ledger.end}"
                raise Violation("I8", f"{state}: {what}, and is counted in: {state.node}")


def _is_being_cut(state: PartitionState, known: int) -> bool:
    """An unclean election whose leader has not begun to lead: what it lacks is still in the ledger."""
    unclean = state.node.unclean_epoch
    return unclean is not None and unclean > known
