"""Reading the partitions of one fetch: in order, within its limits, as slices of files.

The first partition with records gives at least one batch even if that is larger than the limits (KIP-74);
after it the limits are strict. Consumers are served by followers, too (KIP-392): up to what their leader has
told them is committed. Nothing is copied and nothing waits here.
"""

from typing import NamedTuple

from riverlog.broker.fetch.nearest_replica import NearestReplica
from riverlog.broker.fetch.sessions import Wanted
from riverlog.broker.net.cold_reads import is_in_memory
from riverlog.broker.shared.storage_failures import READ_FAILURES, error_for_client
from riverlog.model.disk import FileSlice
from riverlog.model.errors import ErrorCode
from riverlog.model.ids import LeaderEpoch, NodeId
from riverlog.model.named_tuples import maker_of
from riverlog.replication.idle_partition import IdlePartition
from riverlog.replication.partition import Partition
from riverlog.replication.replica_set import ReplicaSet
from riverlog.replication.roles import Leader, RoleHolder
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.wire.by_hand.fetch_request import SingleFetch
from riverlog.wire.by_hand.fetch_response import FetchRow
from riverlog.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)

_NO_DIVERGENCE = EpochEndOffset()
_NO_LEADER = LeaderIdAndEpoch()
_NO_SNAPSHOT = SnapshotId()
_TOLD_THE_LEADER = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class FetchLimits(NamedTuple):
    max_bytes: int
    is_read_committed: bool
    claims_to_be_replica: bool
    tells_leader: bool
    """Who leads is told to a client that asks the wrong broker, or with an old epoch (KIP-951)."""
    may_read_follower: bool = False
    """Whether the client knows that it can be sent from one replica to another."""
    rack: str = ""
    """Where the client is, if it says so."""
    listener_name: str = ""


class PartitionRead(NamedTuple):
    wanted: Wanted
    data: PartitionData
    partition: Partition | IdlePartition | None


_partition_read = maker_of(PartitionRead)


class FetchReads:
    """What one pass over the partitions has found."""

    __slots__ = ("_beyond", "cold", "follower_bytes", "must_answer", "reads", "size_bytes", "unknown")

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.size_bytes = 0
        self.follower_bytes = 0
        """How many of them from partitions that are led elsewhere."""
        self.cold: list[FileSlice] = []
        """Where there are records that have to be read from the disk first."""
        self.must_answer = False
        """An error, a diverging log, another replica to ask: the client must hear of it at once."""
        self.unknown: list[PartitionRead] = []
        """Of partitions that are not here. Kafka, too, puts them after the others."""
        self._beyond: list[PartitionData] = []

    def note_from_follower(self, wanted: Wanted, data: PartitionData) -> None:
        """What was found in a partition that is led elsewhere."""
        if data.error_code:
            return
        if data.records:
            self.follower_bytes += data.records.length  # type: ignore[union-attr]
        elif wanted.fetch_offset > data.high_watermark:
            self._beyond.append(data)

    def give_up(self) -> None:
        """The time is over. Who asked a follower for what is there, but not known there to be committed, is
        told so (KIP-392): the leader may know. Up to now it was worth waiting, as a follower hears of it
        soon. Apache Kafka answers with nothing, and so keeps clients at a follower that hears no more."""
        for data in self._beyond:
            data.error_code = ErrorCode.OFFSET_NOT_AVAILABLE
            data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
            data.aborted_transactions = None
            self.must_answer = True


