"""aiokafka's compiled record codec, the only place that imports it.

Loaded on first use: a broker that never looks inside a batch never pays for the import. The decoder reads up
to some twenty bytes behind the end of hostile input before it notices, so callers hand it views with
`compression.PADDING_BYTES` behind them; and it must only ever see uncompressed batches, because its own
decompression has no bound.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol, cast

from riverlog.model.disk import ReadableBuffer


class NativeRecord(Protocol):
    """What the compiled decoder yields. A timestamp of -1 comes out as None."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int | None: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...


class NativeBuilder(Protocol):
    """The compiled encoder, as far as we use it."""

    def append(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: list[Any]
    ) -> object: ...

    def build(self) -> bytearray: ...


class NativeDecodeError(ValueError):
    """The compiled decoder refused the records; the pure decoder says precisely why."""


@cache
def _module() -> Any:
    from aiokafka.record import default_records  # type: ignore[import-untyped]

    return default_records


@cache
def _decode_errors() -> tuple[type[Exception], ...]:
    from aiokafka.errors import CorruptRecordException  # type: ignore[import-untyped]

    # The last three: a header key that is not UTF-8, and lengths no machine could hold.
    return (CorruptRecordException, UnicodeDecodeError, OverflowError, MemoryError)


def decode(batch: memoryview) -> Iterator[NativeRecord]:
    """The records of one uncompressed batch; `NativeDecodeError` where they are malformed."""
    try:
        yield from _module().DefaultRecordBatch(batch)
    except _decode_errors() as error:
        raise NativeDecodeError(str(error)) from error


def decode_all(batch: memoryview) -> list[NativeRecord]:
    """The same at once, which spares each record the way through a generator."""
    try:
        return list(_module().DefaultRecordBatch(batch))
    except _decode_errors() as error:
        raise NativeDecodeError(str(error)) from error


def new_builder() -> NativeBuilder:
    """An encoder of one uncompressed batch without producer, however large."""
    unbounded = (1 << 62) - 1
    return cast(NativeBuilder, _module().DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, unbounded))


def as_bytes(value: ReadableBuffer | None) -> bytes | None:
    """The encoder takes bytes only."""
    return value if value is None or isinstance(value, bytes) else bytes(value)
