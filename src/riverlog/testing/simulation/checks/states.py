"""The states of all partitions as they stand in the store, one after the other as they are written.

Epochs of leaders and controllers only rise, one epoch has one leader, a leader is in sync and comes from
those that were in sync or eligible, and somebody is left who may lead (I8, I17). What else a leader may be is
an unclean election, which the state says, and which the topic allows, or an operator, or the loss of the last
replica's tail (I9). When all is quiet every node knows what the store says (I16).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from riverlog.metadata import layout, payloads
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import NodeId, TopicId
from riverlog.model.metadata_store import Operation
from riverlog.testing.simulated_store import SimulatedEnsemble
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.violations import Violation

_SUFFIX: Final = "/state"


@dataclass(frozen=True, slots=True)
class PartitionState:
    topic: str
    topic_id: TopicId
    index: int
    replicas: tuple[NodeId, ...]
    node: PartitionNode

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def eligible(self) -> set[NodeId]:
        """Those that may lead: everything that is committed is with each of them."""
        return {*self.node.isr, *self.node.elr}


class Losses:
    """What may be lost, and why."""

    def __init__(self) -> None:
        self.allows_unclean = False
        """`unclean.leader.election.enable`."""
        self.may_lack: Callable[[NodeId], bool] = lambda node_id: False
        """Whether a node's disk may have lost something since it was last registered."""
        self.given_up: set[tuple[str, int]] = set()
        """Partitions for which an operator has asked for an unclean election."""


class PartitionStates:
    def __init__(self, ensemble: SimulatedEnsemble, counts: "Counter[str]") -> None:
        self._ensemble, self._counts = ensemble, counts
        self.losses = Losses()
        self.on_written: list[Callable[[PartitionState], None]] = []
        """Hear of every state."""
        self._elected: dict[tuple[TopicId, int, int], PartitionNode] = {}
        self.pending: list[str] = []
        """Paths that were written and not looked at."""
        self.present: dict[tuple[TopicId, int], PartitionState] = {}
        self._ids: dict[str, TopicId] = {}
        ensemble.on_changed = self._note
        ensemble.on_refused = lambda operations: self._count("written too late", operations)
        ensemble.on_unanswered = lambda operations: self._count("not answered", operations)

    def _count(self, what: str, operations: Sequence[Operation]) -> None:
        if any(is_state(each.path) for each in operations):
            self._counts[f"partition state {what}"] += 1

    def _note(self, paths: Sequence[str]) -> None:
        self.pending += [path for path in paths if is_state(path)]

    def look(self) -> None:
        """A step is over in which something may have been written."""
        while self.pending:
            self._look_at(self.pending.pop(0))

    def _look_at(self, path: str) -> None:
        written = self._ensemble.get(path)
        topic, index = path.split("/")[3], int(path.split("/")[5])
        node = self._ensemble.get(layout.topic(topic))
        if written is None or node is None:
            if topic in self._ids:
                self.present.pop((self._ids[topic], index), None)
            return
        of_topic = payloads.decode_topic(topic, node.data)
        self._ids[topic] = of_topic.topic_id
        state = PartitionState(
            topic,
            of_topic.topic_id,
            index,
            of_topic.replicas[index],
            payloads.decode_partition(path, written.data),
        )
        before = self.present.get((of_topic.topic_id, index))
        if before is not None and before.node == state.node:
            return
        _check(before, state, self.losses)
        self._check_term(before, state)
        self.present[of_topic.topic_id, index] = state
        self._elected.setdefault((of_topic.topic_id, index, state.node.leader_epoch), state.node)
        if before is not None:
            self._count_change(before.node, state.node)
        for listener in self.on_written:
            listener(state)

    def _check_term(self, before: PartitionState | None, after: PartitionState) -> None:
        """Only the present controller elects. A broker that leaves what it led elects nobody."""
        is_elected = before is None or before.node.leader_epoch < after.node.leader_epoch
        term = self._ensemble.get(layout.CONTROLLER_EPOCH)
        if is_elected and after.node.leader is not None and term is not None:
            present = int(term.data)
            if after.node.controller_epoch < present:
                what = f"elected by a controller of epoch {after.node.controller_epoch} in that of {present}"
                raise Violation("I17", f"{after}: {what}: {after.node}")

    def _count_change(self, before: PartitionNode, after: PartitionNode) -> None:
        counts = self._counts
        if before.leader_epoch < after.leader_epoch:
            counts["elections"] += after.leader is not None
            counts["unclean elections"] += after.unclean_epoch == after.leader_epoch
            counts["elections from the ELR"] += after.leader in before.elr
        else:
            counts["ISR shrinks"] += bool(set(before.isr) - set(after.isr))
            counts["ISR expands"] += bool(set(after.isr) - set(before.isr))
        counts["unclean restarts"] += bool(before.isr) and not after.isr

    def elected(self, topic_id: TopicId, index: int, epoch: int) -> PartitionNode | None:
        """The state with which the epoch began."""
        return self._elected.get((topic_id, index, epoch))

    def is_replaceable(self, topic_id: TopicId, index: int, leader: NodeId) -> bool:
        """Whether another than this leader can be elected while it is taken for dead, or has been."""
        state = self.present.get((topic_id, index))
        if state is None or len(state.replicas) == 1:
            return False
        others = {*state.eligible, *state.node.last_known_elr, state.node.leader} - {leader, None}
        return bool(others) or self.losses.allows_unclean

    def why_not_agreed(self, nodes: Iterable[SimulatedNode]) -> str | None:
        """Why the cluster is not as it is to be when everything has healed: each partition is led with all
        its replicas in sync, as far as they are among these nodes, and every node knows it."""
        nodes = list(nodes)
        present = {node.node_id for node in nodes}
        for state in self.present.values():
            told = state.node
            if told.leader is None or set(told.isr) != present.intersection(state.replicas):
                return f"{state}: not every replica is in sync: {told}"
            for node in nodes:
                image = None if node.node is None else node.node.image.partition(state.topic, state.index)
                known = None if image is None else (image.leader, image.leader_epoch, set(image.isr))
                if known != (told.leader, told.leader_epoch, set(told.isr)):
                    return f"{state}: {node.name} knows {known}, the store says {told}"
        return None


