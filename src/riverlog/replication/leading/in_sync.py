"""Who replicates a partition, and who of them is in sync, as the metadata says. Pure.

How far each has come its leader learns from their fetches (`follower_states`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from riverlog.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class InSyncReplicas:
    """The replicas of a partition and its ISR, as its leader counts them."""

    leader: NodeId
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    has_eligible: bool = False
    """Eligible leader replicas are named beside the ISR: one may be elected, and lacks what is new."""
    partition_epoch: int = -1
    """Of the state that says so: it rises with every change."""
    joining: tuple[NodeId, ...] = ()
    """Who comes in by a change that is under way, and may be in already. Who leaves by it is in `isr`."""

    @property
    def is_sole(self) -> bool:
        """There is no other replica, in sync or not."""
        return self.isr == self.replicas == (self.leader,)

    @property
    def followers(self) -> Iterator[NodeId]:
        """Those that have to have a record before it is committed, without the leader: the largest ISR that
        may be in force (KIP-497)."""
        return (each for each in (*self.isr, *self.joining) if each != self.leader)

    def followed_by(self, after: "InSyncReplicas") -> "InSyncReplicas":
        """What the image says now. A change that is under way goes on until another state is seen."""
        is_same_state = after.partition_epoch == self.partition_epoch
        return replace(after, joining=self.joining) if is_same_state else after

    def is_follower(self, node_id: NodeId) -> bool:
        """Whether it is one of the other replicas, in sync or not."""
        return node_id in self.replicas and node_id != self.leader

    def is_enough(self, min_isr: int) -> bool:
        """Whether as many are in sync as `min.insync.replicas` asks for; no more can be than there are."""
        return len(self.isr) >= min(min_isr, len(self.replicas))
