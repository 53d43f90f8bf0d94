"""Looking at log files from outside: dump what is in them, verify that it is whole.

Reads only, and works on files of a running broker, of a stopped one, and of Apache Kafka. `verify` finds a
flipped bit anywhere: in batches by their CRC, in indexes and snapshots by comparing with the batches.
Batches that are being appended meanwhile may show as a cut-off end of the last segment.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from riverlog.model.disk import Disk
from riverlog.model.errors import CorruptLogError
from riverlog.records import batch as batches
from riverlog.records.batch import BatchHeader
from riverlog.records.record import Record, records_of
from riverlog.storage.disk.damage import DamageReports
from riverlog.storage.disk.open_files import Files, OpenFiles
from riverlog.storage.files import names
from riverlog.storage.files.index_files import E, OffsetIndex, TimeIndex
from riverlog.storage.files.transaction_index import AbortedTransaction, TransactionIndex
from riverlog.storage.log.batch_scan import scan_batches
from riverlog.storage.producers.snapshot import decode_snapshot
from riverlog.storage.producers.state import ProducerEntry


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    position: int
    header: BatchHeader
    is_valid: bool
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something is wrong at a place in a file."""

    path: str
    position: int
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A file was read to the end; for progress."""

    path: str
    size_bytes: int


def dump_batches(disk: Disk, path: str, *, with_records: bool = False) -> Iterator[DumpedBatch]:
    """Every batch of a `.log` file up to the first torso."""
    file = disk.open(path)
    for position, header, view, at in scan_batches(file, 0, file.size()):
        is_valid = batches.crc_is_valid(view, at, header)
        records = tuple(records_of(view, at)) if with_records and is_valid else ()
        yield DumpedBatch(position, header, is_valid, records)


def dump_index(disk: Disk, path: str) -> Iterator[tuple[int, int]]:
    """Offset and position of each entry of an `.index` file."""
    base = _base_offset(path)
    for relative, position in _trimmed(OffsetIndex(path, _files(disk)).entries()):
        yield base + relative, position


def dump_time_index(disk: Disk, path: str) -> Iterator[tuple[int, int]]:
    """Timestamp and offset of each entry of a `.timeindex` file."""
    base = _base_offset(path)
    for timestamp_ms, relative in _trimmed(TimeIndex(path, _files(disk)).entries()):
        yield timestamp_ms, base + relative


def dump_transactions(disk: Disk, path: str) -> Iterator[AbortedTransaction]:
    yield from TransactionIndex(path, _files(disk))


def dump_snapshot(disk: Disk, path: str) -> Iterator[tuple[int, ProducerEntry]]:
    """Raises `CorruptLogError` when it is damaged."""
    yield from decode_snapshot(disk.read(path))


def verify(disk: Disk, path: str) -> Iterator[Finding | Checked]:
    """Check a segment file, a partition's directory or a whole data directory."""
    if path.endswith(names.SNAPSHOT):
        yield from _verify_snapshot(disk, path)
    elif (parsed := names.parse_segment_file(path.rpartition("/")[2])) is not None:
        yield from _verify_segment(disk, path.rpartition("/")[0], parsed[0], None)
    else:
        entries = sorted(disk.list(path))
        yield from _verify_partition(disk, path, entries)
        for name in entries:
            if names.parse_partition_directory(name) is not None:
                directory = f"{path}/{name}"
                yield from _verify_partition(disk, directory, sorted(disk.list(directory)))


def _verify_partition(disk: Disk, directory: str, entries: list[str]) -> Iterator[Finding | Checked]:
    parsed = [(name, names.parse_segment_file(name)) for name in entries]
    bases = [found[0] for _, found in parsed if found is not None and found[1] == names.LOG]
    for number, base in enumerate(bases):
        yield from _verify_segment(
            disk, directory, base, bases[number + 1] if number + 1 < len(bases) else None
        )
    for name, found in parsed:
        if found is not None and found[1] == names.SNAPSHOT:
            yield from _verify_snapshot(disk, f"{directory}/{name}")


def _verify_segment(
    disk: Disk, directory: str, base: int, next_base: int | None
) -> Iterator[Finding | Checked]:
    path = names.segment_path(directory, base, names.LOG)
    if not disk.exists(path):
        yield Finding(path, 0, "there is an index but no log file")
        return
    file = disk.open(path)
    size = file.size()
    found: dict[int, BatchHeader] = {}
    expected, position = base, 0
    for position, header, view, at in scan_batches(file, 0, size):
        if not batches.crc_is_valid(view, at, header):
            yield Finding(path, position, f"the CRC of the batch at offset {header.base_offset} is wrong")
        if header.base_offset < expected:
            yield Finding(path, position, f"offset {header.base_offset} comes after {expected - 1}")
        found[position] = header
        expected = header.next_offset
        position += header.size_bytes
    end = position if found else 0
    if end < size:
        yield Finding(path, end, f"{size - end} bytes at the end are no whole batch")
    if next_base is not None and expected > next_base:
        yield Finding(path, end, f"the segment ends at {expected}, the next begins at {next_base}")
    yield Checked(path, size)
    yield from _verify_indexes(disk, directory, base, found)


def _verify_indexes(
    disk: Disk, directory: str, base: int, found: dict[int, BatchHeader]
) -> Iterator[Finding | Checked]:
    path = names.segment_path(directory, base, names.INDEX)
    if disk.exists(path):
        previous = -1
        for number, (offset, position) in enumerate(dump_index(disk, path)):
            header = found.get(position)
            if header is None or header.last_offset != offset or offset <= previous:
                yield Finding(
                    path, number * OffsetIndex.ENTRY_BYTES, f"no batch ends at offset {offset} there"
                )
            previous = offset
        yield from _verify_shape(disk, path, OffsetIndex.ENTRY_BYTES)
    path = names.segment_path(directory, base, names.TIME_INDEX)
    if disk.exists(path):
        newest = {header.last_offset: header.max_timestamp_ms for header in found.values()}
        previous = -1
        for number, (timestamp_ms, offset) in enumerate(dump_time_index(disk, path)):
            if newest.get(offset) != timestamp_ms or timestamp_ms <= previous:
                position = number * TimeIndex.ENTRY_BYTES
                yield Finding(path, position, f"no batch at offset {offset} has the timestamp {timestamp_ms}")
            previous = timestamp_ms
        yield from _verify_shape(disk, path, TimeIndex.ENTRY_BYTES)


def _verify_shape(disk: Disk, path: str, entry_bytes: int) -> Iterator[Finding | Checked]:
    size = disk.size(path)
    if size % entry_bytes:
        yield Finding(path, size - size % entry_bytes, "the last entry is cut off")
    yield Checked(path, size)


def _verify_snapshot(disk: Disk, path: str) -> Iterator[Finding | Checked]:
    try:
        decode_snapshot(disk.read(path))
    except CorruptLogError as error:
        yield Finding(path, 0, str(error))
    yield Checked(path, disk.size(path))


def _trimmed(entries: Iterator[E]) -> Iterator[E]:
    """Without the zeros of an index that Kafka preallocated and did not get to trim."""
    for number, entry in enumerate(entries):
        if number and entry == (0, 0):
            return
        yield entry


def _base_offset(path: str) -> int:
    parsed = names.parse_segment_file(path.rpartition("/")[2])
    if parsed is None:
        raise CorruptLogError(f"{path} is not named like a segment file: twenty digits and a suffix.")
    return parsed[0]


def _files(disk: Disk) -> Files:
    return Files(disk, OpenFiles(8), DamageReports())
