"""One partition on this node: a log with a role, and those who wait for it.

Keeps log start <= last stable offset <= high watermark <= log end, and moves the high watermark only
forward, as far as `watermark` says; consumers never see beyond it. Consumers wait for the high watermark,
followers for the end of the log. A change of the ISR leaves readers and producers waiting: it only moves the
watermark. Used from the event loop only.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, assert_never
from uuid import UUID

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import LeaderEpoch, NodeId, TopicPartition
from riverlog.records import validate as validation
from riverlog.records.batch import TRANSACTIONAL_FLAG, header_of
from riverlog.replication.batch_rules import batch_rules
from riverlog.replication.in_sync import FollowerEnds, InSyncReplicas
from riverlog.replication.roles import Follower, Leader, Offline, Role
from riverlog.replication.waiting import PendingAck, Reader, UnreadBytes, WaitingProducers, WaitingReaders
from riverlog.replication.watermark import follows_log_end, high_watermark
from riverlog.storage.log.appends import Appended, AppendOrigin, AppendOutcome, Duplicate, Refused
from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.log import Log

_logger = logging.getLogger(__name__)


class AppendedRecords(NamedTuple):
    """The records stand in the log; they are acknowledged when the high watermark reaches `end_offset`."""

    first_offset: int
    end_offset: int
    append_time_ms: int | None


class AppendRefused(NamedTuple):
    error: ErrorCode
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()


class Partition:
    __slots__ = (
        "_commits_at_once",
        "_end_readers",
        "_ends",
        "_flusher",
        "_in_sync",
        "_is_syncing",
        "_is_unwritable",
        "_producers",
        "_readers",
        "_role",
        "_rules",
        "_short_way_epoch",
        "_short_way_epoch_for_all",
        "_unread",
        "log",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self, log: Log, topic_id: UUID, role: Role, in_sync: InSyncReplicas, flusher: Flusher
    ) -> None:
        self.log = log
        self.topic_id = topic_id
        self.topic_partition: TopicPartition = log.topic_partition
        self._role = role
        self._in_sync = in_sync
        self._ends = FollowerEnds()
        self._flusher = flusher
        self._is_syncing = False
        self._is_unwritable = False
        self._rules = batch_rules(log.config)
        self._readers = WaitingReaders()
        self._end_readers = WaitingReaders()
        self._producers = WaitingProducers()
        self._unread = UnreadBytes()
        self._note_short_way()

    @property
    def role(self) -> Role:
        return self._role

    @property
    def leader_epoch(self) -> LeaderEpoch:
        return self._role.epoch

    @property
    def in_sync(self) -> InSyncReplicas:
        return self._in_sync

    def take_role(self, role: Role, in_sync: InSyncReplicas | None = None) -> None:
        """Waiting readers look again; producers that wait for an acknowledgement of another leader are told.

        `in_sync` is what a leader counts with. Where nothing but that has changed, the watermark may move on,
        and no reader or producer notices it.
        """
        is_new_role = role != self._role
        if not is_new_role and (in_sync is None or in_sync == self._in_sync):
            return
        self._role = role
        if in_sync is not None:
            self._in_sync = in_sync
            self._ends.retain(in_sync)
        if is_new_role:
            # What followers had of another epoch they may have to take back.
            self._ends.forget_all()
        self._note_short_way()
        if isinstance(role, Leader):
            self.log.state.assign_leader_epoch(role.epoch)
            self.advance()
        else:
            self._unread.clear()
            self._producers.give_up()
        if is_new_role:
            self.disturb_readers()

    def begin(self) -> None:
        """Serve the log as it was found. Where there is no other replica all of it is committed once it is on
        disk; otherwise what its checkpoint says is, until the followers have told how far they are.

        A leader's epoch begins where it takes over, not with its first batch: clients ask for it before.
        """
        if isinstance(self._role, Leader):
            self.log.state.assign_leader_epoch(self._role.epoch)
            self.advance()

    def update_config(self, config: LogConfig) -> None:
        self.log.state.update_config(config)
        self._rules = batch_rules(config)
        self._note_short_way()
        self.advance()

    def refusal(self, claimed_epoch: int | None = None) -> ErrorCode | None:
        """Why this node does not serve the partition as its leader, to a client that knows this epoch."""
        match self._role:
            case Leader(epoch=epoch):
                if claimed_epoch is None or claimed_epoch == epoch:
                    return None
                if claimed_epoch < epoch:
                    return ErrorCode.FENCED_LEADER_EPOCH
                return ErrorCode.UNKNOWN_LEADER_EPOCH
            case Follower():
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            case Offline(error=error):
                return error
            case other:
                assert_never(other)

    def append(
        self,
        data: memoryview,
        now_ms: int,
        *,
        for_all_replicas: bool,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendedRecords | AppendRefused:
        """Validate, assign offsets and write; `data` is patched in place."""
        role = self._role
        if not isinstance(role, Leader):
            return AppendRefused(self.refusal() or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if for_all_replicas and not self._has_enough_replicas():
            return AppendRefused(ErrorCode.NOT_ENOUGH_REPLICAS)
        if origin is AppendOrigin.COORDINATOR:
            accepted = validation.trust(data, self._rules)
        else:
            accepted = validation.validate(data, self._rules, now_ms)
        if isinstance(accepted, validation.Rejected):
            return AppendRefused(accepted.error, accepted.reply_message, accepted.record_errors)
        try:
            outcome = self.log.append(accepted, leader_epoch=role.epoch, origin=origin)
        except (DiskFullError, StorageError) as error:
            return self._not_stored(error)
        return self._after_append(outcome, len(accepted.data))

    def append_alone(
        self, data: memoryview, now_ms: int, for_all_replicas: bool
    ) -> int | AppendRefused | None:
        """The short way for an ordinary batch outside of any transaction on a sole replica: the offset of its
        first record, which is written and acknowledged.

        None, and nothing is written, where there is more to look at: `append` knows what. No other request
        can be waiting for an acknowledgement, since each append before this one was committed at once.
        """
        epoch = self._short_way_epoch_for_all if for_all_replicas else self._short_way_epoch
        if epoch is None:
            return None
        fields = validation.ordinary_fields(data, self._rules, now_ms)
        if fields is None:
            return None
        _, _, _, _, _, attributes, last_offset_delta, _, max_timestamp_ms, producer_id, _, _, _ = fields
        if attributes & TRANSACTIONAL_FLAG:
            return None
        log = self.log
        appending = log.appending
        try:
            # Without a producer id there is nothing to judge by what came before.
            offset = None
            if producer_id < 0:
                offset = appending.append_within_headroom(data, last_offset_delta, max_timestamp_ms, epoch)
            if offset is None:
                outcome = appending.append_single(
                    data, header_of(fields), epoch, may_fit_headroom=producer_id >= 0
                )
                if type(outcome) is not Appended:
                    return None
                offset = outcome.first_offset
        except (DiskFullError, StorageError) as error:
            return self._not_stored(error)
        log.state.commit_all()  # As `_note_short_way` has asked `watermark`.
        if self._readers.waiting:
            self._readers.wake(len(data))
        return offset

    def _note_short_way(self) -> None:
        """Whether what is written is committed, and so under which epoch a batch may be written the short way
        that one replica, or all, must have; None for no batch.

        To be called when the role, the ISR, the config or `_is_unwritable` has changed.
        """
        role, config = self._role, self.log.config
        self._commits_at_once = follows_log_end(
            role, self._in_sync, waits_for_disk=config.acks_fsync, min_isr=config.min_insync_replicas
        )
        self._short_way_epoch = role.epoch if self._commits_at_once and not self._is_unwritable else None
        self._short_way_epoch_for_all = self._short_way_epoch if self._has_enough_replicas() else None

    def _has_enough_replicas(self) -> bool:
        return self._in_sync.is_enough(self.log.state.config.min_insync_replicas)

    def _after_append(self, outcome: AppendOutcome, size_bytes: int) -> AppendedRecords | AppendRefused:
        match outcome:
            case Appended(first_offset, last_offset, append_time_ms):
                if self._is_unwritable:
                    self._is_unwritable = False
                    self._note_short_way()
                    _logger.warning("%s is written again", self.topic_partition)
                if self._commits_at_once:
                    self.log.state.commit_all()
                    self._readers.wake(size_bytes)
                else:
                    self._unread.add(first_offset, last_offset + 1, size_bytes)
                    self._end_readers.wake(size_bytes)
                    self.advance()
                return AppendedRecords(first_offset, last_offset + 1, append_time_ms)
            case Duplicate():
                self.advance()  # A sync that failed for want of room is tried again by the next request.
                return AppendedRecords(outcome.first_offset, outcome.last_offset + 1, outcome.append_time_ms)
            case Refused():
                return AppendRefused(outcome.error)
            case other:
                assert_never(other)

    def _not_stored(self, error: Exception) -> AppendRefused:
        self._report_unwritable(error)
        return AppendRefused(ErrorCode.KAFKA_STORAGE_ERROR)

    def note_follower_end(
        self, follower: NodeId, claimed_epoch: LeaderEpoch | None, end_offset: int
    ) -> ErrorCode | None:
        """A follower of this epoch has everything below `end_offset`; or why it is not listened to."""
        refusal = self.refusal(claimed_epoch)
        if refusal is not None:
            return refusal
        if not self._in_sync.is_follower(follower):
            knows_epoch = claimed_epoch is not None
            return ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._ends.note(follower, end_offset)
        self.advance()
        return None

    def advance(self) -> None:
        """Move the high watermark as far as it may go, and wake those who wait for it."""
        log, config = self.log, self.log.config
        if config.acks_fsync and log.flushed_offset < log.log_end_offset:
            self._sync()
        end = high_watermark(
            self._role,
            self._in_sync,
            self._ends,
            current=log.high_watermark,
            log_end=log.log_end_offset,
            flushed=log.flushed_offset if config.acks_fsync else None,
            min_isr=config.min_insync_replicas,
        )
        if end > log.high_watermark:
            log.state.set_high_watermark(end)
            self._producers.release(end)
            self._readers.wake(self._unread.take(end))

    def when_acknowledged(self, end_offset: int, then: Callable[[PendingAck], None]) -> PendingAck | None:
        """None when everything below `end_offset` is committed, else the wait; `then` hears how it ends."""
        if self.log.state.high_watermark >= end_offset:
            return None
        return self._producers.wait(end_offset, then)

    def acknowledged(self, end_offset: int) -> "asyncio.Future[bool] | None":
        """As `when_acknowledged`: False if it never will be. Cancelling the future only ends the wait."""
        if self.log.state.high_watermark >= end_offset:
            return None
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def settle(ended: PendingAck) -> None:
            if not future.done():
                future.set_result(bool(ended.is_committed))

        pending = self._producers.wait(end_offset, settle)
        future.add_done_callback(lambda _: pending.cancel())
        return future

    def watch(self, reader: Reader) -> None:
        self._readers.add(reader)

    def unwatch(self, reader: Reader) -> None:
        self._readers.discard(reader)

    def watch_end(self, reader: Reader) -> None:
        """For a follower, which reads what is not committed; otherwise as `watch`."""
        self._end_readers.add(reader)

    def unwatch_end(self, reader: Reader) -> None:
        self._end_readers.discard(reader)

    def replace_log(self, log: Log) -> None:
        """Go on with a log that holds the same records in another place; the caller closes the old one.

        It is on disk up to its end, so that a wait for a sync of the old one is over.
        """
        assert log.log_end_offset == self.log.log_end_offset
        self.log = log
        self._note_short_way()
        self._is_syncing = False
        if isinstance(self._role, Leader):
            log.state.assign_leader_epoch(self._role.epoch)
        self.advance()
        self.disturb_readers()

    def disturb_readers(self) -> None:
        """After records were deleted: a waiting reader may now be out of range."""
        self._readers.disturb()
        self._end_readers.disturb()

    def _report_unwritable(self, error: Exception) -> None:
        """Once, not for each of the batches that producers send again and again."""
        if not self._is_unwritable:
            self._is_unwritable = True
            self._note_short_way()
            _logger.error("%s cannot be written: %s", self.topic_partition, error)

    def _sync(self) -> None:
        """Ask for the next shared sync; one that is under way asks again when it ends."""
        if not self._is_syncing:
            self._is_syncing = True
            log, generation = self.log, self.log.generation
            synced = self._flusher.flush_to(log.sync, log.log_end_offset)
            synced.add_done_callback(lambda done: self._on_synced(log, generation, done))

    def _on_synced(self, log: Log, generation: int, synced: "asyncio.Future[None]") -> None:
        if log is not self.log:
            if not synced.cancelled():
                synced.exception()  # The log was replaced meanwhile; how this ended does not matter.
            return
        self._is_syncing = False
        error = None if synced.cancelled() else synced.exception()
        was_truncated = log.is_online and log.generation != generation
        if error is None or was_truncated:
            # What was cut off will never be on disk; who waited for it was told when the leader changed.
            self.advance()
            return
        _logger.error("%s could not be synced: %s", self.topic_partition, error)
        self._producers.give_up()
        if isinstance(error, StorageError) and isinstance(self._role, Leader):
            self.take_role(Offline(self._role.epoch))
