"""Bringing a shard up to date from its partition's log.

Reads from the log's start to its end in pieces of whole batches. Transactional records are handed over with
their producer, markers as ends of transactions, in the order of the log. Not here: when to load, and what is
answered meanwhile (`runtime`).
"""

import logging
from typing import Final

from riverlog.coordinator.runtime.shard import Shard
from riverlog.model.disk import FileSlice, ReadableBuffer
from riverlog.model.ids import ProducerIdAndEpoch
from riverlog.records import batch as batches
from riverlog.records.record import native_records_of
from riverlog.storage.log.appends import OffsetOutOfRange
from riverlog.storage.log.log import Log
from riverlog.storage.producers.state import end_marker

PIECE_BYTES: Final = 1024 * 1024

_logger = logging.getLogger(__name__)


class Loading:
    """One pass over a log. Ask for the next piece, read it wherever is best, and replay it."""

    def __init__(self, log: Log, shard: Shard, piece_bytes: int = PIECE_BYTES) -> None:
        self._log = log
        self._shard = shard
        self._piece_bytes = min(piece_bytes, PIECE_BYTES)
        self._next_offset = log.log_start_offset

    @property
    def bytes_left(self) -> int:
        """About how much there is to read; exact enough to decide where to read it."""
        return self._log.size_bytes if self._next_offset < self._log.log_end_offset else 0

    def next_piece(self) -> FileSlice | None:
        """None when the shard has seen the whole log."""
        while self._next_offset < self._log.log_end_offset:
            found = self._log.read(
                self._next_offset, max_bytes=self._piece_bytes, end_offset=self._log.log_end_offset
            )
            if isinstance(found, OffsetOutOfRange):
                self._next_offset = found.log_start_offset
            elif found.records is None:
                break
            else:
                return found.records
        self._next_offset = self._log.log_end_offset
        return None

    def replay(self, piece: ReadableBuffer) -> None:
        """Raises `CorruptBatch`; the shard is then of no use."""
        first_offset = self._next_offset
        for position, header in batches.walk(piece):
            if not batches.crc_is_valid(piece, position, header):
                raise batches.CorruptBatch(f"the CRC of the batch at offset {header.base_offset} is wrong")
            if header.next_offset > self._next_offset:
                replay_batch(self._shard, piece, position, header, self._next_offset)
                self._next_offset = header.next_offset
        if self._next_offset == first_offset:
            raise batches.CorruptBatch(f"there is no whole batch at offset {first_offset}")


def replay_batch(
    shard: Shard, piece: ReadableBuffer, position: int, header: batches.BatchHeader, first_offset: int
) -> None:
    """Records of the batch from `first_offset` on."""
    if header.is_control:
        marker = end_marker(header, piece, position)
        if marker is not None:
            ended = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
            shard.replay_end_marker(ended, committed=not marker.is_abort)
        return
    producer = (
        ProducerIdAndEpoch(header.producer_id, header.producer_epoch) if header.is_transactional else None
    )
    replay = shard.replay
    for record in native_records_of(piece, position, header):
        key, offset = record.key, record.offset
        if offset < first_offset:
            continue
        if key is None:
            _logger.warning("a record without a key at offset %d of an internal topic is passed over", offset)
            continue
        replay(key, record.value, offset=offset, timestamp_ms=record.timestamp or 0, producer=producer)
