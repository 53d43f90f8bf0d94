"""One pass over one log.

A pass is a sequence of steps: what stands between two of them runs on the event loop and touches the log,
what a step does blocks and touches only files that were opened for it. So appends, reads, retention and
deletion go on meanwhile; a pass that finds its segments changed ends without having done anything to them.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import NamedTuple

from riverlog.model.disk import DiskFile
from riverlog.model.errors import CorruptLogError
from riverlog.records.record import PlainBatch
from riverlog.records.retained import keys_of_plain, open_batch, shapes_of
from riverlog.storage.batch_scan import ScannedBatch, scan_batches
from riverlog.storage.cleanable_log import CleanableLog
from riverlog.storage.cleaning.filtering import BatchFilter, PassRules, checked
from riverlog.storage.cleaning.offset_map import OffsetMap
from riverlog.storage.cleaning.output import CleanedSegment
from riverlog.storage.cleaning.pace import CalledOffError, Pace
from riverlog.storage.cleaning.plan import Cleanable, groups_of, segments_to_clean
from riverlog.storage.cleaning.survivors import Survivors
from riverlog.storage.cleaning.transactions import SeenTransactions
from riverlog.storage.producer_state import end_marker
from riverlog.storage.segment import Segment

Step = Callable[[], None]


class Bounds(NamedTuple):
    """What a pass may use."""

    map_bytes: int = 128 * 1024**2
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 * 1024


class Cleaning:
    """Run `steps` to the end; after that everything below `end_offset` is clean."""

    def __init__(
        self, log: CleanableLog, cleanable: Cleanable, *, bounds: Bounds, pace: Pace, now_ms: int
    ) -> None:
        self.log = log
        self.stop = threading.Event()
        self.end_offset = cleanable.end_offset
        self.read_bytes = 0
        self.written_bytes = 0
        self._first_dirty_offset = cleanable.first_dirty_offset
        self._bounds = bounds
        self._pace = pace
        self._unpaid_bytes = 0
        self._now_ms = now_ms
        self._generation = log.generation
        self._newest = OffsetMap(bounds.map_bytes, bounds.map_load_factor)
        self._survivors = Survivors()
        self._is_full = False
        self._last_batch_end = -1

    def steps(self) -> Generator[Step, None, None]:
        """Raises `CalledOffError`, `CorruptBatch`, `CorruptLogError`, `DiskFullError`, `StorageError`."""
        yield from self._find_newest()
        log = self.log
        rules = PassRules(
            end_offset=self.end_offset,
            last_batch_end=self._last_batch_end,
            now_ms=self._now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
            limit_bytes=log.config.decompressed_bytes_max,
            producers=log.last_records(),
        )
        self._survivors.settle(self._newest.offsets())
        batch_filter = BatchFilter(self._newest, rules, SeenTransactions(), self._survivors)
        for group in list(groups_of(segments_to_clean(log, self.end_offset), log.config)):
            yield from self._rewrite(group, batch_filter)
        self._require_wanted([])
        log.cleaned_offset = self.end_offset

    def _find_newest(self) -> Generator[Step, None, None]:
        first_dirty, seen = self._first_dirty_offset, SeenTransactions()
        seen.expect(self.log.aborted_between(first_dirty, self.end_offset))
        for segment in segments_to_clean(self.log, self.end_offset):
            if segment.next_offset <= first_dirty or not segment.size_bytes:
                continue
            self._require_wanted([segment])
            located = segment.locate(first_dirty)
            if located is not None:
                yield partial(self._note_keys, segment.log.get(), located[0], segment.size_bytes, seen)
            if self._is_full:
                # The rest is left to the next pass.
                self.end_offset = self._last_batch_end
                return

    def _note_keys(self, file: DiskFile, start: int, end: int, seen: SeenTransactions) -> None:
        newest, limit_bytes = self._newest, self.log.config.decompressed_bytes_max
        for _, header, view, at in self._scan(file, start, end):
            checked(header, view, at)
            if header.is_control:
                seen.end(header, end_marker(header, view, at))
            elif not seen.is_aborted(header) and header.record_count:
                if len(newest) and not newest.has_room_for(header.record_count):
                    self._is_full = True
                    return
                self._note_batch(open_batch(view, at, header, limit_bytes))
            self._last_batch_end = header.next_offset

    def _note_batch(self, plain: PlainBatch) -> None:
        header = plain.header
        keys = None if header.delete_horizon_ms is not None else keys_of_plain(plain)
        self._survivors.note(header, is_plain=keys is not None)
        if keys is not None:
            self._newest.put_in_order(keys, header.base_offset)
        else:
            shapes = shapes_of(plain)
            self._newest.put((key, offset) for offset, _, key, _ in shapes if key is not None)

    def _rewrite(self, group: list[Segment], batch_filter: BatchFilter) -> Generator[Step, None, None]:
        log = self.log
        self._require_wanted(group)
        output = log.open_cleaned(group[0].base_offset, buffer_max=self._bounds.buffer_bytes)
        is_in_place = False
        try:
            end = group[-1].next_offset
            batch_filter.begin(log.aborted_between(group[0].base_offset, end), end)
            for segment in group:
                if segment.size_bytes:
                    self._require_wanted(group)
                    yield partial(self._copy, segment.log.get(), segment.size_bytes, output, batch_filter)
            yield partial(self._finish, output, batch_filter)
            self._require_wanted(group)
            is_in_place = log.replace_segments(group, output)
            yield log.directory_sync()
        finally:
            if not is_in_place and log.is_online:
                output.remove_files()

    def _copy(self, file: DiskFile, size: int, output: CleanedSegment, batch_filter: BatchFilter) -> None:
        interval = self.log.config.index_interval_bytes
        for _, header, view, at in self._scan(file, 0, size):
            left = batch_filter.retained(header, view, at)
            if left is not None:
                self.written_bytes += len(left)
                self._spend(output.add(left, interval))

    def _finish(self, output: CleanedSegment, batch_filter: BatchFilter) -> None:
        output.finish(batch_filter.aborted)

    def _scan(self, file: DiskFile, start: int, end: int) -> Iterator[ScannedBatch]:
        position = start
        for scanned in scan_batches(file, start, end):
            size = scanned[1].size_bytes
            self.read_bytes += size
            self._spend(size)
            yield scanned
            position += size
        if position != end:
            raise CorruptLogError(
                f"{file.path} has no batch at byte {position}. Restore the partition from a replica or a "
                "backup; `riverlog log verify` shows what is left."
            )

    def _spend(self, size_bytes: int) -> None:
        """Pay for I/O in not too small coins, and see now and then whether the pass is still wanted."""
        self._unpaid_bytes += size_bytes
        if self._unpaid_bytes >= _COIN_BYTES:
            paid, self._unpaid_bytes = self._unpaid_bytes, 0
            if not self.log.is_online or self.log.generation != self._generation:
                raise CalledOffError
            self._pace.spend(paid, self.stop)

    def _require_wanted(self, segments: list[Segment]) -> None:
        log = self.log
        if (
            self.stop.is_set()
            or not log.is_online
            or log.is_moving
            or log.generation != self._generation
            or not log.config.is_compacted
            or (segments and not log.holds(segments))
        ):
            raise CalledOffError


_COIN_BYTES = 128 * 1024
