"""Rows of an Arrow batch into record batches, a column at a time.

The records of one Arrow batch are encoded together: sizes and variable-length numbers with numpy, then Arrow
joins them with keys and values in one pass, and each record batch is a slice of the result. No Python object
is made for a row, but for its headers, which few rows have. Rows of one partition keep their order.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from riverlog.client.core.new_batch import NewBatch
from riverlog.model.disk import ReadableBuffer
from riverlog.records.batch import HEADER_BYTES
from riverlog.records.compression import Codec, compress
from riverlog.records.record_area import encode_varint
from riverlog.spark.sink import columns
from riverlog.spark.sink.columns import Column, Flags, RowBatch
from riverlog.spark.sink.placement import Ints, Placed, Placement, RowRefused

_CHUNK_BYTES: Final = 32 * 1024 * 1024
_ABSENT: Final = 1
"""A length of -1 as a zig-zag number."""
_NO_HEADERS: Final = b"\0"
_FIXED_BYTES: Final = 2
"""Attributes, and the timestamp: 0 after that of the batch."""
_OVERHEAD_BYTES_MAX: Final = 24
"""Of a record besides key, value and headers."""

Matrix = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class EncodeSettings:
    topic: str | None
    batch_bytes: int
    record_bytes_max: int
    codec: Codec = Codec.NONE
    level: int | None = None


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is written of some rows, in the order in which it is written."""

    keys: Column | None
    values: Column
    headers: Column | None

    def picked(self, order: Ints) -> "_Rows":
        return _Rows(
            None if self.keys is None else columns.picked(self.keys, order),
            columns.picked(self.values, order),
            None if self.headers is None else columns.picked(self.headers, order),
        )


@dataclass(frozen=True, slots=True)
class RowEncoder:
    settings: EncodeSettings
    placement: Placement
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def encode(self, batch: RowBatch) -> Iterator[list[NewBatch]]:
        """The record batches of the rows, in groups to be sent together."""
        for rows in columns.chunks(batch, _CHUNK_BYTES):
            if rows.num_rows:
                yield self._encode(rows)

    def _encode(self, rows: RowBatch) -> list[NewBatch]:
        keys = columns.find(rows, "key")
        headers = columns.find(rows, "headers")
        written = _Rows(
            None if keys is None or keys.null_count == len(keys) else columns.as_binary(keys),
            columns.as_binary(columns.find(rows, "value")),
            None if headers is None or headers.null_count == len(headers) else _tails(headers),
        )
        placed = self._place(rows, written.keys)
        numbers = placed.numbers
        if not placed.is_one:
            # Few destinations sort quicker as short numbers.
            short = numbers.astype(np.uint16) if len(placed.destinations) < 1 << 16 else numbers
            order = np.argsort(short, kind="stable").astype(np.int64)
            numbers = numbers[order]
            written = written.picked(order)
        return self._batches(written, numbers, placed)

    def _place(self, rows: RowBatch, keys: Column | None) -> Placed:
        count = rows.num_rows
        if self.settings.topic is not None:
            topics: tuple[Ints, Sequence[str]] = (np.zeros(count, np.int64), [self.settings.topic])
        else:
            topics = columns.texts_of(columns.find(rows, "topic"))
        partitions = columns.find(rows, "partition")
        return self.placement.place(
            topics,
            None if keys is None else columns.bytes_of(keys),
            None if keys is None else ~columns.nulls_of(keys),
            None if partitions is None else columns.ints_of(partitions),
        )

    def _batches(self, rows: _Rows, numbers: Ints, placed: Placed) -> list[NewBatch]:
        sizes = _sizes(rows)
        largest = int(sizes.max())
        if largest > self.settings.record_bytes_max + _OVERHEAD_BYTES_MAX:
            raise RowRefused(
                f"a row of about {largest} bytes is larger than kafka.max.request.size "
                f"({self.settings.record_bytes_max}); raise it, and the topic's max.message.bytes"
            )
        starts = np.array(list(_cuts(numbers, sizes, self.settings.batch_bytes - HEADER_BYTES)), np.int64)
        ends = np.append(starts[1:], len(numbers))
        deltas = np.arange(len(numbers)) - np.repeat(starts, ends - starts)
        bounds, area = _records(rows, deltas)
        has_tails = rows.headers is not None
        timestamp_ms = self.now_ms()
        batches = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            topic, partition = placed.destinations[int(numbers[start])]
            pieces = self._pieces(area[int(bounds[start]) : int(bounds[end])], has_tails)
            batches.append(NewBatch(topic, partition, pieces, end - start, timestamp_ms, self.settings.codec))
        return batches

    def _pieces(self, records: memoryview, has_tails: bool) -> list[ReadableBuffer]:
        """The records of a batch, compressed. See `_records` for the shifted tail."""
        pieces: list[ReadableBuffer] = [records] if has_tails else [records[1:], _NO_HEADERS]
        if self.settings.codec is Codec.NONE:
            return pieces
        return [compress(self.settings.codec, b"".join(pieces), self.settings.level)]


