"""Making keyed logs and cleaning them, step by step, on any disk."""

from collections.abc import Callable, Iterable
from contextlib import closing

from riverlog.model.config.slices import CleanupPolicy, LogConfig
from riverlog.records.batch import BatchHeader, walk
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.record import Record
from riverlog.records.rules import Accepted
from riverlog.storage.cleaning.cleaning import Bounds, Cleaning
from riverlog.storage.cleaning.plan import examine
from riverlog.storage.log.appends import AppendOrigin
from riverlog.storage.log.log import Log
from tests.storage.logs import START_MS, ManualClock, accept, append, marker, read_all, slice_bytes

COMPACT = frozenset({CleanupPolicy.COMPACT})
CONFIG = LogConfig(
    segment_bytes=700,
    index_interval_bytes=150,
    cleanup_policies=COMPACT,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=1000,
)

KeyedValue = tuple[bytes | None, bytes | None]


def keyed(
    *pairs: KeyedValue,
    timestamp_ms: int = START_MS,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = -1,
    transactional: bool = False,
    codec: Codec = Codec.NONE,
) -> Accepted:
    records = [(timestamp_ms + number, key, value, ()) for number, (key, value) in enumerate(pairs)]
    return accept(
        build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
            codec=codec,
        )
    )


def put(log: Log, *pairs: KeyedValue, **options: object) -> int:
    """Append one batch and commit it; returns its first offset."""
    first = append(log, keyed(*pairs, **options)).first_offset  # type: ignore[arg-type]
    log.state.set_high_watermark(log.log_end_offset)
    return first


def end_transaction(log: Log, producer_id: int, *, commit: bool, epoch: int = 0) -> None:
    append(log, marker(producer_id, commit=commit, epoch=epoch), origin=AppendOrigin.COORDINATOR)
    log.state.set_high_watermark(log.log_end_offset)


def close_segment(log: Log) -> None:
    """So that everything up to here can be cleaned."""
    log.sync.roll()
    log.sync.flush()


def begin_cleaning(log: Log, clock: ManualClock, bounds: Bounds | None = None) -> Cleaning:
    now_ms = clock.wall_ms()
    return Cleaning(log, examine(log, now_ms), bounds=bounds or Bounds(), now_ms=now_ms)


def clean(
    log: Log,
    clock: ManualClock,
    bounds: Bounds | None = None,
    between: Callable[[int], None] = lambda number: None,
) -> Cleaning:
    """One pass; `between` runs where the event loop would have its turn."""
    cleaning = begin_cleaning(log, clock, bounds)
    with closing(cleaning.steps()) as steps:
        for number, step in enumerate(steps):
            step()
            between(number)
    return cleaning


def headers(log: Log) -> list[BatchHeader]:
    found: list[BatchHeader] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = slice_bytes(log.read(offset, max_bytes=1 << 20, end_offset=log.log_end_offset))
        if not data:
            break
        found.extend(header for _, header in walk(data))
        offset = found[-1].next_offset
    return found


def table(records: Iterable[Record]) -> dict[bytes, bytes]:
    """What a reader holds at the end of the log."""
    held: dict[bytes, bytes] = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            held.pop(record.key, None)
        else:
            held[record.key] = record.value
    return held


def offsets_and_values(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in read_all(log)]
