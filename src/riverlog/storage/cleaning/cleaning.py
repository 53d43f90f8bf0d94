"""One pass over one log.

A pass is a sequence of steps: what stands between two of them runs on the event loop and touches the log,
what a step does blocks and touches only files that were opened for it. So appends, reads, retention and
deletion go on meanwhile; a pass that finds its segments changed ends without having done anything to them.
A step ends after a little I/O, so that whoever runs them can keep to a pace and call the pass off.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from riverlog.model.disk import DiskFile
from riverlog.model.errors import DamagedLogError
from riverlog.records.batch import BatchHeader, CorruptBatch
from riverlog.records.record import PlainBatch
from riverlog.records.retained import keys_of_plain, open_batch, shapes_of
from riverlog.storage.cleaning.filtering import BatchFilter, PassRules, checked, last_records
from riverlog.storage.cleaning.offset_map import OffsetMap
from riverlog.storage.cleaning.output import CleanedSegment
from riverlog.storage.cleaning.plan import Cleanable, groups_of, segments_to_clean
from riverlog.storage.cleaning.survivors import Survivors
from riverlog.storage.cleaning.transactions import SeenTransactions
from riverlog.storage.log.batch_scan import ScannedBatch, scan_batches
from riverlog.storage.log.log import Log
from riverlog.storage.log.segment import Segment
from riverlog.storage.producers.state import end_marker

Step = Callable[[], None]
_STEP_BYTES = 128 * 1024
_DONE = object()


class CalledOffError(Exception):
    """The work was told to stop, or what it worked on has changed; nothing is wrong."""


class Bounds(NamedTuple):
    """What a pass may use."""

    map_bytes: int = 128 * 1024**2
    map_load_factor: float = 0.9
    buffer_bytes: int = 512 * 1024


class Cleaning:
    """Run `steps` to the end; after that everything below `end_offset` is clean."""

    def __init__(self, log: Log, cleanable: Cleanable, *, bounds: Bounds, now_ms: int) -> None:
        self.log = log
        self.is_called_off = False
        """Set it to end the pass with the step that runs."""
        self.end_offset = cleanable.end_offset
        self.read_bytes = 0
        self.written_bytes = 0
        self._first_dirty_offset = cleanable.first_dirty_offset
        self._bounds = bounds
        self._step_end_bytes = 0
        self._now_ms = now_ms
        self._generation = log.generation
        self._newest = OffsetMap(bounds.map_bytes, bounds.map_load_factor)
        self._survivors = Survivors()
        self._is_full = False
        self._last_batch_end = -1

    @property
    def io_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    def steps(self) -> Generator[Step, None, None]:
        """Raises `CalledOffError`, `DamagedLogError`, `DiskFullError`, `StorageError`."""
        yield from self._find_newest()
        log = self.log
        rules = PassRules(
            end_offset=self.end_offset,
            last_batch_end=self._last_batch_end,
            now_ms=self._now_ms,
            delete_retention_ms=log.config.delete_retention_ms,
            limit_bytes=log.config.decompressed_bytes_max,
            producers=last_records(log.producers),
        )
        self._survivors.settle(self._newest.offsets())
        batch_filter = BatchFilter(self._newest, rules, SeenTransactions(), self._survivors)
        for group in list(groups_of(segments_to_clean(log, self.end_offset), log.config)):
            yield from self._rewrite(group, batch_filter)
        self._require_wanted([])
        log.state.cleaned_offset = self.end_offset

    def _find_newest(self) -> Generator[Step, None, None]:
        first_dirty, seen = self._first_dirty_offset, SeenTransactions()
        seen.expect(self.log.aborted_between(first_dirty, self.end_offset))
        for segment in segments_to_clean(self.log, self.end_offset):
            if segment.next_offset <= first_dirty or not segment.size_bytes:
                continue
            self._require_wanted([segment])
            located = segment.locate(first_dirty)
            if located is not None:
                yield from self._in_steps(self._note_keys(segment.log.get(), located[0], segment, seen))
            if self._is_full:
                # The rest is left to the next pass.
                self.end_offset = self._last_batch_end
                return

    def _note_keys(
        self, file: DiskFile, start: int, segment: Segment, seen: SeenTransactions
    ) -> Iterator[None]:
        newest, limit_bytes = self._newest, self.log.config.decompressed_bytes_max
        for position, header, view, at in self._scan(file, start, segment):
            with _named(file, position, header):
                checked(header, view, at)
                if header.is_control:
                    seen.end(header, end_marker(header, view, at))
                elif not seen.is_aborted(header) and header.record_count:
                    if len(newest) and not newest.has_room_for(header.record_count):
                        self._is_full = True
                        return
                    self._note_batch(open_batch(view, at, header, limit_bytes))
            self._last_batch_end = header.next_offset
            if self.io_bytes >= self._step_end_bytes:
                yield

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
        output = log.replacement.open_cleaned(group[0].base_offset, buffer_max=self._bounds.buffer_bytes)
        is_in_place = False
        try:
            end = group[-1].next_offset
            batch_filter.begin(log.aborted_between(group[0].base_offset, end), end)
            for segment in group:
                if segment.size_bytes:
                    self._require_wanted(group)
                    yield from self._in_steps(self._copy(segment.log.get(), segment, output, batch_filter))
            yield partial(output.finish, batch_filter.aborted)
            self._require_wanted(group)
            is_in_place = log.replacement.replace_segments(group, output)
            yield log.replacement.directory_sync()
        finally:
            if not is_in_place and log.is_online:
                output.remove_files()

    def _copy(
        self, file: DiskFile, segment: Segment, output: CleanedSegment, batch_filter: BatchFilter
    ) -> Iterator[None]:
        interval = self.log.config.index_interval_bytes
        for position, header, view, at in self._scan(file, 0, segment):
            with _named(file, position, header):
                left = batch_filter.retained(header, view, at)
            if left is not None:
                self.written_bytes += len(left)
                output.add(left, interval)
            if self.io_bytes >= self._step_end_bytes:
                yield

    def _scan(self, file: DiskFile, start: int, segment: Segment) -> Iterator[ScannedBatch]:
        """Every batch of a closed segment from `start`. Nothing is put in its place unless all are sound."""
        position, expected = start, segment.base_offset
        for scanned in scan_batches(file, start, segment.size_bytes):
            header = scanned[1]
            if not expected <= header.base_offset <= header.last_offset < segment.next_offset:
                break
            self.read_bytes += header.size_bytes
            yield scanned
            position += header.size_bytes
            expected = header.next_offset
        if position != segment.size_bytes:
            raise DamagedLogError(file.path, position, expected, "the batch that is due there is another")

    def _in_steps(self, work: Iterator[None]) -> Generator[Step, None, None]:
        """Each goes on with the work until it has done its share, while the pass is wanted."""
        is_done = False

        def go_on() -> None:
            nonlocal is_done
            self._step_end_bytes = self.io_bytes + _STEP_BYTES
            is_done = next(work, _DONE) is _DONE

        while not is_done:
            self._require_wanted([])
            yield go_on

    def _require_wanted(self, segments: list[Segment]) -> None:
        log = self.log
        if (
            self.is_called_off
            or not log.is_online
            or log.replacement.is_moving
            or log.generation != self._generation
            or not log.config.is_compacted
            or (segments and not log.state.segments.holds(segments))
        ):
            raise CalledOffError


@contextmanager
def _named(file: DiskFile, position: int, header: BatchHeader) -> Iterator[None]:
    try:
        yield
    except CorruptBatch as error:
        raise DamagedLogError(file.path, position, header.base_offset, str(error)) from error