def _sizes(rows: _Rows) -> Ints:
    """Of each record, or a little more."""
    sizes = columns.bytes_of(rows.values).lengths + _OVERHEAD_BYTES_MAX
    if rows.keys is not None:
        sizes = sizes + columns.bytes_of(rows.keys).lengths
    if rows.headers is not None:
        sizes = sizes + columns.bytes_of(rows.headers).lengths
    return sizes


def _cuts(numbers: Ints, sizes: Ints, bytes_max: int) -> Iterator[int]:
    """Where a batch begins: at each new destination, and where the one before is full."""
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    changes = np.nonzero(np.diff(numbers))[0] + 1
    for first, end in zip([0, *changes.tolist()], [*changes.tolist(), len(numbers)], strict=True):
        start = first
        while start < end:
            yield start
            full = int(np.searchsorted(total, total[start] + bytes_max, side="right")) - 1
            start = max(start + 1, full)


def _records(rows: _Rows, deltas: Ints) -> tuple[npt.NDArray[np.int32], memoryview]:
    """All records, and where each begins.

    Without headers the zero that stands for them moves from the end of each record to the beginning of the
    next one, which saves Arrow a column: the first byte is one too many, and one is missing at the end.
    """
    values = columns.bytes_of(rows.values).lengths
    value_numbers = _lengths(values, columns.nulls_of(rows.values))
    delta_numbers = _numbers(deltas * 2)
    sizes = values + value_numbers.lengths + delta_numbers.lengths + _FIXED_BYTES
    if rows.keys is None:
        key_numbers = _numbers(np.full(len(deltas), _ABSENT))
    else:
        keys = columns.bytes_of(rows.keys).lengths
        key_numbers = _lengths(keys, columns.nulls_of(rows.keys))
        sizes = sizes + keys
    sizes = sizes + key_numbers.lengths
    if rows.headers is None:
        sizes = sizes + len(_NO_HEADERS)
    else:
        sizes = sizes + columns.bytes_of(rows.headers).lengths
    zero = _zeros(len(deltas), 1)
    fixed = _zeros(len(deltas), _FIXED_BYTES)
    head = [_numbers(sizes * 2), fixed, delta_numbers, key_numbers]
    if rows.headers is None:
        head = [zero, *head]
    if rows.keys is None:
        parts = [_flat([*head, value_numbers]), rows.values]
    else:
        parts = [_flat(head), rows.keys, _flat([value_numbers]), rows.values]
    if rows.headers is not None:
        parts.append(rows.headers)
    return columns.joined(parts)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A few bytes of each row: `lengths` of the columns of `matrix` count."""

    matrix: Matrix
    lengths: Ints


def _zeros(count: int, width: int) -> _Numbers:
    return _Numbers(np.zeros((count, width), np.uint8), np.full(count, width, np.int64))


def _lengths(lengths: Ints, nulls: Flags) -> _Numbers:
    numbers = lengths * 2
    if nulls.any():
        numbers = np.where(nulls, _ABSENT, numbers)
    return _numbers(numbers)


def _numbers(raw: Ints) -> _Numbers:
    """Variable-length numbers, seven bits in a byte, of numbers that are zig-zag already."""
    largest = int(raw.max(initial=0))
    width = max(1, (largest.bit_length() + 6) // 7)
    matrix = np.empty((len(raw), width), np.uint8)
    lengths = np.ones(len(raw), np.int64)
    for index in range(width):
        rest = raw >> (7 * index)
        goes_on = rest > 0x7F
        matrix[:, index] = (rest & 0x7F) | (goes_on.astype(np.int64) << 7)
        if index + 1 < width:
            lengths += goes_on
    return _Numbers(matrix, lengths)


def _flat(parts: Sequence[_Numbers]) -> Column:
    """One column of bytes: what the parts have in each row, one after the other."""
    lengths = np.sum([part.lengths for part in parts], axis=0)
    matrix = np.concatenate([part.matrix for part in parts], axis=1)
    if int(lengths.min()) == matrix.shape[1]:
        return columns.binary_column(lengths, matrix.reshape(-1))
    counts = [np.arange(part.matrix.shape[1]) < part.lengths[:, None] for part in parts]
    return columns.binary_column(lengths, matrix[np.concatenate(counts, axis=1)])


def _tails(headers: Column) -> Column:
    """The headers of each row as they end a record."""
    encoded = [_encoded_headers(each) for each in headers.to_pylist()]
    lengths = np.array([len(each) for each in encoded], np.int64)
    return columns.binary_column(lengths, np.frombuffer(b"".join(encoded), np.uint8))


def _encoded_headers(headers: Sequence[dict[str, str | bytes | None]] | None) -> bytes:
    if not headers:
        return _NO_HEADERS
    parts = [encode_varint(len(headers))]
    for header in headers:
        name, value = header["key"], header["value"]
        if name is None:
            raise RowRefused("a header of a row has no key; give each a name")
        for each in (name.encode() if isinstance(name, str) else name, value):
            raw = each.encode() if isinstance(each, str) else each
            parts.append(encode_varint(-1) if raw is None else encode_varint(len(raw)) + raw)
    return b"".join(parts)
