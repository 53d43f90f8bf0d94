"""Checking a batch of 1 MB on the way in: as a whole, and record by record, beside its bare CRC-32C.

`python -m benchmarks validate` prints it; docs/adr/0004-validate-batches-whole.md has figures from it.
"""

import json
import time
from collections.abc import Callable

import crc32c

from benchmarks.figures import Figure
from riverlog.records.builder import build_batch
from riverlog.records.compression import Codec
from riverlog.records.validate import Accepted, BatchRules, validate

BATCH_BYTES = 1_000_000
NOW_MS = 1_800_000_000_000
MEASURED_SECONDS = 0.25


def run() -> list[Figure]:
    figures = []
    for record_bytes in (100, 1000):
        for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD, Codec.GZIP):
            figures += _figures(record_bytes, codec)
    return figures


def _figures(record_bytes: int, codec: Codec) -> list[Figure]:
    data = bytearray(_batch(record_bytes, codec))
    covered = memoryview(data)[21:]
    crc_us = _microseconds(lambda: crc32c.crc32c(covered))
    what = f"{codec.name.lower()}, records of {record_bytes} B ({len(data) // 1000} KB sent)"
    return [
        Figure(f"check {how}: {what}", _check_us(data, rules), "us", crc_us, "its CRC-32C")
        for how, rules in (
            ("whole batch", BatchRules(max_batch_bytes=2 * BATCH_BYTES)),
            ("each record", BatchRules(max_batch_bytes=2 * BATCH_BYTES, validate_records=True)),
        )
    ]


def _check_us(data: bytearray, rules: BatchRules) -> float:
    assert isinstance(validate(data, rules, NOW_MS), Accepted)
    return _microseconds(lambda: validate(data, rules, NOW_MS))


def _microseconds(work: Callable[[], object]) -> float:
    """The best of many runs: what the work costs when nothing disturbs it."""
    best = float("inf")
    end = time.perf_counter() + MEASURED_SECONDS
    while time.perf_counter() < end:
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best * 1e6


def _batch(record_bytes: int, codec: Codec) -> bytes:
    """1 MB of orders before compression."""
    records = [
        (NOW_MS, b"customer-%06d" % (i * 7919 % 10_007), _order(i, record_bytes - 15), ())
        for i in range(BATCH_BYTES // record_bytes)
    ]
    return build_batch(records, codec=codec)


def _order(number: int, size: int) -> bytes:
    line = {"order": number, "sku": number * 104_729 % 99_991, "cents": number * 31 % 12_345}
    return (json.dumps(line).encode() * (size // 40 + 1))[:size]
