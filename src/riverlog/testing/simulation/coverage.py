"""What a run has come across, counted, so that a profile in which something never happens is noticed."""

import errno
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from riverlog.coordinator.transactions.lost import is_known
from riverlog.coordinator.transactions.states import TransactionState
from riverlog.coordinator.transactions.transaction import Transaction
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.model.internal_topics import TRANSACTIONS_TOPIC
from riverlog.replication.partition import Partition
from riverlog.testing.simulation.machine.ensembles import SharedEnsemble
from riverlog.testing.simulation.nodes import ObservedNode, SimulatedNode
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
    "operations failed by EIO",
    "writes refused by a full disk",
    "segments begun",
    "segments cleaned",
    "duplicates refused",
    "stale commits refused",
    "transactional offsets found",
    *(f"ends while a transaction is {each}" for each in ("ongoing", "prepare_commit", "prepare_abort")),
)
"""Besides every fault that the profile draws."""


MUST_HAPPEN_WITH_FEW_OPEN_LOGS: Final = ("logs closed",)
"""Of those that nobody uses."""

MUST_HAPPEN_IN_A_CLUSTER: Final = (
    "sessions expired",
    "partitions without a leader",
    "elections",
    "partition states not answered",
)

_CLOSED: Final = "riverlog_idle_logs_closed_total"

_OPEN: Final = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
)

MUST_HAPPEN_WITH_AN_ENSEMBLE_THAT_GOES_BACK: Final = (
    "older metadata found",
    "older metadata found by what it shows",
)

MUST_HAPPEN_WITH_REPLICAS: Final = (
    "partition states written too late",
    "ISR shrinks",
    "ISR expands",
    "diverging fetches",
    "truncations",
    "offsets truncated",
    "truncations below the watermark",
    "elections from the ELR",
    "unclean elections",
    "unclean restarts",
    "reads from followers",
    "coordinator failovers with ONGOING",
    "coordinator failovers with PREPARE_COMMIT",
    "coordinator failovers with PREPARE_ABORT",
)


MUST_HAPPEN_IN_FAILOVERS: Final = (
    "sessions expired",
    "elections",
    "unclean elections",
    "elections from the ELR",
    "partition states written too late",
    "partition states not answered",
    "ISR shrinks",
    "ISR expands",
    "diverging fetches",
    "truncations",
    "truncations below the watermark",
    "coordinator failovers with ONGOING",
    "coordinator failovers with PREPARE_COMMIT",
    "coordinator failovers with PREPARE_ABORT",
    "batches acknowledged",
    "batches not waited for",
    "transactions committed",
    "transactions aborted",
    "offsets committed",
    "topics deleted",
)


