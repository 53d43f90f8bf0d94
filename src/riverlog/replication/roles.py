"""What this node is to a partition. A role never changes; a partition is given a new one."""

from dataclasses import dataclass

from riverlog.model.ids import NodeId


@dataclass(frozen=True, slots=True)
class Leader:
    epoch: int
    isr: tuple[NodeId, ...]
    replica_count: int
    """No more replicas can be asked to be in sync than there are."""


@dataclass(frozen=True, slots=True)
class Follower:
    epoch: int
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class Offline:
    """The log cannot be used: its directory failed, or the topic is gone."""

    epoch: int
    is_deleted: bool = False


Role = Leader | Follower | Offline
