"""The states of all partitions as they stand in the store, one after the other as they are written.

Epochs of leaders and controllers only rise, one epoch has one leader, a leader is in sync, and somebody is
left who may lead (I8, I17). When all is quiet every node knows what the store says (I16).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from riverlog.metadata import layout, payloads
from riverlog.metadata.payloads import PartitionNode
from riverlog.model.ids import NodeId
from riverlog.model.metadata_store import Operation
from riverlog.testing.simulated_store import SimulatedEnsemble
from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.violations import Violation

_SUFFIX: Final = "/state"


@dataclass(frozen=True, slots=True)
class PartitionState:
    topic: str
    topic_id: UUID
    index: int
    replicas: tuple[NodeId, ...]
    node: PartitionNode

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def eligible(self) -> set[NodeId]:
        """Those that may lead: everything that is committed is with each of them."""
        return {*self.node.isr, *self.node.elr}


class PartitionStates:
    def __init__(self, ensemble: SimulatedEnsemble, counts: "Counter[str]") -> None:
        self._ensemble, self._counts = ensemble, counts
        self._pending: list[str] = []
        self.present: dict[tuple[UUID, int], PartitionState] = {}
        self._ids: dict[str, UUID] = {}
        ensemble.on_changed = self._note
        ensemble.on_refused = lambda operations: self._count("written too late", operations)
        ensemble.on_unanswered = lambda operations: self._count("not answered", operations)

    def _count(self, what: str, operations: Sequence[Operation]) -> None:
        if any(is_state(each.path) for each in operations):
            self._counts[f"partition state {what}"] += 1

    def _note(self, paths: Sequence[str]) -> None:
        self._pending += [path for path in paths if is_state(path)]

    def look(self) -> None:
        """A step is over in which something may have been written."""
        while self._pending:
            self._look_at(self._pending.pop(0))

    def _look_at(self, path: str) -> None:
        written = self._ensemble.get(path)
        topic, index = path.split("/")[3], int(path.split("/")[5])
        node = self._ensemble.get(layout.topic(topic))
        if written is None or node is None:
            self.present.pop((self._ids.get(topic, UUID(int=0)), index), None)
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
        _check(before, state)
        self.present[of_topic.topic_id, index] = state
        if before is not None and before.node.leader_epoch < state.node.leader_epoch:
            self._counts["elections"] += state.node.leader is not None

    def why_not_agreed(self, nodes: Iterable[SimulatedNode]) -> str | None:
        """Why the cluster is not as it is to be when everything has healed: each partition is led with all
        its replicas in sync, and every node knows it."""
        nodes = list(nodes)
        for state in self.present.values():
            told = state.node
            if told.leader is None or set(told.isr) != set(state.replicas):
                return f"{state}: not every replica is in sync: {told}"
            for node in nodes:
                image = None if node.node is None else node.node.image.partition(state.topic, state.index)
                known = None if image is None else (image.leader, image.leader_epoch, set(image.isr))
                if known != (told.leader, told.leader_epoch, set(told.isr)):
                    return f"{state}: {node.name} knows {known}, the store says {told}"
        return None


def is_state(path: str) -> bool:
    return path.endswith(_SUFFIX) and path.startswith(layout.TOPICS)


def _check(before: PartitionState | None, after: PartitionState) -> None:
    state = after.node
    if state.leader is not None and state.leader not in state.isr:
        raise Violation("I8", f"{after}: the leader {state.leader} is not in sync: {state}")
    if not after.eligible:
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