class Coverage:
    def __init__(
        self, world: World, nodes: Sequence[SimulatedNode], ensemble: SharedEnsemble | None = None
    ) -> None:
        self._world, self._nodes, self._ensemble = world, nodes, ensemble
        self._faults: Counter[str] = Counter()
        self._ends: Counter[str] = Counter()
        for node in nodes:
            node.on_ending = partial(self._note_end, node.on_ending)

    def note_fault(self, fault: Mapping[str, Any]) -> None:
        self._faults[f"fault {fault['fault']}"] += 1

    def _note_end(self, others: Callable[[SimulatedNode], None], node: SimulatedNode) -> None:
        """Its process ends; by itself or not."""
        others(node)
        parts = node.node
        if parts is None:
            return
        states = {each.state for each in _transactions(parts)}
        for state in sorted(states & set(_OPEN)):
            self._ends[f"ends while a transaction is {state.name.lower()}"] += 1
        self._ends["logs closed"] += int(parts.metrics.counter(_CLOSED).value)

    def check_quiet(self, nodes: Sequence[SimulatedNode]) -> None:
        """Nothing is going on any more: no transaction is open past its time (I14), but those that an unclean
        election has taken from the transaction log or that are in a directory that is dead, or whose marker
        one has taken from a partition."""
        running = [node.node for node in nodes if node.node is not None]
        known = [each for parts in running for each in _transactions(parts)]
        for parts in running:
            _check_quiet(parts, known, self._has_lost)

    def _has_lost(self, partition: Partition) -> bool:
        """Whether it, or the log of transactions, has lost what was committed."""
        if any(node.disk.has_died(each) for node in self._nodes for each in node.log_directories):
            return True
        key = partition.topic_id, partition.topic_partition.partition
        return any(
            each.unclean_epoch >= 0 and (at == key or each.topic == TRANSACTIONS_TOPIC)
            for at, each in self._world.ledger.partitions.items()
        )

    def totals(self) -> "Counter[str]":
        counts = self._world.counts
        losses = [node.disk.losses for node in self._nodes]
        totals = self._faults + self._ends
        if self._ensemble is not None:
            totals["sessions expired"] = self._ensemble.expired
            totals["older metadata found"] = self._ensemble.ensemble.found_older
            totals["older metadata found by what it shows"] = self._ensemble.found_older
            totals["partitions without a leader"] = counts["no leader"]
            totals["elections"] = counts["elections"]
            for each in MUST_HAPPEN_WITH_REPLICAS:
                totals[each] = counts[each]
            totals["diverging fetches"] = sum(node.diverging_fetches for node in self._nodes)
            totals["partition states written too late"] = counts["partition state written too late"]
            totals["partition states not answered"] = counts["partition state not answered"]
        totals.update(
            {
                "unsynced bytes lost": sum(each.lost_bytes for each in losses),
                "torn writes": sum(each.torn_writes for each in losses),
                "names lost": sum(each.lost_names for each in losses),
                "cold reads": sum(node.disk.cold_reads for node in self._nodes),
                "batches acknowledged": counts["produce acknowledged"],
                "repetitions acknowledged": counts["produce acknowledged again"],
                "batches not waited for": counts["transaction wrote without waiting"],
                "transactions committed": counts["transaction committed"],
                "transactions aborted": counts["transaction aborted"],
                "transactions left open": counts["transaction left open"],
                "rebalances": counts["classic member synced"],
                "offsets committed": counts["classic member committed an offset"]
                + counts["consumer member committed an offset"],
                "records deleted": counts["admin deleted records"],
                "topics deleted": counts["admin deleted a topic"],
                "operations failed by EIO": sum(node.disk.failed[errno.EIO] for node in self._nodes),
                "writes refused by a full disk": sum(node.disk.failed[errno.ENOSPC] for node in self._nodes),
                "segments begun": sum(node.disk.named["log"] for node in self._nodes),
                "segments cleaned": sum(node.disk.named["cleaned"] for node in self._nodes),
                "duplicates refused": counts["produce of a duplicate"],
                "stale commits refused": counts["stale commits refused"],
                "transactional offsets found": counts["transaction found its offset"],
                "starts": sum(node.starts for node in self._nodes),
                "rebalances cut off": counts["classic member disconnected"],
            }
        )
        return totals


def _transactions(parts: ObservedNode) -> list[Transaction]:
    runtime = parts.coordinators.transactions.coordinator._runtime
    return [each for hosted in runtime._hosted.values() for each in hosted.shard]


def _check_quiet(
    parts: ObservedNode, known: Sequence[Transaction], has_lost: Callable[[Partition], bool]
) -> None:
    """`known`: what coordinators still have."""
    for partition in parts.replicas:
        log, at = partition.log, partition.topic_partition
        if not log.is_online or log.last_stable_offset == log.high_watermark:
            continue
        if not has_lost(partition) or any(
            is_known(known, at, ProducerIdAndEpoch(producer_id, entry.epoch))
            for producer_id, entry in log.producers.open_transactions()
        ):
            bounds = f"{log.last_stable_offset} of {log.high_watermark}"
            raise Violation("I14", f"{at}: a transaction stays open at {bounds}")
