"""Compaction: what the broker's own cleaner gets through for each second of processor time.

The topic is filled while nothing may clean it, then made compacted; the cleaner's own checkpoint says when it
is through. Each key stands in it six times.
"""

import random
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.compare import topics
from benchmarks.compare.brokers import Target
from benchmarks.compare.case import Metrics, Plain, Tools, cpu_of, logs_of, topic
from riverlog.records.compression import Codec

KEYS = 16_384
TIMES = 6
VALUE_BYTES = 1_000
RECORDS = 256
SEGMENT_BYTES = 8_000_000
WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Compaction(Plain):
    name: str = "compaction"
    words: str = "cleaning a log of 1 KB records, each key six times, in no order"
    seconds: float = 4.0
    limit: str | None = "memcpy_mb_s"

    def measure(self, target: Target, tools: Tools) -> Metrics:
        directory = logs_of(target)
        configs = {
            "segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": "0.01",
            "cleanup.policy": "delete",
        }
        with topic(target, "cleaned", 1, configs) as name:
            end = self._fill(target, tools, name)
            log = directory / f"{name}-0"
            closed = sorted(log.glob("*.log"))[:-1]
            dirty_bytes = sum(path.stat().st_size for path in closed)
            active = int(sorted(log.glob("*.log"))[-1].stem)
            assert closed
            assert active <= end
            with cpu_of(target) as spent:
                topics.alter(target.address, name, {"cleanup.policy": "compact"})
                _wait_until_clean(log.parent / "cleaner-offset-checkpoint", name, active)
        return {"mb_per_cpu_s": dirty_bytes / 1e6 / spent[0]}

    def _fill(self, target: Target, tools: Tools, name: str) -> int:
        batches = _batches(max(2, tools.amount(KEYS) // RECORDS))
        with topics.client(target.address) as connection:
            for batch in batches:
                topics.send_until_taken(connection, topics.produce_frame(name, [0], batch))
        return len(batches) * RECORDS


@cache
def _batches(rounds: int) -> list[bytes]:
    """In no order, so that of most batches some records stay and others go."""
    keys = [b"key-%d" % number for number in range(rounds * RECORDS)] * TIMES
    random.Random(1).shuffle(keys)
    return [
        topics.batch(RECORDS, VALUE_BYTES, Codec.NONE, keys=keys[start : start + RECORDS])
        for start in range(0, len(keys), RECORDS)
    ]


def _wait_until_clean(checkpoint: Path, name: str, offset: int) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while time.monotonic() < deadline_s:
        if cleaned_to(checkpoint, name) >= offset:
            return
        time.sleep(0.02)
    raise TimeoutError(f"{name} was not cleaned in {WAIT_S:g} s")


def cleaned_to(checkpoint: Path, name: str) -> int:
    """The file has a version, a count, and a line `topic partition offset` for each log."""
    if not checkpoint.exists():
        return -1
    for line in checkpoint.read_text().splitlines()[2:]:
        topic_name, _, rest = line.partition(" ")
        if topic_name == name:
            return int(rest.split()[1])
    return -1
