"""What this node is to a partition. A role never changes; a partition is given a new one.

Not here: who is in sync with a leader (`leading.in_sync`), which changes while the role stays.
"""

from dataclasses import dataclass
from typing import assert_never

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


def is_followed(role: Role, epoch: LeaderEpoch) -> bool:
    """Whether it is to copy the leader of this epoch."""
    return isinstance(role, Follower) and role.epoch == epoch and role.leader is not None


class RoleHolder:
    """What has a role, and so refuses those who ask for another one."""

    __slots__ = ("_role",)
    _role: Role

    @property
    def role(self) -> Role:
        return self._role

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self._role.epoch

    def refusal(self, claimed_epoch: int | None = None) -> ErrorCode | None:
        """Why this node does not serve the partition as its leader, to a client that knows this epoch."""
        match self._role:
            case Leader(epoch=epoch):
                return _epoch_refusal(claimed_epoch, epoch)
            case Follower(epoch=epoch):
                return _epoch_refusal(claimed_epoch, epoch) or ErrorCode.NOT_LEADER_OR_FOLLOWER
            case Offline(error=error):
                return error
            case other:
                assert_never(other)

    def read_refusal(self, claimed_epoch: int | None) -> ErrorCode | None:
        """Why this node does not let a consumer read what is committed: a follower does, too (KIP-392), as
        long as there is a leader that tells it what that is."""
        role = self._role
        if isinstance(role, Leader) or (isinstance(role, Follower) and role.leader is not None):
            return _epoch_refusal(claimed_epoch, role.epoch)
        return self.refusal(claimed_epoch)

    def copy_refusal(self, claimed_epoch: int | None = None) -> ErrorCode | None:
        """Why this node does not tell of its copy of the partition, be it the leader's or not."""
        role = self._role
        return role.error if isinstance(role, Offline) else _epoch_refusal(claimed_epoch, role.epoch)


def _epoch_refusal(claimed_epoch: int | None, epoch: LeaderEpoch) -> ErrorCode | None:
    if claimed_epoch is None or claimed_epoch == epoch:
        return None
    return ErrorCode.FENCED_LEADER_EPOCH if claimed_epoch < epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
