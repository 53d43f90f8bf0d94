"""One partition's log: append, read, look up; with what it stands on (`CleanableLog`, ...) the whole of it.

Used from one thread, the event loop's; only `SyncTask.run` (see `syncing`) runs elsewhere. An append is one
write of the buffer that came in, with offsets and leader epoch patched in place. Invariants: log start <=
last stable offset <= high watermark <= log end; a batch is in memory's state (producers, epochs, indexes)
exactly if it is whole in the file. Not here: roles and replicas, and waiting.
"""

from riverlog.model.errors import DiskFullError, ErrorCode
from riverlog.records.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, BatchHeader, patch, patch_only
from riverlog.records.rules import Accepted
from riverlog.storage import timestamps
from riverlog.storage.appends import (
    Appended,
    AppendOutcome,
    Duplicate,
    OffsetOutOfRange,
    Origin,
    PlacedBatch,
    Refused,
)
from riverlog.storage.cleanable_log import CleanableLog
from riverlog.storage.producer_state import EndMarker, end_marker
from riverlog.storage.segment import Segment
from riverlog.storage.segment_list import LogRead
from riverlog.storage.timestamps import TimestampedOffset

_new_tuple = tuple.__new__  # Spares every batch the Python call that a NamedTuple is made by.
__all__ = ["Appended", "Duplicate", "Log", "LogRead", "OffsetOutOfRange", "Origin", "Refused"]


