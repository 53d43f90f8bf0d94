"""What a follower does to the log of a partition, as the leader of `epoch` says.

Each of them does nothing where the partition is not that leader's follower, or not any more. Not here: which
batches are taken from a leader, and how much is taken back (`copies`, `truncation`).
"""

import asyncio

from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import LeaderEpoch
from riverlog.records.rules import Accepted
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.partition import Partition
from riverlog.replication.roles import Offline, is_followed
from riverlog.storage.log.appends import AppendOrigin


def append_replicated(
    partition: Partition, accepted: Accepted, epoch: LeaderEpoch
) -> AppendedRecords | AppendRefused:
    """Store batches as the leader has them. Where the disk is full, some of them may be stored."""
    if not is_followed(partition.role, epoch):
        return AppendRefused(ErrorCode.FENCED_LEADER_EPOCH)
    try:
        outcome = partition.log.append(accepted, leader_epoch=epoch, origin=AppendOrigin.REPLICATION)
    except DiskFullError as error:
        return partition.not_stored(error)
    except StorageError as error:
        partition.take_role(Offline(epoch))
        return partition.not_stored(error)
    return partition.after_append(outcome, len(accepted.data))


def follow_watermark(partition: Partition, leader_watermark: int, epoch: LeaderEpoch) -> None:
    """What the leader has committed may be read here as far as it is here. It never goes back: a new leader
    may not know yet what another has committed."""
    end = min(leader_watermark, partition.log.log_end_offset)
    if end > partition.log.high_watermark and is_followed(partition.role, epoch):
        partition.raise_watermark(end)


def follow_log_start(partition: Partition, offset: int, epoch: LeaderEpoch) -> None:
    """What the leader has let go goes here, too, as far as it is committed."""
    log = partition.log
    offset = min(offset, log.high_watermark)
    if offset > log.log_start_offset and is_followed(partition.role, epoch):
        log.cutting.delete_records(offset)
        partition.disturb_readers()


def truncate(partition: Partition, offset: int, epoch: LeaderEpoch, *, anew: bool = False) -> bool:
    """Drop everything from `offset` on, or everything and begin `anew` there; whether that was done. The
    recovery point must be written before anything is appended."""
    if not is_followed(partition.role, epoch):
        return False
    if anew:
        partition.log.cutting.truncate_fully_and_start_at(offset)
    else:
        partition.log.cutting.truncate_to(offset)
    partition.count_unread()
    partition.disturb_readers()
    return True


def when_stored(partition: Partition) -> "asyncio.Future[None] | None":
    """None where all that is stored counts as such; else a wait until it is on disk. Also after a truncation,
    so that nothing is written in the place of what may still come back."""
    log = partition.log
    is_stored = not log.config.acks_fsync or log.flushed_offset >= log.log_end_offset
    if is_stored and not log.sync.is_cut:
        return None
    return partition.flusher.flush_to(log.sync, log.log_end_offset)
