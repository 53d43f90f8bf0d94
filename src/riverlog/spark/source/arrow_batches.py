"""Record batches of a log turned into Arrow batches with the columns of the source.

The compiled decoder makes the records, columns are taken from them one by one, and an Arrow batch is given
out when enough rows or bytes have come together. Rows outside the wanted offsets, which whole batches bring
with them, are left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]

from riverlog.client.reading import FetchedBatch
from riverlog.model.ids import TopicPartition
from riverlog.records.batch import CorruptBatch
from riverlog.records.record import native_record_list, records_of

ArrowBatch: TypeAlias = Any
ArrowSchema: TypeAlias = Any

ROWS_MAX: Final = 20_000
BYTES_MAX: Final = 4 * 1024 * 1024
_APPEND_TIME: Final = 1


class _Row(NamedTuple):
    """As the compiled decoder would have made it."""

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class ArrowBatches:
    """Collects rows of one partition; `schema` is that of the source, with or without headers."""

    def __init__(self, at: TopicPartition, schema: ArrowSchema, end: int) -> None:
        self._at = at
        self._schema = schema
        self._with_headers = "headers" in schema.names
        self._end = end
        self._rows: list[Any] = []
        self._types: list[tuple[int, int]] = []
        self._size = 0

    def add(self, batch: FetchedBatch, first: int) -> Iterator[ArrowBatch]:
        """The Arrow batches that are full with it; records before offset `first` are not wanted."""
        header = batch.header
        rows = _decoded(batch)
        if header.base_offset < first or header.next_offset > self._end:
            rows = [row for row in rows if first <= row.offset < self._end]
        self._rows += rows
        self._types.append((len(rows), _APPEND_TIME if header.is_log_append_time else 0))
        self._size += header.size_bytes
        if len(self._rows) >= ROWS_MAX or self._size >= BYTES_MAX:
            yield from self.rest()

    def rest(self) -> Iterator[ArrowBatch]:
        """All that has been collected."""
        rows, self._rows = self._rows, []
        types = _timestamp_types(self._types)
        self._types, self._size = [], 0
        for first in range(0, len(rows), ROWS_MAX):
            yield self._arrow(rows[first : first + ROWS_MAX], types.slice(first, ROWS_MAX))

    def _arrow(self, rows: list[Any], types: Any) -> ArrowBatch:
        count = len(rows)
        timestamps = pa.array([row.timestamp for row in rows], pa.int64())
        if timestamps.null_count:
            timestamps = timestamps.fill_null(-1)
        columns = [
            pa.array([row.key for row in rows], pa.binary()),
            pa.array([row.value for row in rows], pa.binary()),
            pa.repeat(self._at.topic, count),
            pa.repeat(pa.scalar(self._at.partition, pa.int32()), count),
            pa.array([row.offset for row in rows], pa.int64()),
            timestamps.cast(pa.timestamp("ms", "UTC")).cast(self._schema.field("timestamp").type),
            types,
        ]
        if self._with_headers:
            columns.append(_headers([row.headers for row in rows], self._schema.field("headers").type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _decoded(batch: FetchedBatch) -> list[Any]:
    try:
        return native_record_list(*batch)
    except CorruptBatch:
        # Header keys that are not UTF-8: the slower decoder reads them, or says what is wrong.
        return [
            _Row(
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                [(key.encode("utf-8", "replace").decode(), value) for key, value in record.headers],
            )
            for record in records_of(batch.buffer, batch.position)
        ]


def _timestamp_types(runs: list[tuple[int, int]]) -> Any:
    pieces = [pa.repeat(pa.scalar(kind, pa.int32()), count) for count, kind in runs]
    if len({kind for _, kind in runs}) == 1:
        return pa.repeat(pa.scalar(runs[0][1], pa.int32()), sum(count for count, _ in runs))
    return pa.concat_arrays(pieces) if pieces else pa.array([], pa.int32())


def _headers(rows: list[Sequence[tuple[str, bytes | None]]], kind: Any) -> Any:
    """Null for a record without headers, as Spark's connector has it."""
    return pa.array(
        [[{"key": key, "value": value} for key, value in row] if row else None for row in rows], kind
    )
