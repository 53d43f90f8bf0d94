"""A log that Apache Kafka 4.3.1 cleaned: it opens here, and our cleaner makes the same of the same input.

`kafka-dirty` is a partition before, `kafka-cleaned` after a pass of Kafka's cleaner: five compressions with
tombstones, then transactions of two producers side by side, of which some were aborted.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from riverlog.records.batch import BatchHeader
from riverlog.records.record import Record
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.files.checkpoint import decode_offsets, encode_offsets
from riverlog.storage.inspect import Finding, verify
from riverlog.storage.log.log import Log
from tests.storage.cleaning.compaction import CONFIG, clean, headers
from tests.storage.logs import ManualClock, open_log, read_all

FIXTURES = Path(__file__).parent / "fixtures"
DAY_MS = 86_400_000
SETTINGS = replace(CONFIG, segment_bytes=3000, index_interval_bytes=300, delete_retention_ms=DAY_MS)


def open_copy(tmp_path: Path, name: str, clock: ManualClock) -> Log:
    directory = tmp_path / name / "gold-0"
    shutil.copytree(FIXTURES / name, directory)
    log = open_log(
        LocalDisk(), clock, directory=str(directory), config=SETTINGS, clean=True, recovery_point=1 << 40
    )
    log.state.set_high_watermark(log.log_end_offset)
    log.sync.flush()
    return log


def comparable(header: BatchHeader) -> BatchHeader:
    """Without what depends on the time of the pass, on sizes, and on the base that timestamps count from."""
    return header._replace(crc=0, size_bytes=0, base_timestamp_ms=0)


def records_of(log: Log) -> list[Record]:
    return read_all(log)


def test_a_log_that_kafka_cleaned_opens_and_its_files_are_sound(tmp_path: Path) -> None:
    log = open_copy(tmp_path, "kafka-cleaned", ManualClock())
    assert log.log_end_offset > 242
    assert any(header.record_count == 0 for header in headers(log))
    assert any(header.delete_horizon_ms is not None for header in headers(log))
    assert not [each for each in verify(LocalDisk(), log.directory) if isinstance(each, Finding)]


def test_our_cleaner_leaves_what_kafkas_leaves(tmp_path: Path) -> None:
    clock = ManualClock()
    theirs = open_copy(tmp_path, "kafka-cleaned", clock)
    horizons = [found for header in headers(theirs) if (found := header.delete_horizon_ms) is not None]
    clock.now_ms = horizons[0] - DAY_MS
    ours = open_copy(tmp_path, "kafka-dirty", clock)
    assert clean(ours, clock).end_offset == 242
    assert [comparable(header) for header in headers(ours)] == [
        comparable(header) for header in headers(theirs)
    ]
    assert records_of(ours) == records_of(theirs)
    assert [header.delete_horizon_ms for header in headers(ours) if header.delete_horizon_ms] == horizons
    assert [segment.base_offset for segment in ours.segments] == [
        segment.base_offset for segment in theirs.segments
    ]
    end = ours.log_end_offset
    assert ours.aborted_transactions(0, end) == theirs.aborted_transactions(0, end)
    assert [list(segment.transactions) for segment in ours.segments] == [
        list(segment.transactions) for segment in theirs.segments
    ]


def test_the_checkpoint_of_the_cleaner_is_kafkas() -> None:
    path = FIXTURES / "kafka-cleaner-offset-checkpoint"
    offsets = decode_offsets(path.read_bytes(), str(path))
    assert offsets == {"gold-0": 242}
    assert encode_offsets(offsets) == path.read_bytes()
