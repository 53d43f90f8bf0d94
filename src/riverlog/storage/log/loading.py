"""Opening a log directory of one partition: what is on disk, made consistent.

After a clean shutdown nothing is scanned but the few kilobytes behind the last index entry. Otherwise every
segment from the recovery point on is read whole: the log ends before the first batch that is torn, has a
wrong CRC or goes back in offsets; indexes, leader epochs and producer state are rebuilt from what is left.
Segments before the recovery point were synced together with their indexes and are only checked for shape: an
index that lacks it is built anew, and nothing is cut off where the log is damaged.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import ReadableBuffer
from riverlog.model.errors import CorruptLogError, DamagedLogError
from riverlog.records import batch as batches
from riverlog.records.batch import CONTROL_FLAG, BatchHeader
from riverlog.storage.cleaning.replacements import finish_replacements
from riverlog.storage.disk.open_files import Files
from riverlog.storage.files import names
from riverlog.storage.files.checkpoint import decode_epochs
from riverlog.storage.log.appends import RELATIVE_OFFSET_MAX
from riverlog.storage.log.batch_scan import Bounds, scan_batches, walk_headers
from riverlog.storage.log.leader_epochs import LeaderEpochs
from riverlog.storage.log.opening import LogToOpen
from riverlog.storage.log.segment import Segment
from riverlog.storage.log.segment_list import SegmentList
from riverlog.storage.log.state import LogState
from riverlog.storage.producers.snapshots import ProducerSnapshots
from riverlog.storage.producers.state import ProducerStates, end_marker


@dataclass(slots=True)
class LoadedLog:
    state: LogState
    cut_bytes: int
    recovered_from: int
    """Number of the first segment that was rebuilt and is not known to be on disk."""
    is_new: bool
    """There was no segment."""


@dataclass(slots=True)
class LogLoader:
    """Loads one partition's directory."""

    to_open: LogToOpen
    files: Files
    now_ms: int

    @property
    def directory(self) -> str:
        return self.to_open.directory

    @property
    def config(self) -> LogConfig:
        return self.to_open.config

    def load(self) -> LoadedLog:
        segments: list[Segment] = []
        try:
            return self._load(segments)
        except BaseException:
            for segment in segments:
                segment.forget_files()
            raise

    def _load(self, segments: list[Segment]) -> LoadedLog:
        """With `segments` the ones that the log has in the end, or had when something failed."""
        found = self._tidy()
        epochs = self._load_epochs()
        snapshots = ProducerSnapshots(self.directory, self.files.disk, found.get(names.SNAPSHOT, set()))
        segments += [self._segment(base) for base in sorted(found.get(names.LOG, set()))]
        for earlier, later in itertools.pairwise(segments):
            earlier.next_offset = later.base_offset
        producers = ProducerStates()
        cut_bytes = 0
        recovered_from = self._first_to_recover(segments, snapshots)
        if recovered_from < len(segments):
            cut_bytes = self._recover(segments, recovered_from, producers, epochs, snapshots)
        elif segments:
            self._replay(segments, producers, snapshots, segments[-1].next_offset)
        if not segments:
            base = self.to_open.log_start_offset
            segments.append(Segment(self.directory, base, self.files, created_ms=self.now_ms))
        end_offset = segments[-1].next_offset
        self._find_unreplicated(segments, producers, snapshots, end_offset)
        epochs.truncate_from_end(end_offset)
        snapshots.remove_strays({segment.base_offset for segment in segments}, end_offset)
        log_start_offset = max(self.to_open.log_start_offset, segments[0].base_offset)
        state = LogState(
            directory=self.directory,
            config=self.config,
            segments=SegmentList(segments),
            epochs=epochs,
            producers=producers,
            snapshots=snapshots,
            log_start_offset=log_start_offset,
            high_watermark=log_start_offset,
            log_end_offset=end_offset,
            cleaned_offset=self.to_open.cleaned_offset,
        )
        return LoadedLog(state, cut_bytes, recovered_from, is_new=names.LOG not in found)

    def _tidy(self) -> dict[str, set[int]]:
        """Remove what an interrupted deletion or cleaning left; returns base offsets by suffix."""
        disk = self.files.disk
        entries = disk.list(self.directory)
        if any(name.endswith((names.CLEANED, names.SWAP)) for name in entries):
            finish_replacements(self.directory, disk)
            entries = disk.list(self.directory)
        for name in entries:
            if name.endswith((names.DELETED, ".tmp")):
                disk.unlink(f"{self.directory}/{name}")
        found: dict[str, set[int]] = {}
        for name in entries:
            if (parsed := names.parse_segment_file(name)) is not None:
                found.setdefault(parsed[1], set()).add(parsed[0])
        logs = found.get(names.LOG, set())
        for suffix in (names.INDEX, names.TIME_INDEX, names.TRANSACTION_INDEX):
            for base in found.get(suffix, set()) - logs:
                disk.unlink(names.segment_path(self.directory, base, suffix))
        return found

    def _segment(self, base: int) -> Segment:
        path = names.segment_path(self.directory, base, names.LOG)
        disk = self.files.disk
        return Segment(
            self.directory,
            base,
            self.files,
            created_ms=disk.modified_ms(path),
            size_bytes=disk.size(path),
        )

    def _load_epochs(self) -> LeaderEpochs:
        disk, path = self.files.disk, f"{self.directory}/{names.LEADER_EPOCHS}"
        if not disk.exists(path):
            return LeaderEpochs()
        try:
            return LeaderEpochs(decode_epochs(disk.read(path), path))
        except CorruptLogError:
            if self.to_open.is_clean:
                raise
            return LeaderEpochs()

    def _first_to_recover(self, segments: list[Segment], snapshots: ProducerSnapshots) -> int:
        """Number of the first segment that must be read whole; as many as there are when none must."""
        if not self.to_open.is_clean:
            after = sum(1 for segment in segments if segment.base_offset <= self.to_open.recovery_point)
            unsynced = max(after - 1, 0)
        else:
            unsynced = len(segments)
        for number, segment in enumerate(segments[:unsynced]):
            if not self._indexes_have_shape(segment):
                if segment is segments[-1]:
                    return number
                self._index_anew(segments, number, snapshots)
        if self.to_open.is_clean and segments and not segments[-1].load_end():
            return len(segments) - 1
        return unsynced

    def _indexes_have_shape(self, segment: Segment) -> bool:
        disk = self.files.disk
        for suffix, entry_bytes in ((names.INDEX, 8), (names.TIME_INDEX, 12)):
            path = names.segment_path(self.directory, segment.base_offset, suffix)
            if not disk.exists(path):
                return segment.size_bytes == 0
            if disk.size(path) % entry_bytes:
                return False
        last = segment.index.last
        return last is None or last[1] < segment.size_bytes

    def _index_anew(self, segments: list[Segment], number: int, snapshots: ProducerSnapshots) -> None:
        """Of a closed segment that was synced: what is wrong in it has rotted, and goes on being there."""
        segment = segments[number]
        size, next_offset = segment.size_bytes, segment.next_offset
        producers = ProducerStates()
        self._replay(segments[:number], producers, snapshots, segment.base_offset)
        segment.reset_indexes()
        for _, header, view, at in scan_batches(segment.log.get(), 0, size):
            if not segment.next_offset <= header.base_offset <= header.last_offset < next_offset:
                break
            segment.account_for(header, header.last_offset, self.config.index_interval_bytes)
            if header.producer_id >= 0 and batches.crc_is_valid(view, at, header):
                _note_producer(segment, producers, header, view, at)
        segment.save_indexes()
        for file in segment.open_indexes():
            file.datasync()
        segment.size_bytes, segment.next_offset = size, next_offset
        segment.forget_checked(size)

    def _recover(
        self,
        segments: list[Segment],
        first: int,
        producers: ProducerStates,
        epochs: LeaderEpochs,
        snapshots: ProducerSnapshots,
    ) -> int:
        snapshots.remove_after(segments[first].base_offset)
        epochs.truncate_from_end(segments[first].base_offset)
        self._replay(segments[:first], producers, snapshots, segments[first].base_offset)
        cut_bytes, end_offset = 0, segments[first].base_offset
        for number in range(first, len(segments)):
            segment = segments[number]
            is_hole = segment.base_offset > end_offset and not self._has_gaps_at(end_offset)
            if number > first and (is_hole or segment.base_offset < end_offset):
                # A power cut can take the end of a segment and leave the next: what is left is a prefix.
                cut_bytes += self._drop(segments, number)
                break
            if number > first:
                snapshots.write(segment.base_offset, producers)
            following = segments[number + 1].base_offset if number + 1 < len(segments) else None
            cut = self._recover_segment(segment, following, producers, epochs)
            end_offset = segment.next_offset
            if cut:
                cut_bytes += cut + self._drop(segments, number + 1)
                break
        return cut_bytes

    def _recover_segment(
        self, segment: Segment, following: int | None, producers: ProducerStates, epochs: LeaderEpochs
    ) -> int:
        """Keep the valid prefix, rebuild everything that is derived from it; returns the bytes cut off."""
        size_on_disk = segment.size_bytes
        segment.reset_indexes()
        file = segment.log.get()
        for position, header, view, at in scan_batches(file, 0, size_on_disk):
            if not segment.next_offset <= header.base_offset <= segment.base_offset + RELATIVE_OFFSET_MAX:
                break
            if header.last_offset_delta < 0 or not batches.crc_is_valid(view, at, header):
                break
            if header.base_offset > segment.next_offset and not self._gap_is_plausible(
                segment, position, size_on_disk, header, following
            ):
                break
            assert position == segment.size_bytes
            segment.account_for(header, header.last_offset, self.config.index_interval_bytes)
            epochs.assign(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                _note_producer(segment, producers, header, view, at)
        if segment.size_bytes < size_on_disk:
            file.truncate(segment.size_bytes)
            file.datasync()  # Or a power cut would bring it back behind what is written in its place.
        segment.save_indexes()
        return size_on_disk - segment.size_bytes

    def _has_gaps_at(self, offset: int) -> bool:
        return self.config.is_compacted or offset < self.to_open.cleaned_offset

    def _gap_is_plausible(
        self, segment: Segment, position: int, end: int, header: BatchHeader, following: int | None
    ) -> bool:
        """Compaction leaves gaps, but a gap may also be a flipped bit: no CRC covers the base offset.

        A topic that is no longer compacted may still have gaps; then what follows the batch vouches for it.
        """
        if self._has_gaps_at(segment.next_offset):
            return True
        file = segment.log.get()
        try:
            after = next(walk_headers(file, position + header.size_bytes, Bounds(end)), None)
        except DamagedLogError:
            return False
        return (after[1].base_offset if after is not None else following) == header.next_offset

    def _drop(self, segments: list[Segment], number: int) -> int:
        """Segments behind a cut: nothing in them can be reached any more."""
        dropped, segments[number:] = segments[number:], []
        for segment in dropped:
            segment.forget_files()
            for suffix in names.SEGMENT_FILES:
                self.files.disk.unlink(names.segment_path(self.directory, segment.base_offset, suffix))
        return sum(segment.size_bytes for segment in dropped)

    def _find_unreplicated(
        self, segments: list[Segment], producers: ProducerStates, snapshots: ProducerSnapshots, end: int
    ) -> None:
        """Transactions whose markers the high watermark has not passed are not over for a reader, and a
        snapshot that was taken behind the markers does not know them."""
        watermark = self.to_open.high_watermark
        if watermark is None:
            return
        if any(header.attributes & CONTROL_FLAG for header, _, _ in _batches(segments, watermark, end)):
            replayed = ProducerStates()
            self._replay(segments, replayed, snapshots, end, snapshot_end=watermark)
            producers.unreplicated = replayed.unreplicated

    def _replay(
        self,
        segments: list[Segment],
        producers: ProducerStates,
        snapshots: ProducerSnapshots,
        end: int,
        *,
        snapshot_end: int | None = None,
    ) -> None:
        replay_producers(
            segments,
            producers,
            snapshots,
            start=self.to_open.log_start_offset,
            end=end,
            snapshot_end=snapshot_end,
            oldest_ms=self.now_ms - self.config.producer_id_expiration_ms,
        )


def _note_producer(
    segment: Segment, producers: ProducerStates, header: BatchHeader, view: ReadableBuffer, at: int
) -> None:
    marker = end_marker(header, view, at)
    aborted = producers.decide_aborted(header, header.last_offset, marker)
    if aborted is not None:
        segment.transactions.append(aborted)
    producers.apply(header, header.base_offset, marker)


def replay_producers(
    segments: list[Segment],
    producers: ProducerStates,
    snapshots: ProducerSnapshots,
    *,
    start: int,
    end: int,
    oldest_ms: int,
    snapshot_end: int | None = None,
) -> None:
    """Bring `producers` to the state at `end`: the newest whole snapshot, up to `snapshot_end` if that is
    given, then the batches behind it."""
    snapshot_offset, entries = snapshots.load_latest(end if snapshot_end is None else snapshot_end)
    producers.load(
        (producer_id, entry)
        for producer_id, entry in entries
        if entry.transaction_first_offset is not None or entry.last_timestamp_ms > oldest_ms
    )
    for header, view, at in _batches(segments, max(start, snapshot_offset), end):
        if header.producer_id >= 0:
            producers.apply(header, header.base_offset, end_marker(header, view, at))


def _batches(
    segments: list[Segment], start: int, end: int
) -> Iterator[tuple[BatchHeader, ReadableBuffer, int]]:
    """From the one that holds `start`, as far as they can be found."""
    for segment in segments:
        if segment.next_offset <= start or segment.base_offset >= end or not segment.size_bytes:
            continue
        try:
            located = segment.locate(start)
        except DamagedLogError as damage:
            segment.files.damage.note(damage)
            continue
        if located is None:
            continue
        for _, header, view, at in scan_batches(segment.log.get(), located[0], segment.size_bytes):
            if header.base_offset >= end:
                break
            yield header, view, at
