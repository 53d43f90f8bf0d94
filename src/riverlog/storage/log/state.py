"""What a log consists of in memory, which the parts of `Log` share: its segments, and what describes them.

Invariants: log start <= last stable offset <= high watermark <= log end; producers, leader epochs and indexes
speak of exactly those batches that are whole in the files. Whoever changes one of these changes the others
before it returns to the event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch
from riverlog.storage.log.leader_epochs import LeaderEpochs
from riverlog.storage.log.segment_list import SegmentList
from riverlog.storage.producers.snapshots import ProducerSnapshots
from riverlog.storage.producers.state import ProducerStates


@dataclass(slots=True, eq=False)
class LogState:
    directory: str
    config: LogConfig
    segments: SegmentList
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: ProducerSnapshots
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    cleaned_offset: int
    """How far compaction has come."""
    generation: int = 0
    """Changes when the end of the log is cut off."""
    is_read: bool = False
    """Somebody has read records since this was last looked at."""
    on_start_moved: Callable[[], None] | None = None
    """Called in the middle of a change: it may only note that there was one."""

    @property
    def last_stable_offset(self) -> int:
        producers = self.producers
        if not producers.ongoing and not producers.unreplicated:
            return self.high_watermark
        unstable = producers.first_unstable_offset()
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def set_high_watermark(self, offset: int) -> None:
        self.high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        if self.producers.unreplicated:
            self.producers.pass_high_watermark(self.high_watermark)

    def commit_all(self) -> None:
        """Everything that is in the log may be read."""
        end = self.log_end_offset
        assert end >= self.high_watermark  # What was committed is never taken back by an append.
        self.high_watermark = end
        if self.producers.unreplicated:
            self.producers.pass_high_watermark(end)

    def assign_leader_epoch(self, epoch: LeaderEpoch) -> None:
        """This replica leads from here on."""
        self.epochs.assign(epoch, self.log_end_offset)

    def move_start(self, offset: int) -> None:
        """Up, if anywhere."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self.set_high_watermark(self.high_watermark)
            if self.on_start_moved is not None:
                self.on_start_moved()

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self.segments.active.look_closer()

    def expire_producers(self, now_ms: int) -> int:
        return self.producers.expire(now_ms, expiration_ms=self.config.producer_id_expiration_ms)
