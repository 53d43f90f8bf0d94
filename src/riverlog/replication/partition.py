"""One partition on this node: a log with a role.

Keeps log start <= last stable offset <= high watermark <= log end, and moves the high watermark only
forward. With one replica it follows the end of the log, or, with `riverlog.acks.fsync`, the end of what is
on disk; readers never see beyond it. Used from the event loop only.
"""

import asyncio
import logging
from typing import NamedTuple, assert_never
from uuid import UUID

from riverlog.model.config.slices import CompressionType, LogConfig, TimestampType
from riverlog.model.errors import DiskFullError, ErrorCode, StorageError
from riverlog.model.ids import TopicPartition
from riverlog.records import validate as validation
from riverlog.records.batch import TRANSACTIONAL_FLAG, header_of
from riverlog.records.compression import Codec
from riverlog.replication.roles import Follower, Leader, Offline, Role
from riverlog.replication.waiting import Reader, WaitingProducers, WaitingReaders
from riverlog.storage.appends import Appended, AppendOutcome, Duplicate, Origin, Refused
from riverlog.storage.flusher import Flusher
from riverlog.storage.log import Log

_logger = logging.getLogger(__name__)


class Written(NamedTuple):
    """The records stand in the log; they are acknowledged when the high watermark reaches `end_offset`."""

    first_offset: int
    end_offset: int
    append_time_ms: int | None


class NotWritten(NamedTuple):
    error: ErrorCode
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()


