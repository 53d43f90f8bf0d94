"""A log that is not open, as far as it can be asked about: what is known of it, and the rest by a brief look.

Most questions (where it begins and ends, which epochs it has) need no file. `LogFacts` are what a log said
when it was closed; they hold until it is opened again, since nothing changes a closed log. A log that was
never written to has no files, and its facts are those of nothing. What is in the records is found by opening
the log for one question and closing it again.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Final, NamedTuple

from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch, TopicId
from riverlog.storage.log.leader_epochs import LeaderEpochs
from riverlog.storage.log.log import Log
from riverlog.storage.log.timestamps import TimestampedOffset
from riverlog.storage.producers.state import ProducerEntry

LookInside = Callable[[], AbstractContextManager[Log]]
"""The log, opened for as long as the context lasts. Raises `StorageError`."""


class LogFacts(NamedTuple):
    """What a log said of itself when it was closed, all of it on disk."""

    log_start_offset: int
    high_watermark: int
    """Up to where it is known to be committed."""
    log_end_offset: int
    unstable_offset: int | None
    """Where its first open transaction begins; None where there is none."""
    epochs: tuple[tuple[LeaderEpoch, int], ...]
    size_bytes: int
    has_producers: bool
    topic_id: TopicId | None


NOTHING: Final = LogFacts(0, 0, 0, None, (), 0, has_producers=False, topic_id=None)
"""Of a log that was never written to."""


def facts_of(log: Log) -> LogFacts:
    """Of a log that is about to be closed."""
    state = log.state
    return LogFacts(
        state.log_start_offset,
        state.high_watermark,
        state.log_end_offset,
        next(iter(state.producers.ongoing.values()), None),
        state.epochs.entries,
        state.segments.size_bytes,
        has_producers=any(True for _ in state.producers),
        topic_id=log.topic_id,
    )


class ClosedState(NamedTuple):
    """The part of a `LogState` that a closed log has, under the names that it has there."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    log_end_offset: int
    epochs: LeaderEpochs


@lru_cache(maxsize=1024)
def closed_state(facts: LogFacts, leader_epoch: LeaderEpoch | None, *, is_sole: bool) -> ClosedState:
    """Under a leader of this epoch, which begins where the log ends unless there are records of it already;
    None for a copy. What the only replica has is committed.

    Nobody changes it, so that partitions that are alike share it.
    """
    epochs = LeaderEpochs(list(facts.epochs))
    if leader_epoch is not None:
        epochs.assign(leader_epoch, facts.log_end_offset)
    start, end, unstable = facts.log_start_offset, facts.log_end_offset, facts.unstable_offset
    watermark = end if is_sole else facts.high_watermark
    stable = watermark if unstable is None else min(unstable, watermark)
    return ClosedState(start, watermark, stable, end, epochs)


class ClosedLog:
    """Answers as the `Log` would if it were opened."""

    __slots__ = ("_config", "_facts", "_look_inside", "state")

    def __init__(
        self,
        facts: LogFacts,
        leader_epoch: LeaderEpoch | None,
        config: Callable[[], LogConfig],
        look_inside: LookInside,
        *,
        is_sole: bool = True,
    ) -> None:
        self.state = closed_state(facts, leader_epoch, is_sole=is_sole)
        self._facts = facts
        self._config = config
        self._look_inside = look_inside

    @property
    def config(self) -> LogConfig:
        return self._config()

    @property
    def log_start_offset(self) -> int:
        return self.state.log_start_offset

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    @property
    def producers(self) -> list[tuple[int, ProducerEntry]]:
        if not self._facts.has_producers:
            return []
        with self._look_inside() as log:
            return list(log.producers)

    def holds_records_from(self, offset: int) -> bool:
        """Whether there is anything to be read there, for which the log is opened."""
        return self.state.log_start_offset <= offset < self.state.log_end_offset

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        if not self._facts.size_bytes:
            return None
        with self._look_inside() as log:
            return log.offset_for_timestamp(timestamp_ms)

    def max_timestamp(self) -> TimestampedOffset | None:
        if not self._facts.size_bytes:
            return None
        with self._look_inside() as log:
            return log.max_timestamp()

    def leader_epoch_for(self, offset: int) -> LeaderEpoch | None:
        return self.state.epochs.epoch_for(offset)

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, int] | None:
        return self.state.epochs.end_offset_for(epoch, self.state.log_end_offset)
