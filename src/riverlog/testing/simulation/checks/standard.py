"""All further checks of a node, put in their places."""

from riverlog.testing.simulation.checks.compaction import CompactionCheck
from riverlog.testing.simulation.checks.images import ImageCheck
from riverlog.testing.simulation.checks.kept_logs import KeptLogsCheck
from riverlog.testing.simulation.checks.ledger import Ledger
from riverlog.testing.simulation.checks.left_over import check_left_over
from riverlog.testing.simulation.checks.observer import NodeObserver
from riverlog.testing.simulation.checks.owners import OwnerCheck
from riverlog.testing.simulation.checks.sequences import SequenceCheck
from riverlog.testing.simulation.checks.shards import LoadedShardsCheck, compare_shards
from riverlog.testing.simulation.checks.transactions import TransactionCheck
from riverlog.testing.simulation.machine.loop import VirtualLoop
from riverlog.testing.simulation.nodes import SimulatedNode


def add_ledger_checks(ledger: Ledger) -> TransactionCheck:
    """What the ledger alone tells, of whichever node. That of transactions is to look after each step."""
    SequenceCheck(ledger)
    OwnerCheck(ledger)
    return TransactionCheck(ledger)


def add_node_checks(
    observer: NodeObserver,
    node: SimulatedNode,
    ledger: Ledger,
    transactions: TransactionCheck,
    loop: VirtualLoop,
) -> None:
    compaction, kept_logs = CompactionCheck(ledger), KeptLogsCheck()
    observer.on_look += [lambda node, parts: transactions.look(), ImageCheck().look, LoadedShardsCheck().look]
    observer.on_recovered.append(kept_logs.compare)
    observer.on_quiet += [compaction.compare, compare_shards]
    observer.on_stopped.append(lambda node, parts: check_left_over(loop, node, parts))
    node.on_starting = kept_logs.note_start
