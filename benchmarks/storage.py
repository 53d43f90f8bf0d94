"""The log engine alone: append beside a bare loop, recovery, and what idle partitions cost."""

import gc
import os
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from uuid import UUID

from crc32c import crc32c

from benchmarks.figures import Aim, Figure
from riverlog.model.config.slices import LogConfig
from riverlog.model.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from riverlog.records.builder import build_batch
from riverlog.records.validate import Accepted, BatchRules, validate
from riverlog.storage.directory.log_directory import LogDirectory
from riverlog.storage.disk.local import LocalDisk
from riverlog.storage.log.log import Log
from riverlog.storage.log.opening import LogEnvironment, LogToOpen

PARTITION = TopicPartition("bench", 0)
BATCH_BYTES = 1_000_000
TOTAL_BYTES = 200_000_000
SMALL_APPENDS = 20_000
IDLE_PARTITIONS = 2_000
ROUNDS = 3
_RULES = BatchRules()


class _WallClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()


def run() -> list[Figure]:
    directory = tempfile.mkdtemp(prefix="riverlog-bench-")
    try:
        return [*_append(directory), *_recover(directory), *_small(directory), *_idle(directory)]
    finally:
        shutil.rmtree(directory)


def _batch(value_bytes: int) -> bytearray:
    return bytearray(build_batch([(_WallClock().wall_ms(), b"key", os.urandom(value_bytes), ())]))


def _open(directory: str, name: str, *, clean: bool = False) -> Log:
    path = f"{directory}/{name}"
    environment = LogEnvironment.at(path, LocalDisk(), _WallClock())
    return Log(LogToOpen(path, PARTITION, LogConfig(), is_clean=clean), environment)


def _cpu_seconds(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _append(directory: str) -> list[Figure]:
    data, rounds = _batch(BATCH_BYTES), TOTAL_BYTES // BATCH_BYTES

    def ours(log: Log) -> None:
        for _ in range(rounds):
            accepted = validate(data, _RULES, _WallClock().wall_ms())
            assert isinstance(accepted, Accepted)
            log.append(accepted, leader_epoch=LeaderEpoch(0))
            data[:8] = bytes(8)  # The next round is a client's batch again.

    def bare(descriptor: int) -> None:
        for number in range(rounds):
            crc32c(memoryview(data)[21:])
            os.pwrite(descriptor, data, number * len(data))

    our_s, bare_s = [], []
    for _ in range(ROUNDS):  # In turn, and the best of each, since whoever touches fresh pages pays for them.
        descriptor = os.open(f"{directory}/bare", os.O_RDWR | os.O_CREAT)
        bare_s.append(_cpu_seconds(partial(bare, descriptor)))
        os.close(descriptor)
        os.unlink(f"{directory}/bare")
        shutil.rmtree(f"{directory}/large", ignore_errors=True)
        log = _open(directory, "large")
        our_s.append(_cpu_seconds(partial(ours, log)))
        log.close(clean=False)
    gigabytes = rounds * len(data) / 1e9
    return [
        Figure(
            "validate and append 1 MB batches",
            min(our_s) / gigabytes,
            "CPU-s/GB",
            min(bare_s) / gigabytes,
            "CRC and pwrite",
            Aim(1.3, "ratio"),
        ),
    ]


def _recover(directory: str) -> list[Figure]:
    started = time.perf_counter()
    log = _open(directory, "large")
    elapsed = time.perf_counter() - started
    size = log.size_bytes
    log.close(clean=False)
    shutil.rmtree(f"{directory}/large")
    return [Figure("recovery scan, 1 MB batches", size / 1e6 / elapsed, "MB/s")]


def _small(directory: str) -> list[Figure]:
    accepted = validate(_batch(100), _RULES, _WallClock().wall_ms())
    assert isinstance(accepted, Accepted)
    log = _open(directory, "small")
    append_s = _cpu_seconds(lambda: _repeat(lambda: log.append(accepted, leader_epoch=LeaderEpoch(0))))
    end = log.log_end_offset
    read_s = _cpu_seconds(lambda: _repeat(lambda: log.read(end - 1, max_bytes=1000, end_offset=end)))
    log.close(clean=False)
    started = time.perf_counter()
    _open(directory, "small").close(clean=False)
    elapsed = time.perf_counter() - started
    return [
        Figure("append a batch of one small record", append_s / SMALL_APPENDS * 1e6, "us"),
        Figure("find the place of a read at the tail", read_s / SMALL_APPENDS * 1e6, "us"),
        Figure("recovery scan per small batch", elapsed / SMALL_APPENDS * 1e6, "us"),
    ]


def _repeat(work: Callable[[], object]) -> None:
    for _ in range(SMALL_APPENDS):
        work()


def _idle(directory: str) -> list[Figure]:
    path, topic_id = f"{directory}/idle", TopicId(UUID(int=1))
    started = time.perf_counter()
    data = _open_directory(path)
    for number in range(IDLE_PARTITIONS):
        data.create(TopicPartition("idle", number), topic_id)
    created_s = time.perf_counter() - started
    data.close()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    data = _open_directory(path)
    bytes_each = (tracemalloc.get_traced_memory()[0] - before) / IDLE_PARTITIONS
    tracemalloc.stop()
    data.close()
    started = time.perf_counter()
    data = _open_directory(path)
    opened_s = time.perf_counter() - started
    started = time.perf_counter()
    for number in range(1000):
        data.get(TopicPartition("idle", number))
    touched_s = (time.perf_counter() - started) / 1000
    data.close()
    return [
        Figure("create a partition's directory", created_s / IDLE_PARTITIONS * 1e6, "us"),
        Figure("start per idle partition", opened_s / IDLE_PARTITIONS * 1e6, "us"),
        Figure("open a log on first touch", touched_s * 1e6, "us"),
        Figure("memory per idle partition, engine alone", bytes_each, "bytes"),
    ]


def _open_directory(path: str) -> LogDirectory:
    return LogDirectory.open(
        path,
        disk=LocalDisk(),
        clock=_WallClock(),
        node_id=NodeId(1),
        cluster_id="bench",
        new_uuid=lambda: UUID(int=2),
    )
