"""One partition's log: what it is made of, and reading it.

The parts share its `state`; each keeps an invariant of its own: `appending` (what is written is known, and
nothing else), `sync` (what is on disk), `cutting` (records go at the front and at the end only) and
`replacement` (compaction). Used from one thread, the event loop's; only `SyncTask.run` (see `syncing`) runs
elsewhere. Not here: roles and replicas, and waiting.
"""

from riverlog.model.config.slices import LogConfig
from riverlog.model.errors import DamagedLogError
from riverlog.model.ids import LeaderEpoch
from riverlog.records.rules import Accepted
from riverlog.storage.files.partition_metadata import agree_on_topic_id
from riverlog.storage.files.transaction_index import AbortedTransaction
from riverlog.storage.log import aborted, timestamps
from riverlog.storage.log.appending import LogAppending
from riverlog.storage.log.appends import AppendOrigin, AppendOutcome, OffsetOutOfRange
from riverlog.storage.log.cutting import LogCutting
from riverlog.storage.log.leader_epochs import LeaderEpochs
from riverlog.storage.log.loading import LogLoader
from riverlog.storage.log.opening import LogEnvironment, LogToOpen
from riverlog.storage.log.replacement import LogReplacement
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.segment_list import IsWarm, LogRead
from riverlog.storage.log.syncing import LogSync
from riverlog.storage.log.timestamps import TimestampedOffset
from riverlog.storage.producers.state import ProducerStates


class Log:
    __slots__ = (
        "_environment",
        "_gate",
        "appending",
        "cut_bytes",
        "cutting",
        "replacement",
        "state",
        "sync",
        "topic_id",
        "topic_partition",
        "was_clean",
    )

    def __init__(self, to_open: LogToOpen, environment: LogEnvironment) -> None:
        """Open what is on disk, recovered where it was not closed cleanly, or begin anew."""
        disk, directory, is_clean = environment.files.disk, to_open.directory, to_open.is_clean
        disk.make_directories(directory)
        self.topic_partition = to_open.topic_partition
        self.was_clean = is_clean
        """Whether it was closed cleanly; else a power cut may have taken its end."""
        self.topic_id = agree_on_topic_id(disk, directory, to_open.topic_id, clean=is_clean)
        loaded = LogLoader(to_open, environment.files, environment.clock.wall_ms()).load()
        self.cut_bytes = loaded.cut_bytes
        """How much of an unfinished write was found, and is gone."""
        self._environment = environment
        self.state = state = loaded.state
        self.sync = sync = LogSync(state, environment, to_open, loaded.recovered_from, is_new=loaded.is_new)
        self.appending = LogAppending(state, sync, sync.gate, environment.clock)
        self.cutting = LogCutting(state, sync, environment)
        self.replacement = LogReplacement(state, sync, self.cutting, environment)
        self._gate = sync.gate
        if to_open.log_start_offset > state.log_end_offset:
            # Everything that is left lies below the log start, so there is nothing to keep.
            try:
                self.cutting.truncate_fully_and_start_at(to_open.log_start_offset)
            except BaseException:
                self.close(clean=False)
                raise
        state.epochs.truncate_from_start(state.log_start_offset)

    @property
    def directory(self) -> str:
        return self.state.directory

    @property
    def config(self) -> LogConfig:
        return self.state.config

    @property
    def producers(self) -> ProducerStates:
        return self.state.producers

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self.state.segments)

    @property
    def log_start_offset(self) -> int:
        return self.state.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        return self.state.last_stable_offset

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self.state.log_end_offset

    @property
    def flushed_offset(self) -> int:
        """Everything below is on disk; recovery begins here."""
        return self.sync.flushed_offset

    @property
    def generation(self) -> int:
        """Changes when the end of the log is cut off."""
        return self.state.generation

    @property
    def size_bytes(self) -> int:
        return self.state.segments.size_bytes

    @property
    def is_online(self) -> bool:
        return self._gate.is_open

    def append(
        self, accepted: Accepted, *, leader_epoch: LeaderEpoch, origin: AppendOrigin = AppendOrigin.CLIENT
    ) -> AppendOutcome:
        """See `LogAppending.append`."""
        return self.appending.append(accepted, leader_epoch, origin)

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        end_offset: int,
        at_least_one_batch: bool = True,
        is_warm: IsWarm | None = None,
    ) -> LogRead | OffsetOutOfRange:
        """Whole batches from the one that holds `offset`, as a slice of a file; nothing past `end_offset`.

        Raises `DamagedLogError` where that one is damaged; a slice ends before damage. Given `is_warm`,
        it does not wait for the disk to find that out: see `LogRead.cold`.
        """
        gate, state = self._gate, self.state
        if gate.is_closed or gate.health.failure is not None:
            gate.require_open()
        if not state.log_start_offset <= offset <= state.log_end_offset:
            return OffsetOutOfRange(state.log_start_offset, state.log_end_offset)
        if offset >= end_offset:
            return LogRead(None, end_offset)
        state.is_read = True
        try:
            return state.segments.read(
                offset,
                max_bytes=max_bytes,
                end_offset=end_offset,
                at_least_one_batch=at_least_one_batch,
                is_warm=is_warm,
            )
        except DamagedLogError as damage:
            self._environment.files.damage.note(damage)
            raise

    def aborted_between(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that touch a range."""
        with self._environment.files.damage:
            return aborted.aborted_between(self.state.segments, start_offset, end_offset)

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Producer id and first offset of each of them."""
        return [each[:2] for each in self.aborted_between(start_offset, end_offset)]

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record that is not older."""
        self._gate.require_open()
        with self._environment.files.damage:
            return timestamps.first_at_or_after(
                self.state.segments, timestamp_ms, log_start_offset=self.state.log_start_offset
            )

    def max_timestamp(self) -> TimestampedOffset | None:
        """The first record with the greatest timestamp."""
        self._gate.require_open()
        with self._environment.files.damage:
            return timestamps.newest(self.state.segments)

    def leader_epoch_for(self, offset: int) -> LeaderEpoch | None:
        return self.state.epochs.epoch_for(offset)

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, int] | None:
        return self.state.epochs.end_offset_for(epoch, self.state.log_end_offset)

    def take_over(self, original: "Log") -> None:
        """Be to producers and readers what `original`, whose records these are, is to them. Writes, unsynced.

        Its producers may be of records that are gone, and its epochs may have none, so that the records do
        not tell.
        """
        self._gate.require_open()
        state, other = self.state, original.state
        assert state.log_end_offset == other.log_end_offset
        state.producers = other.producers
        state.epochs = LeaderEpochs(list(other.epochs.entries))
        state.epochs.is_dirty = self.sync.is_touched = True
        state.snapshots.write(state.log_end_offset, state.producers)
        state.set_high_watermark(other.high_watermark)
        state.move_start(other.log_start_offset)

    def close(self, *, clean: bool = True, parent_is_synced: bool = False) -> None:
        """Close; `clean` saves everything first and blocks. Slices that were handed out stay readable."""
        if self._gate.is_closed:
            return
        if clean and self._gate.health.is_online:
            self.sync.save(parent_is_synced=parent_is_synced)
        self._gate.close()
        for segment in self.state.segments:
            segment.forget_files()

    def rename_and_close(self, new_directory: str) -> None:
        """Move the directory out of the way and close; waits for a sync in progress."""
        self.close(clean=False)
        self._environment.deleted.drop_below(self.directory)
        self._environment.files.disk.rename(self.directory, new_directory)
        self.state.directory = new_directory
