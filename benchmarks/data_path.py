"""Processor time of produce, fetch and small requests beside bare loops that move the same bytes.

The broker and the bare loop take turns in one run, so that both see the same machine; the medians count.
"""

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks import load
from benchmarks.backed_memory import have_backed
from benchmarks.figures import Aim, Figure
from benchmarks.servers import Server, bare, riverlog

ROUNDS = 9
BATCH_BYTES = 1_000_000
PRODUCED_BATCHES = 400
FETCHED_BATCHES = 1000
SMALL_REQUESTS = 10_000


def run() -> list[Figure]:
    with (
        tempfile.TemporaryDirectory() as directory,
        riverlog(Path(directory), log_retention_bytes="2000000000") as broker,
    ):
        return [produce(broker, Path(directory)), fetch(broker), *small(broker)]


def produce(broker: Server, directory: Path) -> Figure:
    frames = load.Frames("bulk")
    frame = frames.produce(records=BATCH_BYTES // 1000, value_bytes=985)
    gigabytes = PRODUCED_BATCHES * len(frame) / 1e9
    with (
        bare("receive") as loop,
        load.connect(loop.address) as bare_client,
        load.connect(broker.address) as client,
    ):
        load.call(client, frames.create())

        def one(server: Server, connection: socket.socket) -> float:
            have_backed(directory, 3 * PRODUCED_BATCHES * len(frame) // 2)
            return (
                _cpu_s(server, lambda: load.exchange(connection, frame, PRODUCED_BATCHES, window=4))
                / gigabytes
            )

        rounds = [(one(broker, client), one(loop, bare_client)) for _ in range(ROUNDS)]
    return Figure(
        "broker CPU per GB produced, 1 MB batches",
        median(ours for ours, _ in rounds),
        "CPU-s/GB",
        median(theirs for _, theirs in rounds),
        "recv, CRC, write",
        Aim(1.3, of="ratio"),
    )


def fetch(broker: Server) -> Figure:
    frames = load.Frames("fetched")
    frame = frames.fetch(max_bytes=BATCH_BYTES + 100_000)
    with load.connect(broker.address) as client:
        load.call(client, frames.create())
        load.call(client, frames.produce(records=BATCH_BYTES // 1000, value_bytes=985))
        reply_bytes = len(load.call(client, frame))
        gigabytes = FETCHED_BATCHES * reply_bytes / 1e9
        with bare("send", str(reply_bytes)) as loop, load.connect(loop.address) as bare_client:

            def one(server: Server, connection: socket.socket) -> float:
                return _cpu_s(server, lambda: load.exchange(connection, frame, FETCHED_BATCHES)) / gigabytes

            rounds = [(one(broker, client), one(loop, bare_client)) for _ in range(ROUNDS)]
    return Figure(
        "broker CPU per GB fetched, 1 MB replies",
        median(ours for ours, _ in rounds),
        "CPU-s/GB",
        median(theirs for _, theirs in rounds),
        "sendfile",
        Aim(1.3, of="ratio"),
    )


def small(broker: Server) -> list[Figure]:
    frames = load.Frames("small")
    frame = frames.produce(records=1, value_bytes=100)
    with (
        bare("echo") as loop,
        load.connect(loop.address) as bare_client,
        load.connect(broker.address) as client,
    ):
        load.call(client, frames.create())
        rounds = []
        for _ in range(ROUNDS):
            ours = _cpu_s(broker, lambda: load.exchange(client, frame, SMALL_REQUESTS))
            theirs = _cpu_s(loop, lambda: load.echo(bare_client, frame, SMALL_REQUESTS))
            rounds.append((ours / SMALL_REQUESTS * 1e6, theirs / SMALL_REQUESTS * 1e6))
    return [
        Figure(
            "broker CPU per one-record produce",
            median(ours for ours, _ in rounds),
            "us",
            median(theirs for _, theirs in rounds),
            "echo on uvloop",
            Aim(3.0, of="ratio"),
        )
    ]


def _cpu_s(server: Server, work: Callable[[], object]) -> float:
    before = server.cpu_s
    work()
    return server.cpu_s - before