def is_state(path: str) -> bool:
    return path.endswith(_SUFFIX) and path.startswith(layout.TOPICS)


def _check(before: PartitionState | None, after: PartitionState, losses: Losses) -> None:
    state = after.node
    if state.leader is not None and state.leader not in state.isr:
        raise Violation("I8", f"{after}: the leader {state.leader} is not in sync: {state}")
    if not after.eligible and (before is None or not all(map(losses.may_lack, before.eligible))):
        raise Violation("I8", f"{after}: nobody is left who may lead: {state}")
    if not after.eligible <= set(after.replicas):
        raise Violation("I8", f"{after}: {state} names others than the replicas {after.replicas}")
    if before is None:
        return
    old = before.node
    if state.leader_epoch < old.leader_epoch:
        raise Violation("I8", f"{after}: the leader epoch goes back, {old} to {state}")
    if state.controller_epoch < old.controller_epoch:
        raise Violation("I17", f"{after}: the controller epoch goes back, {old} to {state}")
    who, was = (state.leader, state.leader_broker_epoch), (old.leader, old.leader_broker_epoch)
    if state.leader_epoch == old.leader_epoch and who != was:
        raise Violation("I8", f"{after}: two leaders of one epoch, {old} and {state}")
    if state.unclean_epoch != old.unclean_epoch:
        _check_unclean(before, after, losses)
    elif state.leader is not None and who != was and state.leader not in before.eligible:
        raise Violation("I8", f"{after}: the leader was neither in sync nor eligible, {old} to {state}")


def _check_unclean(before: PartitionState, after: PartitionState, losses: Losses) -> None:
    old, state = before.node, after.node
    is_last_known = not before.eligible and old.last_known_elr == (state.leader,)
    is_allowed = losses.allows_unclean or (after.topic, after.index) in losses.given_up
    if state.unclean_epoch != state.leader_epoch or not (is_last_known or is_allowed):
        raise Violation("I9", f"{after}: an unclean election that nobody allows, {old} to {state}")
