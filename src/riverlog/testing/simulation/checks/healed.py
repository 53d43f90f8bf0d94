"""What a cluster is to be again once everything has healed (I16), and what its replicas hold then (I7).

Each partition can be written soon: it is led, with as many in sync as it asks for. When nobody writes any
more, each replica holds all that was committed, byte by byte, and nothing else; one of a compacted log holds
the newest value of each key, which `compaction` knows.
"""

from collections.abc import Iterator, Sequence

from riverlog.model.ids import TopicPartition
from riverlog.replication.partition import Partition
from riverlog.storage.log.closed_log import LogFacts
from riverlog.storage.log.log import Log
from riverlog.testing.simulation.checks.ledger import PartitionLedger
from riverlog.testing.simulation.checks.replica_observer import Replicas
from riverlog.testing.simulation.checks.states import PartitionState
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode


class HealedCluster:
    def __init__(self, replicas: Replicas, nodes: Sequence[SimulatedNode]) -> None:
        self._replicas = replicas
        self._nodes = {node.node_id: node for node in nodes}
        self.outside: set[int] = set()
        """Nodes that never come back."""

    def lost(self) -> list[PartitionState]:
        """Partitions of which nobody is left who may lead: an operator has to give them up."""
        states = self._replicas.states.present.values()
        return [
            each
            for each in states
            if each.node.leader is None and not each.eligible and not each.node.last_known_elr
        ]

    def why_not_writable(self) -> str | None:
        lost = self.lost()
        for state in self._replicas.states.present.values():
            if state in lost:
                continue
            leader = None if state.node.leader is None else self._nodes[state.node.leader]
            parts = None if leader is None else leader.node
            if leader is None or parts is None or not leader.is_serving or leader.node_id in self.outside:
                return f"{state} is led by nobody who is there: {state.node}"
            image = parts.image.partition(state.topic, state.index)
            if image is None or image.leader_epoch != state.node.leader_epoch:
                return f"{state}: {leader.name} does not know that it leads: {state.node}"
            needed = min(_min_isr(parts, state.topic), len(state.replicas))
            if len(state.node.isr) < needed:
                return f"{state}: {needed} are to be in sync, and these are: {state.node}"
        return None

    def why_not_equal(self) -> str | None:
        """Nobody writes any more."""
        for state, ledger in self._written():
            end = None
            for node_id in self._inside(state):
                node = self._nodes[node_id]
                log = self._log(node, state)
                if log is None:
                    return f"{node.name} does not have {state}"
                bounds = f"{log.log_start_offset}, {log.high_watermark}, {log.log_end_offset}"
                if log.high_watermark != ledger.end or log.log_end_offset != ledger.end:
                    return f"{state} at {node.name}: committed is {ledger.end}, its bounds are {bounds}"
                holding = self._replicas.holdings.of(node, ledger)
                holding.forget()
                if holding.look() != ledger.end:
                    return f"{state} at {node.name}: from {holding.end} on it is not what was committed"
                if end not in (None, log.log_end_offset):
                    return f"{state}: logs end at {end} and {log.log_end_offset}"
                end = log.log_end_offset
        return None

    def _inside(self, state: PartitionState) -> list[int]:
        return [each for each in state.replicas if each not in self.outside]

    def _written(self) -> Iterator[tuple[PartitionState, PartitionLedger]]:
        for (topic_id, index), state in self._replicas.states.present.items():
            ledger = self._replicas.ledger.partitions.get((topic_id, index))
            if ledger is not None and ledger.end > 0:
                yield state, ledger

    def _log(self, node: SimulatedNode, state: PartitionState) -> Log | LogFacts | None:
        """Or what is known of it while it is closed. One that nobody has used since the start is opened."""
        parts, topic_partition = node.node, TopicPartition(state.topic, state.index)
        if parts is None:
            return None
        if parts.replicas.opened(topic_partition) is None:
            for at, _, facts in parts.closed_logs():
                if at == topic_partition and facts.topic_id == state.topic_id:
                    return facts
        found = node.life.run(lambda: parts.replicas.find(*topic_partition))
        return found.log if isinstance(found, Partition) and found.topic_id == state.topic_id else None


def _min_isr(parts: ObservedNode, topic: str) -> int:
    return parts._given.live_config.log_config(parts.image, topic).min_insync_replicas
