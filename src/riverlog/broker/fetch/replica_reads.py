"""What a leader answers a follower about one partition: where it may stand, and what it reads there.

A follower reads up to the end of the log, committed or not. Where its records have parted from this log, or
where it asks for what is not here, it is told so and the leader goes on counting with what it had said before
(KAFKA-13141): only what is a part of this log is a copy of it.
"""

from typing import NamedTuple

from riverlog.broker.fetch.reads import divergence
from riverlog.broker.fetch.replica_sessions import Copied, Refusal
from riverlog.broker.net.cold_reads import is_in_memory
from riverlog.broker.shared.storage_failures import READ_FAILURES, error_for_client
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.leading.follower_states import FollowerFetch
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.resting import Resting
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.wire.by_hand.replica_fetch_response import ReplicaRow


class CopyRead(NamedTuple):
    copied: Copied
    row: ReplicaRow
    is_news: bool
    """The follower does not know it."""
    is_urgent: bool
    """It is more than a high watermark, which may wait for records to go with."""
    is_cut_short: bool = False
    """The bytes that were left have not been enough for what there is."""
    cold: FileSlice | None = None
    """Where there are records that have to be read from the disk first."""


def read_copied(
    copied: Copied, replicas: ReplicaSet, now_s: float, *, max_bytes: int, is_first: bool
) -> CopyRead:
    """What there is to tell the follower. `is_first`: one batch, however large it is."""
    partition = copied.partition
    if not copied.is_accepted or partition is None:
        found = take_position(copied, replicas, now_s)
        if not isinstance(found, Partition | Resting):
            return _refused(copied, found)
        partition = found
    if isinstance(partition, Resting):
        return _told_at_rest(copied, partition)
    if (refusal := partition.refusal(copied.leader_epoch)) is not None:
        return _refused(copied, refusal)
    state = partition.log.state
    records = cold = None
    is_behind = copied.fetch_offset != state.log_end_offset
    if is_behind:
        try:
            read = partition.log.read(
                copied.fetch_offset,
                max_bytes=max(0, min(copied.max_bytes, max_bytes)),
                end_offset=state.log_end_offset,
                at_least_one_batch=is_first,
                is_warm=is_in_memory,
            )
        except READ_FAILURES as failure:
            return _refused(copied, error_for_client(failure))
        if isinstance(read, OffsetOutOfRange):
            return _refused(copied, ErrorCode.OFFSET_OUT_OF_RANGE)
        records, _, cold = read
    high_watermark, log_start = state.high_watermark, state.log_start_offset
    is_urgent = records is not None or log_start != copied.told_log_start
    is_news = is_urgent or high_watermark > copied.told_high_watermark
    row = ReplicaRow(copied.topic_id, copied.index, 0, high_watermark, log_start, records)
    is_cut_short = is_behind and records is None and cold is None
    return CopyRead(copied, row, is_news, is_urgent, is_cut_short, cold)


def take_position(copied: Copied, replicas: ReplicaSet, now_s: float) -> Partition | Resting | Refusal:
    """Have the leader count with where the follower stands, if that is on this log. One that is closed stays
    so for a follower that has all of it."""
    partition = replicas.look_by_id(copied.topic_id, copied.index)
    if isinstance(partition, IdlePartition):
        refusal = partition.refusal(copied.leader_epoch)
        if refusal is not None:
            copied.watch(None)
            return refusal
        if (resting := _take_position_at_rest(copied, partition, replicas, now_s)) is not None:
            return resting
        partition = replicas.find_by_id(copied.topic_id, copied.index)
    if not isinstance(partition, Partition):
        copied.watch(None)
        return partition
    if partition is not copied.partition:
        copied.watch(partition)
    session, log = copied.session, partition.log
    refusal = partition.refusal(copied.leader_epoch)
    if refusal is not None:
        return refusal
    if not partition.in_sync.is_follower(session.node_id):
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if copied.last_fetched_epoch is not None:
        diverging = divergence(copied.fetch_offset, copied.last_fetched_epoch, partition)
        if diverging is not None:
            return diverging
    if not log.log_start_offset <= copied.fetch_offset <= log.log_end_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    refusal = partition.on_replica_fetch(_fetch_of(copied), now_s)
    if refusal is not None:
        return refusal
    copied.accept(log.log_end_offset)
    return partition


def _take_position_at_rest(
    copied: Copied, idle: IdlePartition, replicas: ReplicaSet, now_s: float
) -> Resting | None:
    """None where the log has to be opened."""
    session, state = copied.session, idle.log.state
    last_epoch = copied.last_fetched_epoch
    if copied.leader_epoch is None or copied.fetch_offset != state.log_end_offset:
        return None
    if last_epoch is not None and divergence(copied.fetch_offset, last_epoch, idle) is not None:
        return None
    resting = replicas.rest(idle, session.node_id, session.broker_epoch)
    if resting is None:
        return None
    if resting is not copied.partition:
        copied.watch(resting)
    resting.on_replica_fetch(_fetch_of(copied), now_s)
    copied.accept(state.log_end_offset)
    return resting


def _fetch_of(copied: Copied) -> FollowerFetch:
    session = copied.session
    return FollowerFetch(
        session.node_id,
        session.broker_epoch,
        copied.leader_epoch,
        copied.fetch_offset,
        copied.log_start_offset,
    )


def _told_at_rest(copied: Copied, resting: Resting) -> CopyRead:
    high_watermark, log_start = resting.log_end_offset, resting.log_start_offset
    is_urgent = log_start != copied.told_log_start
    is_news = is_urgent or high_watermark > copied.told_high_watermark
    row = ReplicaRow(copied.topic_id, copied.index, 0, high_watermark, log_start)
    return CopyRead(copied, row, is_news, is_urgent)


def _refused(copied: Copied, refusal: Refusal) -> CopyRead:
    copied.is_accepted = False
    is_news = refusal != copied.told_refusal
    copied.told_refusal = refusal
    if isinstance(refusal, ErrorCode):
        row = ReplicaRow(copied.topic_id, copied.index, refusal)
    else:
        row = ReplicaRow(copied.topic_id, copied.index, diverging=refusal)
    return CopyRead(copied, row, is_news, is_urgent=is_news)
