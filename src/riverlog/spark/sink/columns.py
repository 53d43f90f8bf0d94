"""The sink's columns in an Arrow batch, as numpy sees them. Only this module of the sink knows pyarrow."""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from riverlog.spark.sink.placement import Bytes, Ints

Column: TypeAlias = Any
"""A `pyarrow.Array`."""
RowBatch: TypeAlias = Any
"""A `pyarrow.RecordBatch`."""
Flags: TypeAlias = npt.NDArray[np.bool_]


@cache
def _no_separator() -> Any:
    """Made when it is needed: the first value that pyarrow converts makes it import pandas."""
    return pa.scalar(b"", pa.binary())


def find(rows: RowBatch, name: str) -> Column | None:
    for index, found in enumerate(rows.schema.names):
        if found.lower() == name:
            return rows.column(index)
    return None


def as_binary(column: Column) -> Column:
    return column if column.type == pa.binary() else column.cast(pa.binary())


def bytes_of(column: Column) -> Bytes:
    """Of a binary column; a null is an empty string here."""
    _, offsets, data = column.buffers()
    if len(column) == 0 or offsets is None:
        return Bytes(np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(
        np.int64
    )
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    lengths = np.diff(bounds)
    if column.null_count:
        lengths[nulls_of(column)] = 0
    return Bytes(raw, bounds[:-1], lengths)


def nulls_of(column: Column) -> Flags:
    if column.null_count == 0:
        return np.zeros(len(column), np.bool_)
    flags: Flags = column.is_null().to_numpy(zero_copy_only=False)
    return flags


def ints_of(column: Column) -> Ints:
    """A null is -1."""
    filled = column.fill_null(-1) if column.null_count else column
    numbers: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)


def texts_of(column: Column) -> tuple[Ints, list[str]]:
    """For each row which text it has, -1 for a null, and the texts."""
    encoded = column.dictionary_encode()
    return ints_of(encoded.indices), encoded.dictionary.to_pylist()


def topics_of(rows: RowBatch) -> list[str]:
    """Those that the rows name in their column."""
    column = find(rows, "topic")
    return [] if column is None else [text for text in column.unique().to_pylist() if text is not None]


def picked(column: Column, rows: Ints) -> Column:
    return column.take(pa.array(rows))


def binary_column(lengths: Ints, data: npt.NDArray[np.uint8]) -> Column:
    bounds = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=bounds[1:])
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(data))]
    )


def joined(columns: Sequence[Column]) -> tuple[npt.NDArray[np.int32], memoryview]:
    """The bytes of the columns row by row, and where each row begins and the last one ends."""
    whole = pc.binary_join_element_wise(
        *columns, _no_separator(), null_handling="replace", null_replacement=b""
    )
    _, offsets, data = whole.buffers()
    bounds = np.frombuffer(offsets, np.int32)[whole.offset : whole.offset + len(whole) + 1]
    return bounds, memoryview(data)


def chunks(rows: RowBatch, bytes_max: int) -> list[RowBatch]:
    """The same rows in pieces of about this size, so that what is made of one stays bounded."""
    size = int(rows.nbytes)
    if size <= bytes_max:
        return [rows]
    step = max(1, rows.num_rows * bytes_max // size)
    return [rows.slice(start, step) for start in range(0, rows.num_rows, step)]
