"""What a fetcher does to the partitions of this node: find their positions, store, truncate, begin anew.

Each step is taken only if the partition still follows the leader that was asked, under the epoch it was asked
under, and ends where it was asked from: an answer that comes late changes nothing. Nothing waits here. Not
here: when to ask again.
"""

import asyncio
import logging
from enum import Enum
from typing import NamedTuple

from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import LeaderEpoch
from riverlog.model.metrics import Metrics
from riverlog.replication.append_outcomes import AppendRefused
from riverlog.replication.following import follower_log
from riverlog.replication.following.batches import BadBatch, check_batches
from riverlog.replication.following.followed import AT_BEGINNING, Followed, Position
from riverlog.replication.following.truncation import gives_up_committed, offset_to_keep
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import is_followed
from riverlog.storage.log.closed_log import NOTHING, LogFacts
from riverlog.wire.messages.fetch import PartitionData

_logger = logging.getLogger(__name__)


class Outcome(Enum):
    DONE = "look where the log ends now, and go on"
    TRUNCATED = "the same, once the recovery point is written"
    FAILED = "try again after a pause"
    OUT = "nothing can be done under this leader"


class Copies:
    def __init__(self, replicas: ReplicaSet, metrics: Metrics) -> None:
        self._replicas = replicas
        self._truncated = metrics.counter("riverlog_truncated_records_total")
        self._truncated_committed = metrics.counter("riverlog_truncated_below_hw_total")
        self._bad_batches = metrics.counter("riverlog_replica_bad_batches_total")

    def position_of(self, followed: Followed) -> "Position | asyncio.Future[None] | Outcome":
        """Where its log ends; or a wait until all of it is on disk, after which to look again. A log that is
        closed is neither made nor opened for that."""
        if self._replicas.has_failed(followed.topic, followed.index):
            return Outcome.OUT
        closed = self._replicas.closed_copy(followed.topic, followed.index, followed.topic_id)
        if closed is not None:
            role, facts = closed
            if not is_followed(role, followed.leader_epoch):
                return Outcome.OUT
            if (position := _position_in(facts, followed)) is not None:
                return position
        partition = self._replicas.find(followed.topic, followed.index)
        if partition is ErrorCode.KAFKA_STORAGE_ERROR:
            return Outcome.FAILED
        if not isinstance(partition, Partition) or not _is_followed(partition, followed):
            return Outcome.OUT
        log, epochs = partition.log, partition.log.state.epochs
        if not log.is_online:
            return Outcome.OUT
        syncing = follower_log.when_stored(partition)
        if syncing is not None:
            return syncing
        return Position(log.log_end_offset, epochs.latest, log.log_start_offset)

    def store(self, followed: Followed, data: PartitionData, leader: str) -> Outcome:
        """What a leader has sent, the offsets that it has told included."""
        if not data.records and self._is_known(followed, data):
            followed.agreed_epoch = followed.leader_epoch
            followed.leader_watermark = max(data.high_watermark, 0)
            return Outcome.DONE
        partition = self._to_change(followed)
        if partition is None:
            return Outcome.OUT
        epoch, bad = followed.leader_epoch, None
        if data.records:
            records = data.records
            assert isinstance(records, memoryview)
            stored = self._append(partition, followed, records)
            if isinstance(stored, Outcome):
                return stored
            bad = stored
        followed.agreed_epoch = epoch
        followed.leader_watermark = data.high_watermark
        try:
            follower_log.follow_watermark(partition, data.high_watermark, epoch)
            follower_log.follow_log_start(partition, data.log_start_offset, epoch)
        except (StorageError, DiskFullError) as error:
            return _failed(followed, error)
        if bad is None:
            return Outcome.DONE
        self._bad_batches.add()
        _logger.error(
            "%s: broker %s sent a batch at offset %d that cannot be stored: %s. If it stays so, "
            "`riverlog log verify` there tells more; another replica can lead meanwhile",
            followed,
            leader,
            bad.offset,
            bad.reason,
        )
        return Outcome.FAILED

    def truncate(self, followed: Followed, epoch: LeaderEpoch, end_offset: int) -> Outcome:
        """The leader's largest epoch up to the last one here is `epoch`, which ends at `end_offset` there."""
        partition = self._to_change(followed)
        if partition is None:
            return Outcome.OUT
        log = partition.log
        if epoch == followed.leader_epoch:
            # The leader of an epoch has all of it: what is here was written by another one.
            self._replicas.note_ahead(partition)
            return Outcome.OUT
        keep = offset_to_keep(log.state.epochs, log.log_end_offset, epoch=epoch, end_offset=end_offset)
        return self._cut(partition, followed, keep)

    def settle_in(self, followed: Followed, leader_start: int, leader_end: int) -> Outcome:
        """The log ends outside of the leader's, which is this."""
        partition = self._to_change(followed)
        if partition is None:
            return Outcome.OUT
        own_end = partition.log.log_end_offset
        if own_end < leader_start:
            _logger.info("%s begins anew at %d, where its leader's log starts", followed, leader_start)
            return self._cut(partition, followed, leader_start, anew=True)
        if own_end > leader_end:
            return self._cut(partition, followed, leader_end)
        return Outcome.DONE

    def _is_known(self, followed: Followed, data: PartitionData) -> bool:
        """Whether an answer without records says nothing that a closed log does not say."""
        position = followed.position
        if position is AT_BEGINNING and data.high_watermark <= 0 and data.log_start_offset <= 0:
            return True
        closed = self._replicas.closed_copy(followed.topic, followed.index, followed.topic_id)
        if closed is None or position is None:
            return False
        role, facts = closed
        return (
            is_followed(role, followed.leader_epoch)
            and position.offset == facts.log_end_offset
            and min(data.high_watermark, facts.log_end_offset) <= facts.high_watermark
            and min(data.log_start_offset, facts.high_watermark) <= facts.log_start_offset
        )

    def _to_change(self, followed: Followed) -> Partition | None:
        """None where it is not what it was when the leader was asked."""
        partition, position = self._replicas.find(followed.topic, followed.index), followed.position
        if (
            not isinstance(partition, Partition)
            or position is None
            or not _is_followed(partition, followed)
            or not partition.log.is_online
            or partition.log.log_end_offset != position.offset
        ):
            return None
        return partition

    def _append(
        self, partition: Partition, followed: Followed, records: memoryview
    ) -> Outcome | BadBatch | None:
        epoch, log = followed.leader_epoch, partition.log
        end = log.log_end_offset
        accepted, bad = check_batches(records, end_offset=end, leader_epoch=epoch)
        if accepted is None:
            return bad
        first = accepted.batches[0][1].base_offset
        try:
            if first < end:
                # The leader's log starts within a batch, and so must this one; its start moves up afterwards.
                if log.log_start_offset != end or log.size_bytes:
                    return BadBatch(end, f"it begins at {first}, before {end}")
                follower_log.truncate(partition, first, epoch, anew=True)
            outcome = follower_log.append_replicated(partition, accepted, epoch)
            if isinstance(outcome, AppendRefused) and log.is_online and log.log_end_offset < end:
                # No room for it: nobody may see that the start and the watermark were further down meanwhile.
                follower_log.truncate(partition, end, epoch, anew=True)
        except (StorageError, DiskFullError) as error:
            return _failed(followed, error)
        return Outcome.FAILED if isinstance(outcome, AppendRefused) else bad

    def _cut(self, partition: Partition, followed: Followed, offset: int, *, anew: bool = False) -> Outcome:
        """Drop what the leader does not have; or everything, to begin behind it."""
        log = partition.log
        before = _Ends(log.log_end_offset, log.high_watermark)
        seen = (log.state.epochs.latest, followed.agreed_epoch)
        known = max((each for each in seen if each is not None), default=None)
        may_lose = gives_up_committed(followed.unclean_epoch, known)
        # Where the leader's log starts, everything below it was committed, and nobody lacks it.
        if not anew and offset < before.watermark and not may_lose:
            _logger.error(
                "%s: its leader of epoch %d has nothing from offset %d on, but up to %d is committed "
                "here, and no unclean election is on record; it is not truncated, and not copied from "
                "that leader",
                followed,
                followed.leader_epoch,
                offset,
                before.watermark,
            )
            return Outcome.OUT
        # Compaction has taken records out for the sake of some that go now: everything is copied again.
        starts_over = not anew and may_lose and offset < log.state.cleaned_offset
        first = log.log_start_offset if starts_over else offset
        try:
            if not follower_log.truncate(partition, first, followed.leader_epoch, anew=anew or starts_over):
                return Outcome.OUT
        except (StorageError, DiskFullError) as error:
            return _failed(followed, error)
        if not anew:
            self._count_cut(followed, before, _Ends(log.log_end_offset, log.high_watermark))
        return Outcome.TRUNCATED

    def _count_cut(self, followed: Followed, before: "_Ends", after: "_Ends") -> None:
        if after.watermark < before.watermark:
            committed = before.watermark - after.watermark
            self._truncated_committed.add(committed)
            _logger.warning(
                "%s: for an unclean election %d committed records are dropped, from offset %d on",
                followed,
                committed,
                after.watermark,
            )
        if after.log_end < before.log_end:
            self._truncated.add(before.log_end - after.log_end)
            _logger.info(
                "%s is truncated from %d to %d for leader epoch %d",
                followed,
                before.log_end,
                after.log_end,
                followed.leader_epoch,
            )


class _Ends(NamedTuple):
    """Of a log."""

    log_end: int
    watermark: int


def _position_in(facts: LogFacts, followed: Followed) -> Position | None:
    """Of a closed log; None where it cannot be copied on."""
    if facts is NOTHING:
        return AT_BEGINNING
    latest = facts.epochs[-1][0] if facts.epochs else None
    if latest is not None and latest > followed.leader_epoch:
        return None
    return Position(facts.log_end_offset, latest, facts.log_start_offset)


def _is_followed(partition: Partition, followed: Followed) -> bool:
    return partition.topic_id == followed.topic_id and is_followed(partition.role, followed.leader_epoch)


def _failed(followed: Followed, error: Exception) -> Outcome:
    _logger.error("%s cannot be changed as its leader asks: %s", followed, error)
    return Outcome.FAILED
