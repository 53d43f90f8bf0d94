"""What a pass leaves of a batch. Decides by what the pass knows; does no I/O.

A data batch keeps the records that are the newest of their key; of an aborted transaction none. A tombstone
stays until the delete horizon of its batch, which the first pass that meets it sets. A batch that is left
without records stays, empty, where its header still says something: the producer's last sequence, or the end
of what was cleaned. Batches of which nothing changes are copied as they are. As Kafka does; the one
difference stands at its spot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from riverlog.model.disk import ReadableBuffer
from riverlog.records.batch import BatchHeader, CorruptBatch, crc_is_valid
from riverlog.records.retained import RecordShape, emptied, open_batch, retain, shapes_of
from riverlog.storage.cleaning.offset_map import OffsetMap
from riverlog.storage.cleaning.survivors import Survivors
from riverlog.storage.cleaning.transactions import SeenTransactions
from riverlog.storage.files.transaction_index import AbortedTransaction
from riverlog.storage.producers.state import ProducerStates, end_marker


class LastRecord(NamedTuple):
    """Where a producer stands: the last offset of its last data batch, if it has one, and its epoch."""

    data_offset: int | None
    epoch: int


def last_records(producers: ProducerStates) -> dict[int, LastRecord]:
    """Of those that may still write."""
    return {
        producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
        for producer_id, entry in producers
    }


@dataclass(frozen=True, slots=True)
class PassRules:
    """What a pass goes by."""

    end_offset: int
    """Nothing from here on is touched."""
    last_batch_end: int
    """Where the last batch below `end_offset` ends; it stays, so that the log keeps its offsets."""
    now_ms: int
    delete_retention_ms: int
    limit_bytes: int
    producers: Mapping[int, LastRecord] = field(default_factory=dict)


def checked(header: BatchHeader, view: ReadableBuffer, at: int) -> None:
    """A batch that has rotted must not get a new, right CRC."""
    if not crc_is_valid(view, at, header):
        raise CorruptBatch(f"the CRC of the batch at offset {header.base_offset} is wrong")


class BatchFilter:
    """Goes over the batches of a pass in order."""

    __slots__ = ("_aborted", "_newest", "_rules", "_seen", "_survivors", "_untouched")

    def __init__(
        self, newest: OffsetMap, rules: PassRules, seen: SeenTransactions, survivors: Survivors
    ) -> None:
        self._newest = newest
        self._rules = rules
        self._seen = seen
        self._survivors = survivors
        self._aborted: list[AbortedTransaction] = []
        self._untouched: list[AbortedTransaction] = []

    def begin(self, aborted: Sequence[AbortedTransaction], segments_end: int) -> None:
        """The next batches are those of segments which these aborted transactions touch."""
        end_offset = self._rules.end_offset
        self._seen.expect(entry for entry in aborted if entry.first_offset < end_offset)
        self._untouched = [entry for entry in aborted if end_offset <= entry.last_offset < segments_end]
        self._aborted = []

    @property
    def aborted(self) -> list[AbortedTransaction]:
        """Entries of the transaction index that still say something about the batches that stay."""
        return self._aborted + self._untouched

    def retained(self, header: BatchHeader, view: ReadableBuffer, at: int) -> ReadableBuffer | None:
        """What is left of the batch at `at`; None for nothing. Raises `CorruptBatch`."""
        checked(header, view, at)
        if header.base_offset >= self._rules.end_offset:
            return _as_it_is(header, view, at)
        if header.is_control:
            return self._control(header, view, at)
        if self._seen.is_aborted(header) or not header.record_count:
            return self._without_records(header)
        staying = self._survivors.of(header)
        return (
            self._looked_into(header, view, at) if staying is None else self._known(header, view, at, staying)
        )

    def _known(
        self, header: BatchHeader, view: ReadableBuffer, at: int, staying: Sequence[int]
    ) -> ReadableBuffer | None:
        """A plain batch, none of whose records is a tombstone."""
        if not staying:
            return self._without_records(header)
        if len(staying) == header.record_count:
            return _as_it_is(header, view, at)
        plain = open_batch(view, at, header, self._rules.limit_bytes)
        return retain(plain, [offset - header.base_offset for offset in staying])

    def _looked_into(self, header: BatchHeader, view: ReadableBuffer, at: int) -> ReadableBuffer | None:
        plain = open_batch(view, at, header, self._rules.limit_bytes)
        shapes = shapes_of(plain)
        horizon_ms = header.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self._rules.now_ms < horizon_ms
        kept = [number for number, shape in enumerate(shapes) if self._stays(shape, keeps_tombstones)]
        if not kept:
            return self._without_records(header)
        has_tombstone = not all(shapes[number][3] for number in kept)
        if len(kept) == len(shapes) and not (has_tombstone and horizon_ms is None):
            return _as_it_is(header, view, at)
        return retain(
            plain,
            kept,
            max_timestamp_ms=max(shapes[number][1] for number in kept),
            delete_horizon_ms=self._new_horizon_ms if has_tombstone else None,
        )

    def _stays(self, shape: RecordShape, keeps_tombstones: bool) -> bool:
        offset, _, key, has_value = shape
        if key is None:
            return False
        return (has_value or keeps_tombstones) and offset >= self._newest.newest(key)

    def _control(self, header: BatchHeader, view: ReadableBuffer, at: int) -> ReadableBuffer | None:
        is_done, aborted = self._seen.end(header, end_marker(header, view, at))
        if aborted is not None:
            self._aborted.append(aborted)
        if not is_done:
            return _as_it_is(header, view, at)
        if not header.record_count:
            return self._without_records(header)
        horizon_ms = header.delete_horizon_ms
        if horizon_ms is None:
            plain = open_batch(view, at, header, self._rules.limit_bytes)
            return retain(
                plain,
                range(header.record_count),
                max_timestamp_ms=header.max_timestamp_ms,
                delete_horizon_ms=self._new_horizon_ms,
            )
        # Kafka empties a marker that is its producer's last word; with its record it still tells the epoch.
        if self._rules.now_ms < horizon_ms or self._is_last_of_producer(header):
            return _as_it_is(header, view, at)
        return self._without_records(header)

    @property
    def _new_horizon_ms(self) -> int:
        return self._rules.now_ms + self._rules.delete_retention_ms

    def _without_records(self, header: BatchHeader) -> ReadableBuffer | None:
        if header.next_offset == self._rules.last_batch_end or self._is_last_of_producer(header):
            return emptied(header)
        return None

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._rules.producers.get(header.producer_id)
        if last is None:
            return False
        if last.data_offset is None:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.data_offset


def _as_it_is(header: BatchHeader, view: ReadableBuffer, at: int) -> ReadableBuffer:
    return memoryview(view)[at : at + header.size_bytes]
