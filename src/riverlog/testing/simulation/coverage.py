"""What a run has come across, counted, so that a profile in which something never happens is noticed."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from riverlog.testing.simulation.nodes import SimulatedNode
from riverlog.testing.simulation.violations import Violation
from riverlog.testing.simulation.world import World

MUST_HAPPEN: Final = (
    "unsynced bytes lost",
    "torn writes",
    "names lost",
    "cold reads",
    "batches acknowledged",
    "repetitions acknowledged",
    "transactions committed",
    "transactions aborted",
    "transactions left open",
    "rebalances",
    "offsets committed",
    "records deleted",
    "topics deleted",
    "rebalances cut off",
)
"""Besides every fault that the profile draws."""


class Coverage:
    def __init__(self, world: World, node: SimulatedNode) -> None:
        self._world, self._node = world, node
        self._faults: Counter[str] = Counter()

    def note_fault(self, fault: Mapping[str, Any]) -> None:
        self._faults[f"fault {fault['fault']}"] += 1

    def check_quiet(self) -> None:
        """Nothing is going on any more: no transaction is open past its time (I14)."""
        parts = self._node.node
        if parts is None:
            return
        for partition in parts.replicas:
            log = partition.log
            if log.is_online and log.last_stable_offset < log.high_watermark:
                bounds = f"{log.last_stable_offset} of {log.high_watermark}"
                raise Violation("I14", f"{partition.topic_partition}: a transaction stays open at {bounds}")

    def totals(self) -> "Counter[str]":
        counts, losses = self._world.counts, self._node.disk.losses
        totals = Counter(self._faults)
        totals.update(
            {
                "unsynced bytes lost": losses.lost_bytes,
                "torn writes": losses.torn_writes,
                "names lost": losses.lost_names,
                "cold reads": self._node.disk.cold_reads,
                "batches acknowledged": counts["produce acknowledged"],
                "repetitions acknowledged": counts["produce acknowledged again"],
                "transactions committed": counts["transaction committed"],
                "transactions aborted": counts["transaction aborted"],
                "transactions left open": counts["transaction left open"],
                "rebalances": counts["classic member synced"],
                "offsets committed": counts["classic member committed an offset"]
                + counts["consumer member committed an offset"],
                "records deleted": counts["admin deleted records"],
                "topics deleted": counts["admin deleted a topic"],
                "starts": self._node.starts,
                "rebalances cut off": counts["classic member disconnected"],
            }
        )
        return totals
