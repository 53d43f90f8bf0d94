"""Reopening after kill -9 with a long log: only what lies after the recovery point is read again."""

import shutil
import signal
import tempfile
import time
from pathlib import Path

from benchmarks import load
from benchmarks.figures import Aim, Figure
from benchmarks.servers import Server, riverlog

LOG_BYTES = 10_000_000_000
FREE_BYTES_KEPT = 5_000_000_000


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        free = shutil.disk_usage(directory).free
        log_bytes = min(LOG_BYTES, free - FREE_BYTES_KEPT)
        return [_reopen(Path(directory), log_bytes)]


def _reopen(directory: Path, log_bytes: int) -> Figure:
    frames = load.Frames("long")
    frame = frames.produce(records=1000, value_bytes=985)
    with riverlog(directory) as broker:
        with load.connect(broker.address) as client:
            load.call(client, frames.create())
            load.exchange(client, frame, log_bytes // len(frame), window=4)
        broker.stop(signal.SIGKILL)
    started = time.perf_counter()
    with riverlog(directory) as broker:
        _first_fetch(broker, frames)
        elapsed = time.perf_counter() - started
    return Figure(
        f"kill -9 to first fetch, {log_bytes / 1e9:.0f} GB in one partition", elapsed, "s", aim=Aim(5.0)
    )


def _first_fetch(broker: Server, frames: load.Frames) -> None:
    with load.connect(broker.address) as client:
        load.call(client, frames.fetch(max_bytes=1_000_000))
