"""What a partition asks about brokers, the others and its own: one object for all partitions of a node.

Follows the image; `ReplicaSet` keeps it. Not here: what a partition makes of it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from riverlog.metadata.image import BrokerImage, PartitionKey
from riverlog.model.ids import BrokerEpoch, NodeId
from riverlog.replication.leading.confirmation import Confirmations


class HeldLease(Protocol):
    """See `lease`."""

    timeout_s: float

    def now_s(self) -> float: ...

    def is_held(self) -> bool: ...


class Standing:
    __slots__ = ("brokers", "confirmations", "lease", "on_candidate")

    def __init__(self) -> None:
        self.brokers: Mapping[NodeId, BrokerImage] = {}
        """Those that are registered, as the image has them."""
        self.confirmations = Confirmations()
        self.lease: HeldLease | None = None
        """Until when nobody else can have been elected in this broker's place; None: nobody ever can, or
        nobody asks."""
        self.on_candidate: Callable[[Any], None] | None = None
        """Hears of a partition with a follower that may come into its ISR; None where nobody changes ISRs."""

    def ask_for_isr(self, partition: object) -> None:
        if self.on_candidate is not None:
            self.on_candidate(partition)

    def is_present(self, node_id: NodeId, broker_epoch: BrokerEpoch) -> bool:
        """Whether a broker is registered under the epoch that it says. One that registered a moment ago knows
        it before this node's image does, and asks again: who claims an epoch that nobody has been given would
        otherwise be taken for it."""
        known = self.brokers.get(node_id)
        return known is not None and broker_epoch == known.epoch

    def may_join(self, node_id: NodeId, broker_epoch: BrokerEpoch, partition: PartitionKey) -> bool:
        """Whether a broker that fetches under this epoch may come into an ISR: not one that is leaving, that
        has been followed by another process, or whose disk has failed."""
        known = self.brokers.get(node_id)
        return (
            known is not None
            and broker_epoch == known.epoch
            and not known.is_shutting_down
            and partition not in known.offline
        )
