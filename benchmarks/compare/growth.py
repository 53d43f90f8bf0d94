"""What a longer log costs: one target at a time in a directory of its own, from 1 GB to 20 GB in one
partition.

At each length: the last stretch of appending, fetches of one batch (250 KB) at offsets all over the log,
memory, and the time that a clean restart takes. Only one target's data is on the disk at any time.
"""

import random
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.asking import ask
from benchmarks.compare import topics
from benchmarks.compare.brokers import Flavour, Target, launch
from benchmarks.compare.case import Metrics, Tools, cpu_of, memory, per
from benchmarks.compare.lifecycle import first_ack
from benchmarks.compare.throughput import fill
from riverlog.model.errors import ErrorCode
from riverlog.records.compression import Codec
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

LENGTHS_GB = (1, 5, 10, 20)
FREE_BYTES_KEPT = 5_000_000_000
RECORDS, VALUE_BYTES = 250, 985
FETCHES = 200
FETCHED_BYTES = 250_000  # One batch.
_FETCH = 11
SECONDS_PER_GB = 8.0  # Where the disk writes about 150 MB/s; appends go to the page cache until it is full.


@dataclass(frozen=True, slots=True)
class LogLength:
    """Not a case that targets take turns in: the data of two would not fit the disk."""

    gigabytes: int

    @property
    def name(self) -> str:
        return f"log-{self.gigabytes}GB"

    @property
    def words(self) -> str:
        return f"a log of {self.gigabytes} GB in one partition"


def lengths(most_gb: int) -> list[LogLength]:
    return [LogLength(each) for each in sorted({*LENGTHS_GB, most_gb}) if 0 < each <= most_gb]


def longest_gb(directory: Path, wanted_gb: int) -> int:
    """What of it the disk has room for."""
    room = shutil.disk_usage(directory).free - FREE_BYTES_KEPT
    return max(0, min(wanted_gb, int(room / 1e9)))


def grow(flavour: Flavour, tools: Tools, steps: list[LogLength]) -> Iterator[tuple[LogLength, Metrics]]:
    directory = tools.directory / f"long-{flavour.name}"
    target = launch(flavour, directory)
    try:
        first_ack(target)
        topics.create(target.address, "long", 1)
        written = 0
        for step in steps:
            batches = step.gigabytes * 4_000 - written
            metrics = fill(target, tools, "long", 1, topics.batch(RECORDS, VALUE_BYTES, Codec.NONE), batches)
            written += batches
            metrics |= _fetches(target, written * RECORDS) | memory(target)
            target.stop()
            started_s = time.perf_counter()
            target = launch(flavour, directory)
            first_ack(target)
            yield step, metrics | {"start_s": time.perf_counter() - started_s}
    finally:
        target.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _fetches(target: Target, end_offset: int) -> Metrics:
    """At offsets all over the log; what is not in the page cache any more comes from the disk."""
    chosen, times = random.Random(1), []
    with topics.client(target.address) as connection, cpu_of(target) as spent:
        for _ in range(FETCHES):
            offset = chosen.randrange(end_offset)
            started_s = time.perf_counter()
            _fetch(connection, offset)
            times.append(time.perf_counter() - started_s)
    times.sort()
    metrics = {"p50_ms": median(times) * 1e3, "p99_ms": times[int(len(times) * 0.99)] * 1e3}
    return metrics | per(spent, FETCHES, "broker_cpu_us", 1e6)


def _fetch(connection: Any, offset: int) -> None:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCHED_BYTES)
    wanted = FetchTopic(topic="long", partitions=[partition])
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCHED_BYTES, topics=[wanted])
    reply = ask(connection, ApiKey.FETCH, _FETCH, request)
    [answer] = reply.responses[0].partitions
    if answer.error_code != ErrorCode.NONE or not answer.records:
        raise topics.BrokerRefusedError(f"a fetch at offset {offset:,} brought nothing ({answer.error_code})")
