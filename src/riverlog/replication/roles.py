"""What this node is to a partition. A role never changes; a partition is given a new one.

Not here: who is in sync with a leader (`in_sync`), which changes while the role stays.
"""

from dataclasses import dataclass

from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId


@dataclass(frozen=True, slots=True)
class Leader:
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class Follower:
    epoch: LeaderEpoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True)
class Offline:
    """The log cannot be used: its directory failed, or it is being deleted."""

    epoch: LeaderEpoch
    error: ErrorCode = ErrorCode.KAFKA_STORAGE_ERROR
    """What clients are told."""


Role = Leader | Follower | Offline
