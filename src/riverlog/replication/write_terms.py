"""On which terms a partition is written to while its role, ISR, settings and disk stay the same.

A value, so that an append need not ask anew. Not here: the rule that says what is committed (`watermark`).
"""

from dataclasses import dataclass

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.roles import Role
from riverlog.replication.watermark import follows_log_end


@dataclass(frozen=True, slots=True)
class WriteTerms:
    commits_at_once: bool
    """What is written is committed: the high watermark follows the end of the log."""
    short_way_epoch: LeaderEpoch | None
    """Under which a batch may be written the short way that one replica must have; None for no batch."""
    short_way_epoch_for_all: LeaderEpoch | None
    """The same for a batch that all must have."""


def write_terms(role: Role, in_sync: InSyncReplicas, config: LogConfig, *, is_writable: bool) -> WriteTerms:
    commits_at_once = follows_log_end(
        role, in_sync, waits_for_disk=config.acks_fsync, min_isr=config.min_insync_replicas
    )
    epoch = role.epoch if commits_at_once and is_writable else None
    is_enough = in_sync.is_enough(config.min_insync_replicas)
    return WriteTerms(commits_at_once, epoch, epoch if is_enough else None)
