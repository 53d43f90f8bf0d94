"""Making batches and logs for the tests of the storage layer, on any disk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from riverlog.model.config.slices import LogConfig
from riverlog.model.disk import Disk
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.records.batch import BatchHeader, walk
from riverlog.records.builder import ControlType, build_batch, build_control_batch
from riverlog.records.compression import Codec
from riverlog.records.record import Record, records_of
from riverlog.records.rules import Accepted
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.open_files import OpenFiles
from riverlog.storage.log.appends import Appended, AppendOrigin
from riverlog.storage.log.log import Log
from riverlog.storage.log.opening import LogEnvironment, LogToOpen
from riverlog.storage.log.segment_list import LogRead
from riverlog.storage.log.syncing import LogSync

PARTITION = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"
START_MS = 1_700_000_000_000


@dataclass
class ManualClock:
    now_ms: int = START_MS

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_s(self) -> float:
        return self.now_ms / 1000


def accept(data: bytes) -> Accepted:
    """Batches as validation hands them on."""
    view = memoryview(bytearray(data))
    found = tuple(walk(view))
    count = sum(header.record_count for _, header in found)
    return Accepted(view, found, count, max(header.max_timestamp_ms for _, header in found))


def batch(
    *values: bytes,
    timestamp_ms: int = START_MS,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    codec: Codec = Codec.NONE,
) -> Accepted:
    records = [(timestamp_ms + number, None, value, ()) for number, value in enumerate(values)]
    data = build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch if producer_id < 0 or epoch >= 0 else 0,
        base_sequence=sequence,
        transactional=transactional,
        codec=codec,
    )
    return accept(data)


def marker(
    producer_id: int,
    *,
    epoch: int = 0,
    commit: bool,
    timestamp_ms: int = START_MS,
    coordinator_epoch: int = 0,
) -> Accepted:
    return accept(
        build_control_batch(
            ControlType.COMMIT if commit else ControlType.ABORT,
            timestamp_ms=timestamp_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
        )
    )


def open_log(
    disk: Disk,
    clock: ManualClock | None = None,
    *,
    directory: str = DIRECTORY,
    config: LogConfig | None = None,
    clean: bool = False,
    open_files: OpenFiles | None = None,
    request_sync: Callable[[LogSync], None] | None = None,
    **known: Any,
) -> Log:
    if not disk.exists("/data") and directory == DIRECTORY:
        disk.make_directories("/data")
        disk.sync_directory("/")
    environment = LogEnvironment.at(directory, disk, clock or ManualClock(), open_files)
    environment.request_sync = request_sync
    return Log(LogToOpen(directory, PARTITION, config or LogConfig(), is_clean=clean, **known), environment)


def append(
    log: Log, accepted: Accepted, *, leader_epoch: int = 0, origin: AppendOrigin = AppendOrigin.CLIENT
) -> Appended:
    outcome = log.append(accepted, leader_epoch=LeaderEpoch(leader_epoch), origin=origin)
    assert isinstance(outcome, Appended), outcome
    return outcome


def remove_deleted(directory: LogDirectory, now_ms: int) -> None:
    """Here and now."""
    if (removal := directory.begin_removal(now_ms)) is not None:
        removal()


def slice_bytes(read: object) -> bytes:
    assert isinstance(read, LogRead), read
    if read.records is None:
        return b""
    return read.records.file.pread(read.records.length, read.records.position)


def read_all(log: Log, *, start: int | None = None, max_bytes: int = 1 << 20) -> list[Record]:
    """Every record from `start` up to the end of the log, by repeated reads."""
    offset = log.log_start_offset if start is None else start
    records: list[Record] = []
    while offset < log.log_end_offset:
        data = slice_bytes(log.read(offset, max_bytes=max_bytes, end_offset=log.log_end_offset))
        if not data:
            break
        found = [record for at, _ in walk(data) for record in records_of(data, at)]
        records.extend(record for record in found if record.offset >= offset)
        offset = max(header.next_offset for _, header in walk(data))
    return records


def values(log: Log) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in read_all(log)]


def batches_of(log: Log) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """Every batch: the data that it is in, its position there, and its header."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, max_bytes=1 << 20, end_offset=log.log_end_offset)
        assert isinstance(read, LogRead)
        assert read.records is not None
        data = read.records.file.pread(read.records.length, read.records.position)
        for position, header in walk(data):
            offset = header.next_offset
            yield data, position, header