class FetchReader:
    def __init__(self, replicas: ReplicaSet, nearest: NearestReplica | None = None) -> None:
        """`nearest` where clients are sent to a replica in their rack."""
        self._replicas = replicas
        self._nearest = nearest

    def read(self, wanted: list[Wanted], limits: FetchLimits) -> FetchReads:
        result = FetchReads()
        self.read_on(result, wanted, limits)
        result.reads += result.unknown
        return result

    def read_on(self, result: FetchReads, wanted: list[Wanted], limits: FetchLimits) -> None:
        """Some more of the partitions of one fetch."""
        replicas, unknown = self._replicas, result.unknown
        left, may_read_follower = limits.max_bytes, limits.may_read_follower
        if result.size_bytes:
            left = max(0, left - result.size_bytes)
        for each in wanted:
            topic, index = each.topic, each.index
            if topic is not None:
                partition = replicas.look(topic, index)
            else:
                partition = replicas.look_by_id(each.topic_id, index)
            if (
                type(partition) is IdlePartition
                and each.fetch_offset != partition.log.state.log_end_offset
                and partition.log.holds_records_from(each.fetch_offset)
            ):
                partition = replicas.find(*partition.topic_partition)
            if isinstance(partition, RoleHolder):  # An enumeration's own class is slower to ask for.
                data = self._read_partition(each, partition, limits, result, left=left)
                result.reads.append(_partition_read((each, data, partition)))
                if may_read_follower and not isinstance(partition.role, Leader):
                    result.note_from_follower(each, data)
            else:
                data = unreadable(each, partition)
                unknown.append(PartitionRead(each, data, None))
            if data.error_code or data.diverging_epoch.end_offset >= 0 or data.preferred_read_replica >= 0:
                result.must_answer = True
                if (
                    data.error_code in _TOLD_THE_LEADER
                    and limits.tells_leader
                    and isinstance(partition, RoleHolder)
                ):
                    epoch = partition.leader_epoch
                    data.current_leader = LeaderIdAndEpoch(leader_id=replicas.node_id, leader_epoch=epoch)
            elif data.records:
                size_bytes = data.records.length  # type: ignore[union-attr]
                result.size_bytes += size_bytes
                left = max(0, left - size_bytes)

    def _read_partition(
        self,
        wanted: Wanted,
        partition: Partition | IdlePartition,
        limits: FetchLimits,
        so_far: FetchReads,
        *,
        left: int,
    ) -> PartitionData:
        if limits.may_read_follower:
            refusal = partition.read_refusal(wanted.current_leader_epoch)
        else:
            refusal = partition.refusal(wanted.current_leader_epoch)
        if refusal is None and limits.claims_to_be_replica:
            refusal = _refusal_of_stranger(wanted)
        if refusal is None and min(wanted.max_bytes, left) < 0:
            refusal = ErrorCode.UNKNOWN_SERVER_ERROR
        if refusal is not None:
            return _error(wanted, refusal)
        state = partition.log.state
        high_watermark, last_stable_offset = state.high_watermark, state.last_stable_offset
        end = last_stable_offset if limits.is_read_committed else high_watermark
        data = PartitionData(
            partition_index=wanted.index,
            high_watermark=high_watermark,
            last_stable_offset=last_stable_offset,
            log_start_offset=state.log_start_offset,
            diverging_epoch=_NO_DIVERGENCE,
            current_leader=_NO_LEADER,
            snapshot_id=_NO_SNAPSHOT,
            aborted_transactions=[] if limits.is_read_committed else None,
            records=b"",
        )
        if limits.rack and (preferred := self._preferred(wanted, partition, limits)) is not None:
            data.preferred_read_replica = preferred
            return data
        if wanted.last_fetched_epoch is not None:
            diverging = divergence(wanted.fetch_offset, wanted.last_fetched_epoch, partition)
            if isinstance(diverging, ErrorCode):
                return _error(wanted, diverging)
            if diverging is not None:
                epoch, end_offset = diverging
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                return data
        if wanted.fetch_offset == end:
            return data
        if isinstance(partition, IdlePartition):
            is_at_end = wanted.fetch_offset == state.log_end_offset
            return data if is_at_end else _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        return _read_records(data, wanted, partition, end, min(wanted.max_bytes, left), so_far)

    def _preferred(
        self, wanted: Wanted, partition: Partition | IdlePartition, limits: FetchLimits
    ) -> NodeId | None:
        nearest = self._nearest
        if nearest is None or not limits.may_read_follower:
            return None
        if not isinstance(partition, Partition) or not isinstance(partition.role, Leader):
            return None
        return nearest.find(partition, limits.rack, limits.listener_name, wanted.fetch_offset)

    def read_single(
        self, request: SingleFetch, bytes_max: int, *, by_id: bool
    ) -> tuple[FetchRow, FileSlice] | Partition | None:
        """As many records as are wanted, if there is nothing to tell but them; it decides nothing else.

        The partition where the reader has all that there is, and None where there is more to look at.
        """
        (
            replica_id, _, min_bytes, max_bytes, isolation, _, _, topic, topic_id, index,
            leader_epoch, offset, last_fetched_epoch, _, partition_max_bytes,
        ) = request  # fmt: skip
        if replica_id >= 0 or last_fetched_epoch >= 0 or not 0 <= isolation <= 1:
            return None
        replicas = self._replicas
        partition = replicas.look_by_id(topic_id, index) if by_id else replicas.look(topic, index)
        if type(partition) is not Partition:
            return None
        if partition.refusal(None if leader_epoch < 0 else leader_epoch) is not None:
            return None
        log = partition.log
        state = log.state
        last_stable_offset = state.last_stable_offset
        high_watermark = state.high_watermark
        end = last_stable_offset if isolation else high_watermark
        bytes_max = min(max_bytes, bytes_max)
        if offset >= end or bytes_max < 0 or partition_max_bytes < 0:
            return partition if offset == end and bytes_max > 0 and partition_max_bytes > 0 else None
        try:
            found = log.read(
                offset,
                max_bytes=min(partition_max_bytes, bytes_max),
                end_offset=end,
                is_warm=is_in_memory,
            )
            if isinstance(found, OffsetOutOfRange):
                return None
            records, upper_offset, _ = found
            if records is None or records.length < min(min_bytes, bytes_max):
                return None
            if isolation and log.aborted_transactions(offset, upper_offset):
                return None
        except READ_FAILURES:
            return None
        return (index, high_watermark, last_stable_offset, state.log_start_offset), records