class Log(CleanableLog):
    __slots__ = ()

    def append(
        self, accepted: Accepted, *, leader_epoch: int, origin: Origin = Origin.CLIENT
    ) -> AppendOutcome:
        """Write validated batches. Raises `DiskFullError` (nothing was written) or `StorageError`."""
        self._require_online()
        data, is_leader = accepted.data, origin is not Origin.REPLICATION
        if len(data) > self.config.segment_bytes:
            return self._too_large(len(data))
        if origin is Origin.CLIENT and len(accepted.batches) == 1:
            return self.append_single(data, accepted.batches[0][1], leader_epoch)
        placed: list[PlacedBatch] = []
        first_offset = next_offset = self.log_end_offset
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
        if not is_leader:
            first_offset = placed[0].base_offset
        self._write(accepted, placed, leader_epoch if is_leader else None)
        stamp = placed[0].header
        append_time_ms = stamp.max_timestamp_ms if stamp.attributes & LOG_APPEND_TIME_FLAG else None
        return Appended(first_offset, next_offset - 1, append_time_ms)

    def append_in_room(
        self, data: memoryview, offset_delta: int, timestamp_ms: int, leader_epoch: int
    ) -> int | None:
        """One ordinary batch without a producer id: its first offset.

        None, and nothing is written, where the active segment has no room or there is more to look at.
        """
        segments = self._segments
        active, base_offset = segments.active, self.log_end_offset
        position, last_offset = active.size_bytes, base_offset + offset_delta
        if (room := active.room) is None:
            return None
        end_bytes, newest_ms, room_offset, room_epoch = room
        if (
            position + len(data) > end_bytes
            or timestamp_ms > newest_ms
            or last_offset > room_offset
            or leader_epoch != room_epoch
            or self._health.failure is not None
            or self._gate.is_closed
        ):
            return None
        patch_only(data, base_offset, leader_epoch)
        active.take(data, last_offset, timestamp_ms)
        segments.recent_offsets.append(base_offset)
        segments.recent_positions.append(position)
        self.log_end_offset = last_offset + 1
        return base_offset

    def append_single(self, data: memoryview, header: BatchHeader, leader_epoch: int) -> AppendOutcome:
        """One whole batch of a client, and so no marker: the same as the long way, without its loops."""
        if self._health.failure is not None or self._gate.is_closed:
            self._require_online()
        _, size_bytes, _, _, _, attributes, offset_delta, _, timestamp_ms, producer_id, _, _, _ = header
        if size_bytes > self.config.segment_bytes:
            return self._too_large(size_bytes)
        if producer_id >= 0 and (answer := self._judge(header, None, Origin.CLIENT)) is not None:
            return answer
        base_offset, active = self.log_end_offset, self._segments.active
        last_offset = base_offset + offset_delta
        patch_only(data, base_offset, leader_epoch)
        position, room = active.size_bytes, active.room
        if (
            room is not None
            and position + size_bytes <= room[0]
            and timestamp_ms <= room[1]
            and last_offset <= room[2]
            and leader_epoch == room[3]
        ):
            active.take(data, last_offset, timestamp_ms)
        else:
            position = self._write_single(data, header, last_offset, leader_epoch)
        self._segments.note_newest(base_offset, position)
        if producer_id >= 0:
            self.producers.apply(header, base_offset, None)
        self.log_end_offset = last_offset + 1
        due = self.config.flush_messages
        if due is not None and last_offset + 1 - self._flushed_offset >= due:
            self._ask_for_sync()
        append_time_ms = timestamp_ms if attributes & LOG_APPEND_TIME_FLAG else None
        return _new_tuple(Appended, (base_offset, last_offset, append_time_ms))

    def _write_single(
        self, data: memoryview, header: BatchHeader, last_offset: int, leader_epoch: int
    ) -> int:
        """Where there may not be room, and nobody has looked; the position that it was put at."""
        config, active, base_offset = self.config, self._segments.active, self.log_end_offset
        if active.should_roll(config, len(data), last_offset, header.max_timestamp_ms, self._clock):
            self.roll(base_offset)
            active = self._segments.active
        position = active.size_bytes
        active.write(data)
        active.note(header, last_offset, config.index_interval_bytes)
        self._is_touched = True
        self._epochs.assign(leader_epoch, base_offset)
        active.renew_room(config, leader_epoch)
        return position

    def _too_large(self, size_bytes: int) -> Refused:
        return Refused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size_bytes} bytes do not fit in a segment of {self.config.segment_bytes}.",
        )

    def _judge(
        self, header: BatchHeader, marker: EndMarker | None, origin: Origin
    ) -> Duplicate | Refused | None:
        if origin is Origin.CLIENT and (written := self.producers.decide_duplicate(header)) is not None:
            return Duplicate(written.first_offset, written.last_offset, written.timestamp_ms)
        refusal = self.producers.decide(header, marker, check_sequence=origin is Origin.CLIENT)
        return Refused(refusal.error, refusal.message) if refusal is not None else None

    def _write(self, accepted: Accepted, placed: list[PlacedBatch], leader_epoch: int | None) -> None:
        """Put batches that were judged into the file, then into the state."""
        config, active = self.config, self._segments.active
        if active.should_roll(
            config, len(accepted.data), placed[-1].last_offset, accepted.max_timestamp_ms, self._clock
        ):
            self.roll(placed[0].base_offset)
            active = self._segments.active
        position = active.size_bytes
        active.append(accepted.data, placed, index_interval_bytes=config.index_interval_bytes)
        self._is_touched = True
        self._segments.note_recent(placed, position)
        for base_offset, last_offset, header, marker in placed:
            if marker is not None:
                self._index_abort(active, position, base_offset, header, marker)
            self._epochs.assign(header.leader_epoch if leader_epoch is None else leader_epoch, base_offset)
            if header.producer_id >= 0:
                self.producers.apply(header, base_offset, marker)
            position += header.size_bytes
            self.log_end_offset = last_offset + 1
        due = config.flush_messages
        if due is not None and self.log_end_offset - self._flushed_offset >= due:
            self._ask_for_sync()

    def _index_abort(
        self, active: Segment, position: int, base_offset: int, header: BatchHeader, marker: EndMarker
    ) -> None:
        aborted = self.producers.decide_aborted(header, base_offset + header.last_offset_delta, marker)
        if aborted is None:
            return
        try:
            active.transactions.append(aborted)
        except DiskFullError:
            # Without its index entry the marker must not stand; what came before it does.
            active.truncate_at(position, base_offset)
            self._segments.forget_recent()
            raise

    def read(
        self, offset: int, *, max_bytes: int, end_offset: int, at_least_one_batch: bool = True
    ) -> LogRead | OffsetOutOfRange:
        """Whole batches from the one that holds `offset`, as a slice of a file; nothing past `end_offset`."""
        self._require_online()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return OffsetOutOfRange(self.log_start_offset, self.log_end_offset)
        if offset >= end_offset:
            return LogRead(None, end_offset)
        return self._segments.read(
            offset, max_bytes=max_bytes, end_offset=end_offset, at_least_one_batch=at_least_one_batch
        )

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[tuple[int, int]]:
        """Producer id and first offset of the aborted transactions that touch a range."""
        found: list[tuple[int, int]] = []
        for segment in self._segments.from_offset(start_offset):
            for aborted in segment.transactions:
                if aborted.last_offset >= start_offset and aborted.first_offset < end_offset:
                    found.append((aborted.producer_id, aborted.first_offset))
                if aborted.last_stable_offset >= end_offset:
                    return found
        return found

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampedOffset | None:
        """The first record that is not older."""
        self._require_online()
        return timestamps.first_at_or_after(self._segments, timestamp_ms, self.log_start_offset)

    def max_timestamp(self) -> TimestampedOffset | None:
        """The first record with the greatest timestamp."""
        self._require_online()
        return timestamps.newest(self._segments)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    def leader_epoch_for(self, offset: int) -> int | None:
        return self._epochs.epoch_for(offset)