class Partition:
    __slots__ = (
        "_epoch_for_all",
        "_epoch_for_one",
        "_flusher",
        "_is_syncing",
        "_is_unwritable",
        "_producers",
        "_readers",
        "_role",
        "_rules",
        "_unread_bytes",
        "log",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, log: Log, topic_id: UUID, role: Role, flusher: Flusher) -> None:
        self.log = log
        self.topic_id = topic_id
        self.topic_partition: TopicPartition = log.topic_partition
        self._role = role
        self._flusher = flusher
        self._is_syncing = False
        self._is_unwritable = False
        self._rules = batch_rules(log.config)
        self._readers = WaitingReaders()
        self._producers = WaitingProducers()
        self._unread_bytes = 0
        self._look_for_short_way()

    @property
    def role(self) -> Role:
        return self._role

    @property
    def leader_epoch(self) -> int:
        return self._role.epoch

    def take_role(self, role: Role) -> None:
        """Waiting readers look again; whoever waits for an acknowledgement of another leader is told."""
        if role == self._role:
            return
        self._role = role
        self._look_for_short_way()
        if isinstance(role, Leader):
            self.log.assign_leader_epoch(role.epoch)
        else:
            self._producers.give_up()
        self._readers.disturb()

    def begin(self) -> None:
        """Serve the log as it was found: with one replica, all of it is committed once it is on disk.

        A leader's epoch begins where it takes over, not with its first batch: clients ask for it before.
        """
        if isinstance(self._role, Leader):
            self.log.assign_leader_epoch(self._role.epoch)
        self.advance()

    def update_config(self, config: LogConfig) -> None:
        self.log.update_config(config)
        self._rules = batch_rules(config)
        self._look_for_short_way()
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
            case Offline(is_deleted=is_deleted):
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_deleted else ErrorCode.KAFKA_STORAGE_ERROR
            case other:
                assert_never(other)

    def append(
        self, data: memoryview, now_ms: int, *, for_all_replicas: bool, origin: Origin = Origin.CLIENT
    ) -> Written | NotWritten:
        """Validate, assign offsets and write; `data` is patched in place."""
        role = self._role
        if not isinstance(role, Leader):
            return NotWritten(self.refusal() or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if for_all_replicas and not self._has_enough_replicas():
            return NotWritten(ErrorCode.NOT_ENOUGH_REPLICAS)
        if origin is Origin.COORDINATOR:
            accepted = validation.trust(data, self._rules)
        else:
            accepted = validation.validate(data, self._rules, now_ms)
        if isinstance(accepted, validation.Rejected):
            return NotWritten(accepted.error, accepted.reply_message, accepted.record_errors)
        try:
            outcome = self.log.append(accepted, leader_epoch=role.epoch, origin=origin)
        except (DiskFullError, StorageError) as error:
            return self._not_stored(error)
        return self._told(outcome, len(accepted.data))

    def append_plain(self, data: memoryview, now_ms: int, for_all_replicas: bool) -> int | NotWritten | None:
        """The short way for an ordinary batch outside of any transaction: the offset of its first record,
        which is written and acknowledged.

        None, and nothing is written, where there is more to look at: `append` knows what.
        """
        epoch = self._epoch_for_all if for_all_replicas else self._epoch_for_one
        if epoch is None:
            return None
        fields = validation.ordinary_fields(data, self._rules, now_ms)
        if fields is None or fields[5] & TRANSACTIONAL_FLAG:
            return None
        log = self.log
        try:
            # Without a producer id there is nothing to judge by what came before.
            offset = log.append_in_room(data, fields[6], fields[8], epoch) if fields[9] < 0 else None
            if offset is None:
                outcome = log.append_single(data, header_of(fields), epoch)
                if type(outcome) is not Appended:
                    return None
                offset = outcome.first_offset
        except (DiskFullError, StorageError) as error:
            return self._not_stored(error)
        log.commit_all()
        if self._producers.waiting:
            self._producers.release(log.high_watermark)
        if self._readers.waiting:
            self._readers.wake(len(data))
        return offset

    def _look_for_short_way(self) -> None:
        """Under which epoch a batch may be written that one replica, or all, must have; None for no batch.

        To be called when the role, the config or `_is_unwritable` has changed.
        """
        role, config = self._role, self.log.config
        is_plain = isinstance(role, Leader) and not self._is_unwritable and not config.acks_fsync
        self._epoch_for_one = role.epoch if is_plain else None
        self._epoch_for_all = self._epoch_for_one if self._has_enough_replicas() else None

    def _has_enough_replicas(self) -> bool:
        role = self._role
        return isinstance(role, Leader) and len(role.isr) >= min(
            self.log.config.min_insync_replicas, role.replica_count
        )

    def _told(self, outcome: AppendOutcome, size_bytes: int) -> Written | NotWritten:
        match outcome:
            case Appended(first_offset, last_offset, append_time_ms):
                if self._is_unwritable:
                    self._is_unwritable = False
                    self._look_for_short_way()
                    _logger.warning("%s is written again", self.topic_partition)
                self._unread_bytes += size_bytes
                self.advance()
                return Written(first_offset, last_offset + 1, append_time_ms)
            case Duplicate():
                self.advance()  # A sync that failed for want of room is tried again by whoever asks again.
                return Written(outcome.first_offset, outcome.last_offset + 1, outcome.append_time_ms)
            case Refused():
                return NotWritten(outcome.error)
            case other:
                assert_never(other)

    def _not_stored(self, error: Exception) -> NotWritten:
        self._report_unwritable(error)
        return NotWritten(ErrorCode.KAFKA_STORAGE_ERROR)

    def advance(self) -> None:
        """Move the high watermark as far as it may go, and wake those who wait for it."""
        log = self.log
        end = log.log_end_offset
        if log.config.acks_fsync:
            if log.flushed_offset < end:
                self._sync()
            end = min(end, log.flushed_offset)
        if end <= log.high_watermark or not isinstance(self._role, Leader):
            return
        log.set_high_watermark(end)
        size_bytes, self._unread_bytes = self._unread_bytes, 0
        self._producers.release(end)
        self._readers.wake(size_bytes)

    def acknowledged(self, end_offset: int) -> "asyncio.Future[bool] | None":
        """None when everything below `end_offset` is committed, else the wait: False if it never will be."""
        if self.log.high_watermark >= end_offset:
            return None
        return self._producers.wait(end_offset)

    def watch(self, reader: Reader) -> None:
        self._readers.add(reader)

    def unwatch(self, reader: Reader) -> None:
        self._readers.discard(reader)

    def replace_log(self, log: Log) -> None:
        """Go on with a log that holds the same records in another place; the caller closes the old one.

        It is on disk up to its end, so that whoever waited for a sync of the old one need not any more.
        """
        assert log.log_end_offset == self.log.log_end_offset
        self.log = log
        self._look_for_short_way()
        self._is_syncing = False
        if isinstance(self._role, Leader):
            log.assign_leader_epoch(self._role.epoch)
        self.advance()
        self._readers.disturb()

    def disturb_readers(self) -> None:
        """After records were deleted: a waiting reader may now be out of range."""
        self._readers.disturb()

    def _report_unwritable(self, error: Exception) -> None:
        """Once, not for each of the batches that producers send again and again."""
        if not self._is_unwritable:
            self._is_unwritable = True
            self._look_for_short_way()
            _logger.error("%s cannot be written: %s", self.topic_partition, error)

    def _sync(self) -> None:
        """Ask for the next shared sync; one that is under way asks again when it ends."""
        if not self._is_syncing:
            self._is_syncing = True
            log = self.log
            synced = self._flusher.flush_to(log, log.log_end_offset)
            synced.add_done_callback(lambda done: self._on_synced(log, done))

    def _on_synced(self, log: Log, synced: "asyncio.Future[None]") -> None:
        if log is not self.log:
            if not synced.cancelled():
                synced.exception()  # The log was replaced meanwhile; how this ended is no matter.
            return
        self._is_syncing = False
        error = None if synced.cancelled() else synced.exception()
        if error is None:
            self.advance()
            return
        _logger.error("%s could not be synced: %s", self.topic_partition, error)
        self._producers.give_up()
        if isinstance(error, StorageError) and isinstance(self._role, Leader):
            self.take_role(Offline(self._role.epoch))


def batch_rules(config: LogConfig) -> validation.BatchRules:
    return validation.BatchRules(
        max_batch_bytes=config.max_message_bytes,
        timestamp_type=(
            validation.TimestampType.APPEND
            if config.timestamp_type is TimestampType.LOG_APPEND_TIME
            else validation.TimestampType.CREATE
        ),
        timestamp_before_max_ms=config.timestamp_before_max_ms,
        timestamp_after_max_ms=config.timestamp_after_max_ms,
        compacted=config.is_compacted,
        codec=_CODECS[config.compression_type],
        compression_level=config.compression_level,
        validate_records=config.validate_records,
        decompressed_limit_bytes=config.decompressed_bytes_max,
    )


_CODECS: dict[CompressionType, Codec | None] = {
    CompressionType.PRODUCER: None,
    CompressionType.UNCOMPRESSED: Codec.NONE,
    CompressionType.GZIP: Codec.GZIP,
    CompressionType.SNAPPY: Codec.SNAPPY,
    CompressionType.LZ4: Codec.LZ4,
    CompressionType.ZSTD: Codec.ZSTD,
}
