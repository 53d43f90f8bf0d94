"""What of a log is committed: the one rule for the high watermark. Pure.

A record is committed when every replica in sync has it, and, with `riverlog.acks.fsync`, when it is on the
leader's disk. While fewer replicas are in sync than `min.insync.replicas` asks for, nothing is committed
(KIP-966): what a producer with acks=1 has written meanwhile can be read once there are enough again. Nor is
anything while the state still names eligible leader replicas, as after the minimum was lowered. The high
watermark never goes back under one leader. A follower does not commit: it is told.
"""

from riverlog.replication.leading.follower_states import FollowerStates
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.roles import Leader, Role


def high_watermark(
    role: Role,
    in_sync: InSyncReplicas,
    followers: FollowerStates,
    *,
    current: int,
    log_end: int,
    flushed: int | None,
    min_isr: int,
) -> int:
    """Where it is now. `flushed` is how much of the log is on disk, None where that does not matter."""
    assert 0 <= current <= log_end
    if not isinstance(role, Leader) or not in_sync.is_enough(min_isr) or in_sync.has_eligible:
        return current
    own_end = log_end if flushed is None else min(log_end, flushed)
    least = followers.least(in_sync.followers)
    return max(current, own_end if least is None else min(own_end, least))


def follows_log_end(role: Role, in_sync: InSyncReplicas, *, waits_for_disk: bool, min_isr: int) -> bool:
    """Whether `high_watermark` is the end of the log, whatever that is: the answer for many appends at once.

    Not where there are other replicas, even if none is in sync: they wait for the end of the log to move.
    """
    return isinstance(role, Leader) and in_sync.is_sole and in_sync.is_enough(min_isr) and not waits_for_disk
