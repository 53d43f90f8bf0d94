"""Cleaner throughput on one core: what a pass gets through of a log, beside reading and checking it only."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from crc32c import crc32c

from benchmarks.figures import Figure
from riverlog.model.config.slices import CleanupPolicy, LogConfig
from riverlog.model.ids import LeaderEpoch, TopicPartition
from riverlog.records.batch import walk
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.rules import Accepted
from riverlog.storage.cleaning.cleaning import Bounds, Cleaning
from riverlog.storage.cleaning.plan import examine
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.log.appends import Appended
from riverlog.storage.log.log import Log
from riverlog.storage.log.opening import LogEnvironment, LogToOpen

TOTAL_BYTES = 64 * 1024**2
VALUE_BYTES = 1000
RECORDS_PER_BATCH = 16
KEYS = 10_000
CONFIG = LogConfig(
    segment_bytes=16 * 1024**2,
    cleanup_policies=frozenset({CleanupPolicy.COMPACT}),
    min_cleanable_dirty_ratio=0.0,
)


class _WallClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


def run() -> list[Figure]:
    return [
        _measure(Codec.NONE, "cleaning 1 KB records, each key six times over"),
        _measure(Codec.LZ4, "the same in lz4, half of it noise"),
    ]


def _measure(codec: Codec, name: str) -> Figure:
    directory = tempfile.mkdtemp(prefix="riverlog-bench-")
    try:
        log = _filled(directory, codec)
        size = sum(segment.size_bytes for segment in log.segments[:-1])
        reading = _seconds(lambda: _read_and_check(directory))
        cleaning = _seconds(lambda: _clean(log))
        log.close()
    finally:
        shutil.rmtree(directory)
    return Figure(name, size / 1e6 / cleaning, "MB/s per core", size / 1e6 / reading, "read and CRC once")


def _filled(directory: str, codec: Codec) -> Log:
    """A log in which every key is written some six times over."""
    path = f"{directory}/bench-0"
    environment = LogEnvironment.at(path, LocalDisk(), _WallClock())
    log = Log(LogToOpen(path, TopicPartition("bench", 0), CONFIG), environment)
    number, now_ms = 0, _WallClock().wall_ms()
    for _ in range(TOTAL_BYTES // (RECORDS_PER_BATCH * VALUE_BYTES)):
        keys = range(number, number + RECORDS_PER_BATCH)
        number += RECORDS_PER_BATCH
        records = [(now_ms, b"key-%d" % (each % KEYS), _value(), ()) for each in keys]
        view = memoryview(bytearray(build_batch(records, codec=codec)))
        accepted = Accepted(view, tuple(walk(view)), RECORDS_PER_BATCH, now_ms)
        assert isinstance(log.append(accepted, leader_epoch=LeaderEpoch(0)), Appended)
    log.sync.roll()
    log.sync.flush()
    log.state.set_high_watermark(log.log_end_offset)
    return log


def _value() -> bytes:
    return os.urandom(VALUE_BYTES // 2) + bytes(VALUE_BYTES // 2)


def _clean(log: Log) -> None:
    now_ms = _WallClock().wall_ms()
    cleaning = Cleaning(log, examine(log, now_ms), bounds=Bounds(), now_ms=now_ms)
    with closing(cleaning.steps()) as steps:
        for step in steps:
            step()


def _read_and_check(directory: str) -> None:
    for path in Path(directory).rglob("*.log"):
        crc32c(path.read_bytes())


def _seconds(work: Callable[[], None]) -> float:
    """Processor time of this thread: what one core is busy for."""
    start = time.thread_time()
    work()
    return time.thread_time() - start
