"""One partition on this node: a log with a role, and those who wait for it.

Keeps log start <= last stable offset <= high watermark <= log end, and moves the high watermark only
forward, as far as `watermark` says; consumers never see beyond it. Consumers wait for the high watermark;
followers, who watch the partition, are told of every change. A change of the ISR leaves readers and
producers waiting: it only moves the watermark. Used from the event loop only.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import assert_never

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import NodeId, TopicId, TopicPartition
from riverlog.records import validate as validation
from riverlog.records.batch import TRANSACTIONAL_FLAG, header_of
from riverlog.replication.append_outcomes import AppendedRecords, AppendRefused
from riverlog.replication.batch_rules import batch_rules
from riverlog.replication.commit_waits import CommitWaits
from riverlog.replication.leading.follower_states import FollowerFetch
from riverlog.replication.leading.in_sync import InSyncReplicas
from riverlog.replication.leading.isr import IsrChange, IsrRules
from riverlog.replication.leading.led_replicas import LedReplicas
from riverlog.replication.leading.standing import Standing
from riverlog.replication.leading.tenure import Tenure
from riverlog.replication.resting import Resting
from riverlog.replication.roles import Follower, Leader, Offline, Role, RoleHolder
from riverlog.replication.shared_sync import SharedSync
from riverlog.replication.waiting import PendingAck, Reader, WaitingReaders
from riverlog.replication.watchers import PartitionWatcher, Watchers
from riverlog.replication.watermark import high_watermark
from riverlog.replication.write_terms import WriteTerms, write_terms
from riverlog.storage.log.appends import Appended, AppendOrigin, AppendOutcome, Duplicate, Refused
from riverlog.storage.log.flusher import Flusher
from riverlog.storage.log.log import Log

_logger = logging.getLogger(__name__)


class Partition(RoleHolder):
    __slots__ = (
        "_is_unwritable",
        "_rules",
        "_standing",
        "_syncing",
        "_terms",
        "_waits",
        "_watchers",
        "flusher",
        "led",
        "log",
        "tenure",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        log: Log,
        topic_id: TopicId,
        role: Role,
        in_sync: InSyncReplicas,
        flusher: Flusher,
        standing: Standing,
        *,
        readers: WaitingReaders | None = None,
        rested: Resting | None = None,
    ) -> None:
        """`readers` have been waiting since before the log was opened, of which `rested` is what was kept."""
        self.log = log
        self.topic_id = topic_id
        self.topic_partition: TopicPartition = log.topic_partition
        self._role = role
        self.flusher = flusher
        self._standing = standing
        self._syncing = SharedSync(flusher, self._on_synced)
        self._is_unwritable = False
        self._rules = batch_rules(log.config)
        self._waits = CommitWaits(readers or WaitingReaders())
        self._watchers = Watchers()
        self.led = LedReplicas(in_sync, standing, (topic_id, log.topic_partition.partition))
        self.tenure = Tenure(
            self.led,
            standing,
            lambda: self._watchers.askers(self),
            self._watchers.hurry,
            lambda: self.log.config.unclean_leader_election,
        )
        self._note_terms()
        self.count_unread()
        if rested is not None:
            self.led.followers = rested.followers
            rested.watchers.move_to(self)

    @property
    def in_sync(self) -> InSyncReplicas:
        return self.led.in_sync

    def retire(self) -> WaitingReaders:
        """Its log is closed, and another object takes over those who wait for records. Who still holds this
        one is told that it leads nothing, and so asks the `ReplicaSet` again."""
        assert self.is_at_rest
        self._role = Follower(self._role.epoch, None)
        self._note_terms()
        return self._waits.readers

    def rest(self) -> Resting | None:
        """What a leader keeps of its followers while the log is closed; to be called before `retire`."""
        if not isinstance(self._role, Leader) or self.led.in_sync.is_sole:
            return None
        log = self.log
        resting = Resting(
            self.topic_partition,
            self.topic_id,
            self._role.epoch,
            log_start_offset=log.log_start_offset,
            log_end_offset=log.log_end_offset,
            followers=self.led.followers,
        )
        self._watchers.move_to(resting)
        return resting

    @property
    def is_at_rest(self) -> bool:
        """Whether its log can be closed: all of it is committed, all in sync have said that they have it, and
        nobody but readers at its end waits for anything."""
        log, role = self.log, self._role
        if self._syncing.is_under_way or self._waits.producers or self._is_unwritable:
            return False
        if log.high_watermark != log.log_end_offset:
            return False
        if isinstance(role, Leader):
            return self.led.are_in_sync_at(log.log_end_offset) and self._watchers.may_rest(self)
        return isinstance(role, Follower) and not self._watchers

    def take_role(self, role: Role, in_sync: InSyncReplicas | None = None) -> None:
        """Waiting readers look again; producers that wait for an acknowledgement of another leader are told.

        `in_sync` is what a leader counts with. Where nothing but that has changed, the watermark may move on,
        and no reader or producer notices it.
        """
        is_new_role = role != self._role
        if in_sync is not None:
            in_sync = self.in_sync.followed_by(in_sync)
        if not is_new_role and (in_sync is None or in_sync == self.in_sync):
            return
        self._role = role
        if in_sync is not None:
            self.led.take(in_sync)
        self.tenure.has_changed()
        if is_new_role:
            # What followers had of another epoch they may have to take back.
            self.led.followers.forget_all()
        self._note_terms()
        if isinstance(role, Leader):
            self.log.state.assign_leader_epoch(role.epoch)
            self.advance()
        else:
            self.count_unread()
            self._waits.producers.give_up()
            self._syncing.give_up()
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
        self._note_terms()
        self.advance()

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
        is_short = for_all_replicas and not self.has_enough_replicas
        if (is_short or self._commits_alone(for_all_replicas)) and not self.tenure.is_sure():
            # Also where there are too few: whoever is told only that would ask here again, and for ever.
            return AppendRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if is_short or self.log.sync.is_cut:
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
            return self.not_stored(error)
        return self.after_append(outcome, len(accepted.data))

    def _commits_alone(self, for_all_replicas: bool) -> bool:
        """Whether what is written now is acknowledged without another replica having it."""
        return not for_all_replicas or len(self.led.in_sync.isr) == 1

    def append_alone(
        self, data: memoryview, now_ms: int, for_all_replicas: bool
    ) -> int | AppendRefused | None:
        """The short way for an ordinary batch outside of any transaction on a sole replica: the offset of its
        first record, which is written and acknowledged.

        None, and nothing is written, where there is more to look at: `append` knows what. No other request
        can be waiting for an acknowledgement, since each append before this one was committed at once.
        """
        terms = self._terms
        epoch = terms.short_way_epoch_for_all if for_all_replicas else terms.short_way_epoch
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
            return self.not_stored(error)
        log.state.commit_all()  # As `write_terms` has asked `watermark`.
        readers = self._waits.readers
        if readers.waiting:
            readers.wake(len(data))
        return offset

    def _note_terms(self) -> None:
        """To be called when the role, the ISR, the config or `_is_unwritable` changed, and after a sync."""
        is_writable = not (self._is_unwritable or self.log.sync.is_cut)
        self._terms: WriteTerms = write_terms(
            self._role, self.led.in_sync, self.log.config, is_writable=is_writable
        )

    @property
    def has_enough_replicas(self) -> bool:
        """Whether as many are in sync as a producer with acks=all asks for."""
        return self.led.in_sync.is_enough(self.log.state.config.min_insync_replicas)

    def after_append(self, outcome: AppendOutcome, size_bytes: int) -> AppendedRecords | AppendRefused:
        match outcome:
            case Appended(first_offset, last_offset, append_time_ms):
                if self._is_unwritable:
                    self._is_unwritable = False
                    self._note_terms()
                    _logger.warning("%s is written again", self.topic_partition)
                if self._terms.commits_at_once:
                    self.log.state.commit_all()
                    self._waits.readers.wake(size_bytes)
                else:
                    self._waits.unread.add(first_offset, last_offset + 1, size_bytes=size_bytes)
                    self._watchers.tell(self)
                    if type(self._role) is Leader or self.log.config.acks_fsync:
                        self.advance()  # A follower is told how far it may go.
                return AppendedRecords(first_offset, last_offset + 1, append_time_ms)
            case Duplicate():
                self.advance()  # A sync that failed for want of room is tried again by the next request.
                return AppendedRecords(outcome.first_offset, outcome.last_offset + 1, outcome.append_time_ms)
            case Refused():
                return AppendRefused(outcome.error)
            case other:
                assert_never(other)

    def not_stored(self, error: Exception) -> AppendRefused:
        self._report_unwritable(error)
        return AppendRefused(ErrorCode.KAFKA_STORAGE_ERROR)

    def on_replica_fetch(self, fetch: FollowerFetch, now_s: float) -> ErrorCode | None:
        """A follower of this epoch has everything below the offset it fetches from; or why it is not listened
        to, and then nothing changes.

        Not for a fetch whose records have parted from this log: what it has is not what stands here.
        """
        if fetch.leader_epoch is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        refusal = self.refusal(fetch.leader_epoch)
        if refusal is not None:
            return refusal
        if not self.led.is_follower_now(fetch):
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if fetch.fetch_offset > self.log.log_end_offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if self.led.followers.note(fetch, now_s, self.log.log_end_offset):
            self._watchers.tell(self)
        self.advance()
        if self.led.is_candidate(fetch, self.log):
            self._standing.ask_for_isr(self)
        return None

    def note_caught_up(self, follower: NodeId, at_s: float) -> None:
        """It had everything at that time, and said so without naming this partition."""
        self.led.followers.note_caught_up(follower, at_s)

    def wanted_isr(self, now_s: float, rules: IsrRules) -> IsrChange | None:
        """As `LedReplicas` finds it; None, too, when this node does not lead."""
        return self.led.wanted_isr(self.log, now_s, rules) if isinstance(self._role, Leader) else None

    def withdraw_isr(self, partition_epoch: int) -> None:
        if self.led.withdraw_isr(partition_epoch):
            self.advance()

    @property
    def low_watermark(self) -> int:
        return self.led.low_watermark(self.log)

    def count_unread(self) -> None:
        """Anew: whoever waits is told of what is written and not committed when that changes."""
        self._waits.count_anew(self.log)

    def advance(self) -> None:
        """Move the high watermark as far as it may go, and wake those who wait for it.

        What a leader had cut off as a follower has to be gone for good before it writes in its place."""
        log, config = self.log, self.log.config
        if log.sync.is_cut or (config.acks_fsync and log.flushed_offset < log.log_end_offset):
            self._syncing.to_end_of(log)
        end = high_watermark(
            self._role,
            self.led.in_sync,
            self.led.followers,
            current=log.high_watermark,
            log_end=log.log_end_offset,
            flushed=log.flushed_offset if config.acks_fsync else None,
            min_isr=config.min_insync_replicas,
        )
        if end > log.high_watermark:
            log.state.set_high_watermark(end)
            self._waits.release(end)
            self._watchers.tell(self)

    def raise_watermark(self, end: int) -> None:
        self.log.state.set_high_watermark(end)
        self._waits.release(end)

    def when_acknowledged(self, end_offset: int, then: Callable[[PendingAck], None]) -> PendingAck | None:
        """None when everything below `end_offset` is committed, else the wait; `then` hears how it ends."""
        if self.log.state.high_watermark >= end_offset:
            return None
        return self._waits.producers.wait(end_offset, then)

    def acknowledged(self, end_offset: int) -> "asyncio.Future[bool] | None":
        """As `when_acknowledged`: False if it never will be. Cancelling the future only ends the wait."""
        if self.log.state.high_watermark >= end_offset:
            return None
        return self._waits.future(end_offset)

    def watch(self, reader: Reader) -> None:
        self._waits.readers.add(reader)

    def unwatch(self, reader: Reader) -> None:
        self._waits.readers.discard(reader)

    def add_watcher(self, watcher: PartitionWatcher) -> None:
        """Have it told of every change until it is removed, also when this node does not lead any more."""
        self._watchers.add(watcher)
        self.log.state.on_start_moved = self._tell_watchers

    def remove_watcher(self, watcher: PartitionWatcher) -> None:
        self._watchers.remove(watcher)
        if not self._watchers:
            self.log.state.on_start_moved = None

    def _tell_watchers(self) -> None:
        self._watchers.tell(self)

    def replace_log(self, log: Log) -> None:
        """Go on with a log that holds the same records in another place, on disk up to its end; the caller
        closes the old one."""
        assert log.log_end_offset == self.log.log_end_offset
        self.log.state.on_start_moved = None
        self.log = log
        log.state.on_start_moved = self._tell_watchers if self._watchers else None
        self._note_terms()
        self._syncing.forget()
        if isinstance(self._role, Leader):
            log.state.assign_leader_epoch(self._role.epoch)
        self.advance()
        self.disturb_readers()

    def disturb_readers(self) -> None:
        """After records were deleted: a waiting reader may now be out of range."""
        self._waits.readers.disturb()
        self._watchers.tell(self)

    def _report_unwritable(self, error: Exception) -> None:
        """Once, not for each of the batches that producers send again and again."""
        if not self._is_unwritable:
            self._is_unwritable = True
            self._note_terms()
            _logger.error("%s cannot be written: %s", self.topic_partition, error)

    def _on_synced(self, error: BaseException | None) -> None:
        if error is None:
            self._note_terms()
            self.advance()
            return
        _logger.error("%s could not be synced: %s", self.topic_partition, error)
        self._waits.producers.give_up()
        if not isinstance(self._role, Leader):
            return
        if isinstance(error, StorageError):
            self.take_role(Offline(self._role.epoch))
        elif isinstance(error, DiskFullError):
            self._syncing.try_again(self.log)