def _read_records(
    data: PartitionData,
    wanted: Wanted,
    partition: Partition,
    end: int,
    max_bytes: int,
    so_far: FetchReads,
) -> PartitionData:
    log = partition.log
    try:
        found = log.read(
            wanted.fetch_offset,
            max_bytes=max_bytes,
            end_offset=end,
            at_least_one_batch=so_far.size_bytes == 0,
            is_warm=is_in_memory,
        )
        if isinstance(found, OffsetOutOfRange):
            return _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        if found.cold is not None:
            so_far.cold.append(found.cold)
        if found.records is not None:
            if data.aborted_transactions is not None:
                data.aborted_transactions = [
                    AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                    for producer_id, first_offset in log.aborted_transactions(
                        wanted.fetch_offset, found.upper_offset
                    )
                ]
            data.records = found.records
    except READ_FAILURES as failure:
        return _error(wanted, error_for_client(failure))
    return data


def divergence(
    fetch_offset: int, last_fetched_epoch: LeaderEpoch, partition: Partition | IdlePartition
) -> tuple[LeaderEpoch, int] | ErrorCode | None:
    """Where the reader's log parted from ours, by the epoch of the last record it has (KIP-595): the epoch
    up to which both may agree, and its end here."""
    end = partition.log.end_offset_for_epoch(last_fetched_epoch)
    if end is None:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    epoch, end_offset = end
    return end if epoch < last_fetched_epoch or end_offset < fetch_offset else None


def unreadable(wanted: Wanted, error: ErrorCode) -> PartitionData:
    """Of a partition that was not even looked at. Kafka sends an empty list there, and null otherwise; also
    of one that it knows and has no replica of."""
    data = _error(wanted, error)
    if error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        data.aborted_transactions = []
    return data


def _refusal_of_stranger(wanted: Wanted) -> ErrorCode:
    """A follower's fetch does not come here, so who claims to be one is none: it is told what Kafka tells a
    stranger, and moves no watermark."""
    is_told = wanted.current_leader_epoch is not None
    return ErrorCode.UNKNOWN_LEADER_EPOCH if is_told else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _error(wanted: Wanted, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=wanted.index,
        error_code=error,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        records=b"",
    )
