"""Appending to a log: batches are judged, given their offsets in place, and written in one go.

Invariant: a batch is in the state (producers, epochs, indexes, log end) exactly if it is whole in the file;
so the state is changed after the write, and what the disk has no room for is cut off again. Not here:
whether the batches are sound (`records.validate`), and what is committed.
"""

from dataclasses import dataclass

from riverlog.model.clock import Clock
from riverlog.model.errors import DiskFullError, ErrorCode
from riverlog.model.ids import LeaderEpoch
from riverlog.model.named_tuples import maker_of
from riverlog.records.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, BatchHeader, patch, patch_only
from riverlog.records.rules import Accepted
from riverlog.storage.log.appends import (
    Appended,
    AppendOrigin,
    AppendOutcome,
    Duplicate,
    PlacedBatch,
    Refused,
    split_by_segment,
)
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.state import LogState
from riverlog.storage.log.syncing import LogGate, LogSync
from riverlog.storage.producers.state import EndMarker, end_marker

_appended, _placed = maker_of(Appended), maker_of(PlacedBatch)


@dataclass(slots=True, eq=False)
class LogAppending:
    _state: LogState
    _sync: LogSync
    _gate: LogGate
    _clock: Clock

    def append(self, accepted: Accepted, leader_epoch: LeaderEpoch, origin: AppendOrigin) -> AppendOutcome:
        """Write validated batches. Raises `DiskFullError` (nothing was written) or `StorageError`.

        A replica stores what its leader took, over as many segments as it takes; where the disk is full in
        between, the segments that were filled stay.
        """
        data, is_leader = accepted.data, origin is not AppendOrigin.REPLICATION
        if origin is AppendOrigin.CLIENT and len(accepted.batches) == 1:
            return self.append_single(data, accepted.batches[0][1], leader_epoch)
        self._gate.require_open()
        if is_leader and len(data) > self._state.config.segment_bytes:
            return self._too_large(len(data))
        placed: list[PlacedBatch] = []
        first_offset = next_offset = self._state.log_end_offset
        for position, header in accepted.batches:
            marker = end_marker(header, data, position) if header.attributes & CONTROL_FLAG else None
            if is_leader:
                if header.producer_id >= 0 and (answer := self._judge(header, marker, origin)) is not None:
                    return answer
                patch(data, position, base_offset=next_offset, leader_epoch=leader_epoch)
            elif header.base_offset < next_offset:
                return Refused(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"A replicated batch begins at {header.base_offset}, the log ends at {next_offset}.",
                )
            else:
                next_offset = header.base_offset
            last_offset = next_offset + header.last_offset_delta
            placed.append(PlacedBatch(next_offset, last_offset, header, marker))
            next_offset = last_offset + 1
        if is_leader:
            self._write(data, placed, accepted.max_timestamp_ms, leader_epoch)
        else:
            first_offset = placed[0].base_offset
            self._write_replicated(data, accepted.batches[0][0], placed)
        stamp = placed[0].header
        append_time_ms = stamp.max_timestamp_ms if stamp.attributes & LOG_APPEND_TIME_FLAG else None
        return Appended(first_offset, next_offset - 1, append_time_ms)

    def append_single(
        self,
        data: memoryview,
        header: BatchHeader,
        leader_epoch: LeaderEpoch,
        *,
        may_fit_headroom: bool = True,
    ) -> AppendOutcome:
        """One whole batch of a client, and so no marker: the same as `append`, without its loops."""
        state, gate = self._state, self._gate
        if gate.is_closed or gate.health.failure is not None:
            gate.require_open()
        _, size_bytes, _, _, _, attributes, offset_delta, _, timestamp_ms, producer_id, _, _, _ = header
        if size_bytes > state.config.segment_bytes:
            return self._too_large(size_bytes)
        if producer_id >= 0 and (answer := self._judge(header, None, AppendOrigin.CLIENT)) is not None:
            return answer
        base_offset = None
        if may_fit_headroom:
            base_offset = self.append_within_headroom(data, offset_delta, timestamp_ms, leader_epoch)
        if base_offset is None:
            base_offset = state.log_end_offset
            patch_only(data, base_offset, leader_epoch)
            placed = _placed((base_offset, base_offset + offset_delta, header, None))
            self._write(data, [placed], timestamp_ms, leader_epoch)
        elif producer_id >= 0:
            state.producers.apply(header, base_offset, None)
        append_time_ms = timestamp_ms if attributes & LOG_APPEND_TIME_FLAG else None
        return _appended((base_offset, base_offset + offset_delta, append_time_ms))

    def append_within_headroom(
        self, data: memoryview, offset_delta: int, timestamp_ms: int, leader_epoch: LeaderEpoch
    ) -> int | None:
        """One ordinary batch, of which the caller has told the producer state: its first offset.

        None, and nothing is written, where the active segment has no headroom or there is more to look at.
        """
        state, gate = self._state, self._gate
        segments, base_offset = state.segments, state.log_end_offset
        active, last_offset = segments.active, base_offset + offset_delta
        if (headroom := active.headroom) is None:
            return None
        end_bytes, newest_ms, headroom_offset, headroom_epoch = headroom
        position = active.size_bytes
        if (
            position + len(data) > end_bytes
            or timestamp_ms > newest_ms
            or last_offset > headroom_offset
            or leader_epoch != headroom_epoch
            or gate.is_closed
            or gate.health.failure is not None
        ):
            return None
        patch_only(data, base_offset, leader_epoch)
        active.write_within_headroom(data, last_offset, timestamp_ms)
        # `note_newest` trims these, with the batch that renews the headroom.
        segments.recent_offsets.append(base_offset)
        segments.recent_positions.append(position)
        state.log_end_offset = last_offset + 1
        return base_offset

    def _too_large(self, size_bytes: int) -> Refused:
        return Refused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size_bytes} bytes do not fit in a segment of {self._state.config.segment_bytes}.",
        )

    def _judge(
        self, header: BatchHeader, marker: EndMarker | None, origin: AppendOrigin
    ) -> Duplicate | Refused | None:
        producers = self._state.producers
        if origin is AppendOrigin.CLIENT and (written := producers.decide_duplicate(header)) is not None:
            return Duplicate(written.first_offset, written.last_offset, written.timestamp_ms)
        refusal = producers.decide(header, marker, check_sequence=origin is AppendOrigin.CLIENT)
        return Refused(refusal.error, refusal.message) if refusal is not None else None

    def _write_replicated(self, data: memoryview, position: int, placed: list[PlacedBatch]) -> None:
        """Batches as a leader has them, the first of which is at `position`."""
        for run in split_by_segment(placed, self._state.config.segment_bytes):
            end = position + sum(each.header.size_bytes for each in run)
            newest_ms = max(each.header.max_timestamp_ms for each in run)
            self._write(data[position:end], run, newest_ms, None)
            position = end

    def _write(
        self, data: memoryview, placed: list[PlacedBatch], newest_ms: int, leader_epoch: LeaderEpoch | None
    ) -> None:
        """Put batches that were judged into the file, then into the state; None leaves each its epoch."""
        state, sync, active = self._state, self._sync, self._state.segments.active
        config, segments = state.config, state.segments
        assert placed[0].base_offset >= state.log_end_offset  # An offset is given once.
        if active.should_roll(config, len(data), placed[-1].last_offset, newest_ms, self._clock):
            sync.roll(placed[0].base_offset)
            active = segments.active
        active.write(data)
        sync.is_touched = True
        for base_offset, last_offset, header, marker in placed:
            position = active.size_bytes
            active.account_for(header, last_offset, config.index_interval_bytes)
            segments.note_newest(base_offset, position)
            if marker is not None:
                self._index_abort(active, position, base_offset, header, marker)
            epoch = header.leader_epoch if leader_epoch is None else leader_epoch
            state.epochs.assign(epoch, base_offset)
            if header.producer_id >= 0:
                state.producers.apply(header, base_offset, marker)
            state.log_end_offset = last_offset + 1
        active.renew_headroom(config, epoch)
        due = config.flush_messages
        if due is not None and state.log_end_offset - sync.flushed_offset >= due:
            sync.request()

    def _index_abort(
        self, active: Segment, position: int, base_offset: int, header: BatchHeader, marker: EndMarker
    ) -> None:
        last_offset = base_offset + header.last_offset_delta
        aborted = self._state.producers.decide_aborted(header, last_offset, marker)
        if aborted is None:
            return
        try:
            active.transactions.append(aborted)
        except DiskFullError:
            # Without its index entry the marker must not stand; what came before it does.
            active.truncate_at(position=position, end_offset=base_offset)
            self._state.segments.forget_recent()
            raise
