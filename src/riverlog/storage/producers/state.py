"""What a log knows about its idempotent and transactional producers. Pure: no I/O and no clock.

`decide` judges a batch before it is written, `apply` records one that is in the log; replaying a log
through `apply` gives the same state as having lived through it. A producer's last five batches are kept so
that a retry of any request in flight is answered with the original offset. Rules are Kafka's: a producer id
that is not known (new, expired, or its records are gone) may start at any sequence; a new epoch starts at
0.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from riverlog.model.disk import ReadableBuffer
from riverlog.model.errors import ErrorCode
from riverlog.records.batch import BatchHeader, CorruptBatch
from riverlog.records.record import records_of
from riverlog.storage.files.transaction_index import AbortedTransaction
from riverlog.storage.producers.guards import ProducerGuards

WINDOW_BATCHES: Final = 5
_SEQUENCES: Final = 1 << 31
NO_EPOCH: Final = -1
_MARKER_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1


class WrittenBatch(NamedTuple):
    """A batch of a producer that is in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % _SEQUENCES

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class EndMarker(NamedTuple):
    """The content of a control batch that ends a transaction."""

    is_abort: bool
    coordinator_epoch: int


def end_marker(header: BatchHeader, buffer: ReadableBuffer, at: int) -> EndMarker | None:
    """The marker in the batch at `at`; None for data and for control batches of another kind."""
    if not header.is_control:
        return None
    try:
        record = next(iter(records_of(buffer, at)), None)
    except CorruptBatch:
        return None
    if record is None or record.key is None or len(record.key) < _MARKER_KEY.size:
        return None
    _, kind = _MARKER_KEY.unpack_from(record.key)
    if kind not in (_ABORT, _COMMIT) or record.value is None or len(record.value) < _MARKER_VALUE.size:
        return None
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    return EndMarker(kind == _ABORT, coordinator_epoch)


class Refusal(NamedTuple):
    error: ErrorCode
    message: str


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int


@dataclass(slots=True)
class ProducerEntry:
    epoch: int = NO_EPOCH
    batches: list[WrittenBatch] = field(default_factory=list)
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    transaction_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def find_duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        if header.producer_epoch != self.epoch:
            return None
        last_sequence, base_sequence = header.last_sequence, header.base_sequence
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == base_sequence:
                return batch
        return None

    def _turn_to_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def add(self, epoch: int, batch: WrittenBatch) -> None:
        self._turn_to_epoch(epoch)
        if len(self.batches) == WINDOW_BATCHES:
            del self.batches[0]
        self.batches.append(batch)
        self.last_timestamp_ms = batch.timestamp_ms

    def end_transaction(self, epoch: int, *, coordinator_epoch: int, timestamp_ms: int) -> None:
        self._turn_to_epoch(epoch)
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = timestamp_ms
        self.transaction_first_offset = None


