"""A batch on its way to a partition: encoded records as they lie in memory, and a header made for a producer.

Large records are never copied here: a Produce request is a list of pieces, which the system call puts
together. `produce_frame` writes the same bytes as the tables of `wire` do.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from riverlog.model.disk import ReadableBuffer
from riverlog.model.ids import ProducerIdAndEpoch, TopicPartition
from riverlog.records.batch import LOG_OVERHEAD_BYTES, MAGIC, TRANSACTIONAL_FLAG
from riverlog.records.checksum import crc32c
from riverlog.records.compression import Codec
from riverlog.wire.apis import ApiKey
from riverlog.wire.framing import RequestHeader
from riverlog.wire.primitives import classic_text, compact_text, varint

_FLEXIBLE_SINCE: Final = 9
_BEFORE_CRC: Final = struct.Struct(">qiibI")
_BEHIND_CRC: Final = struct.Struct(">hiqqqhii")
_INT: Final = struct.Struct(">i")
_ACKS_AND_TIMEOUT: Final = struct.Struct(">hi")
_HEADER: Final = struct.Struct(">hhi")
_NONE: Final = -1


@dataclass(slots=True)
class NewBatch:
    topic: str
    partition: int
    records: Sequence[ReadableBuffer]
    """The records, compressed by `codec`, in as many pieces as they happen to be in."""
    record_count: int
    timestamp_ms: int
    """Of all records: their own timestamps are 0 after it."""
    codec: Codec = Codec.NONE
    sequence: int = _NONE
    header: bytes = b""

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size_bytes(self) -> int:
        return len(self.header) + sum(map(len, self.records))

    @property
    def pieces(self) -> list[ReadableBuffer]:
        """The whole batch, once it is signed."""
        return [self.header, *self.records]

    def sign(self, producer: ProducerIdAndEpoch | None, sequence: int, *, is_transactional: bool) -> None:
        """Make the header, for this producer."""
        self.sequence = _NONE if producer is None else sequence
        behind = _BEHIND_CRC.pack(
            self.codec | (TRANSACTIONAL_FLAG if is_transactional else 0),
            self.record_count - 1,
            self.timestamp_ms,
            self.timestamp_ms,
            _NONE if producer is None else producer.producer_id,
            _NONE if producer is None else producer.producer_epoch,
            self.sequence,
            self.record_count,
        )
        crc = crc32c(behind)
        for piece in self.records:
            crc = crc32c(piece, crc)
        size = _BEFORE_CRC.size + len(behind) + sum(map(len, self.records))
        self.header = _BEFORE_CRC.pack(0, size - LOG_OVERHEAD_BYTES, _NONE, MAGIC, crc) + behind


def produce_frame(
    header: RequestHeader,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
    batches: Sequence[NewBatch],
) -> list[ReadableBuffer]:
    """A whole Produce request in pieces; of a version that names topics (3 to 12)."""
    assert header.api_key == ApiKey.PRODUCE
    is_flexible = header.api_version >= _FLEXIBLE_SINCE
    topics: dict[str, list[NewBatch]] = {}
    for batch in batches:
        topics.setdefault(batch.topic, []).append(batch)
    pieces: list[ReadableBuffer] = []
    written = bytearray(_text(transactional_id, is_flexible))
    written += _ACKS_AND_TIMEOUT.pack(acks, timeout_ms) + _count(len(topics), is_flexible)
    for name, partitions in topics.items():
        written += _text(name, is_flexible) + _count(len(partitions), is_flexible)
        for batch in partitions:
            written += _INT.pack(batch.partition) + _count(batch.size_bytes, is_flexible)
            pieces += (bytes(written), *batch.pieces)
            written = bytearray(b"\0" if is_flexible else b"")
        written += b"\0" if is_flexible else b""
    written += b"\0" if is_flexible else b""
    pieces.append(bytes(written))
    head = _head(header, is_flexible)
    size = len(head) + sum(map(len, pieces))
    return [_INT.pack(size) + head, *pieces]


def _head(header: RequestHeader, is_flexible: bool) -> bytes:
    # The client id keeps its old form in flexible versions; only the tagged fields are new.
    numbers = _HEADER.pack(header.api_key, header.api_version, header.correlation_id)
    return numbers + classic_text(header.client_id) + (b"\0" if is_flexible else b"")


def _count(number: int, is_flexible: bool) -> bytes:
    return varint(number + 1) if is_flexible else _INT.pack(number)


def _text(text: str | None, is_flexible: bool) -> bytes:
    return compact_text(text) if is_flexible else classic_text(text)