class ProducerStates:
    """All producers of one log, and the transactions that hold back its last stable offset."""

    __slots__ = ("_entries", "guards", "ongoing", "unreplicated")

    def __init__(self) -> None:
        self.guards = ProducerGuards()
        self._entries: dict[int, ProducerEntry] = {}
        # Producer id to first offset; a transaction begins at the log's end, so the order is that of offsets.
        self.ongoing: dict[int, int] = {}
        self.unreplicated: list[CompletedTransaction] = []
        """Ended, but the marker is not yet below the high watermark; in the order of the markers."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[int, ProducerEntry]]:
        return iter(self._entries.items())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._entries.get(producer_id)

    def coordinator_epoch(self, producer_id: int) -> int:
        """The latest coordinator that has ended a transaction of the producer here; -1 for none."""
        entry = self._entries.get(producer_id)
        written = -1 if entry is None else entry.coordinator_epoch
        return max(written, self.guards.coordinator_epoch(producer_id))

    def decide_duplicate(self, header: BatchHeader) -> WrittenBatch | None:
        """The batch that this one repeats, if it is among the last five."""
        entry = self._entries.get(header.producer_id)
        return entry.find_duplicate(header) if entry is not None else None

    def decide(
        self, header: BatchHeader, marker: EndMarker | None = None, *, check_sequence: bool = True
    ) -> Refusal | None:
        """Why a batch that is no duplicate may not be written, or None."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        if header.producer_epoch < entry.epoch:
            return Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is fenced by {entry.epoch}.",
            )
        if marker is not None:
            return _decide_marker(header, marker, self.coordinator_epoch(header.producer_id))
        if check_sequence and (refusal := _decide_sequence(header, entry)):
            return refusal
        if entry.transaction_first_offset is not None and not header.is_transactional:
            return Refusal(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {header.producer_id} has a transaction open; a batch outside it is refused.",
            )
        return None

    def apply(self, header: BatchHeader, base_offset: int, marker: EndMarker | None) -> None:
        """Record a batch that was written at `base_offset`."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            entry = self._entries[header.producer_id] = ProducerEntry()
        last_offset = base_offset + header.last_offset_delta
        if marker is not None:
            self._end_transaction(header, entry, last_offset, marker)
        elif not header.is_control:
            entry.add(
                header.producer_epoch,
                WrittenBatch(
                    header.last_sequence, last_offset, header.last_offset_delta, header.max_timestamp_ms
                ),
            )
            if header.is_transactional and entry.transaction_first_offset is None:
                entry.transaction_first_offset = base_offset
                self.ongoing[header.producer_id] = base_offset

    def _end_transaction(
        self, header: BatchHeader, entry: ProducerEntry, last_offset: int, marker: EndMarker
    ) -> None:
        first_offset = entry.transaction_first_offset
        self.guards.forget(header.producer_id)
        entry.end_transaction(
            header.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=header.max_timestamp_ms,
        )
        if first_offset is not None:
            del self.ongoing[header.producer_id]
            self.unreplicated.append(CompletedTransaction(header.producer_id, first_offset, last_offset))

    def decide_aborted(
        self, header: BatchHeader, last_offset: int, marker: EndMarker | None
    ) -> AbortedTransaction | None:
        """The index entry that a marker at `last_offset` calls for, before it is applied."""
        if marker is None or not marker.is_abort:
            return None
        first_offset = self.ongoing.get(header.producer_id)
        if first_offset is None:
            return None
        others = (first for producer, first in self.ongoing.items() if producer != header.producer_id)
        return AbortedTransaction(
            header.producer_id, first_offset, last_offset, next(others, last_offset + 1)
        )

    def open_transactions(self) -> list[tuple[int, ProducerEntry]]:
        """Of which producers, the oldest first."""
        return [(producer_id, self._entries[producer_id]) for producer_id in self.ongoing]

    def first_unstable_offset(self) -> int | None:
        """First offset of a transaction that is open, or whose end the high watermark has not passed."""
        first = next(iter(self.ongoing.values()), None)
        for completed in self.unreplicated:
            if first is None or completed.first_offset < first:
                first = completed.first_offset
        return first

    def pass_high_watermark(self, high_watermark: int) -> None:
        self.unreplicated = [done for done in self.unreplicated if done.last_offset >= high_watermark]

    def expire(self, now_ms: int, *, expiration_ms: int) -> int:
        """Forget producers that have been silent for that long and have no transaction open."""
        old = [
            producer_id
            for producer_id, entry in self._entries.items()
            if entry.transaction_first_offset is None and now_ms - entry.last_timestamp_ms >= expiration_ms
        ]
        for producer_id in old:
            del self._entries[producer_id]
            self.guards.forget(producer_id)
        self.guards.expire()
        return len(old)

    def load(self, entries: Iterable[tuple[int, ProducerEntry]]) -> None:
        """Start from a snapshot."""
        self._entries = dict(entries)
        self.unreplicated.clear()
        open_transactions = (
            (entry.transaction_first_offset, producer_id)
            for producer_id, entry in self._entries.items()
            if entry.transaction_first_offset is not None
        )
        self.ongoing = {producer_id: first for first, producer_id in sorted(open_transactions)}


def _decide_marker(header: BatchHeader, marker: EndMarker, seen_epoch: int) -> Refusal | None:
    if marker.coordinator_epoch >= seen_epoch:
        return None
    return Refusal(
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        f"A marker of producer {header.producer_id} by coordinator epoch {marker.coordinator_epoch} is "
        f"refused: the partition has seen epoch {seen_epoch}.",
    )


def _decide_sequence(header: BatchHeader, entry: ProducerEntry) -> Refusal | None:
    if header.producer_epoch != entry.epoch:
        expected = 0
    else:
        expected = (entry.last_sequence + 1) % _SEQUENCES
    if header.base_sequence == expected:
        return None
    return Refusal(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} (epoch {header.producer_epoch}) sent sequence "
        f"{header.base_sequence}; {expected} comes next.",
    )
