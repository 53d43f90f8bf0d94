"""Process start to ready, idle memory, and memory that stays flat under many connections and partitions."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks import load
from benchmarks.figures import Aim, Figure
from benchmarks.servers import bare, riverlog

STARTS = 5
CONNECTIONS = 1_000
PARTITIONS = 2_000
ROUNDS_OF_GROWTH = (20, 80, 140, 160)
"""A log remembers where its last 128 batches begin: up to there it grows, by 2 KB, and then no more."""


def run() -> list[Figure]:
    return [*start(), *hold()]


def start() -> list[Figure]:
    """A busy machine stretches a start; its processor time and the start of a bare loop show by how much."""
    ready, busy, idle, bare_ready = [], [], [], []
    for _ in range(1 + STARTS):  # The first one may have to compile.
        with tempfile.TemporaryDirectory() as directory, riverlog(Path(directory)) as broker:
            ready.append(broker.ready_after_s)
            busy.append(broker.cpu_s)
            idle.append(broker.rss_mb)
        with bare("echo") as loop:
            bare_ready.append(loop.ready_after_s)
            load.connect(loop.address).close()
    limit_s = median(bare_ready[1:])
    return [
        Figure("process start to ready", median(ready[1:]), "s", limit_s, "echo on uvloop", Aim(0.5)),
        Figure("processor time of it", median(busy[1:]), "s"),
        Figure("idle resident memory", median(idle), "MB", aim=Aim(70)),
    ]


def hold() -> list[Figure]:
    """Every connection produces to two partitions of its own; memory after the first round and later ones.

    Nothing is retained away: the records are old, and a pass over all logs would be measured as well.
    """
    load.allow_descriptors(CONNECTIONS + 500)
    frames = load.Frames("wide")
    requests = [frames.produce(records=1, value_bytes=100, partition=number) for number in range(PARTITIONS)]
    with (
        tempfile.TemporaryDirectory() as directory,
        riverlog(Path(directory), log_retention_ms="-1") as broker,
        ExitStack() as stack,
    ):
        first = stack.enter_context(load.connect(broker.address))
        load.call(first, frames.create(partitions=PARTITIONS))
        connections = list(_connections(broker.address, stack))
        _produce_to_all(connections, requests)
        after_first = broker.rss_mb
        name = f"resident memory, {CONNECTIONS:,} connections, {PARTITIONS:,} partitions"
        figures = [Figure(name, after_first, "MB")]
        done = 0
        for rounds in ROUNDS_OF_GROWTH:
            for _ in range(done, rounds):
                _produce_to_all(connections, requests)
            done = rounds
            growth = broker.rss_mb - after_first
            figures.append(Figure(f"growth of it after {rounds * PARTITIONS:,} more requests", growth, "MB"))
        return [*figures, Figure("open descriptors then", broker.descriptors, "")]


def _connections(address: load.Address, stack: ExitStack) -> Iterator[socket.socket]:
    for _ in range(CONNECTIONS):
        yield stack.enter_context(load.connect(address))


def _produce_to_all(connections: list[socket.socket], requests: list[bytes]) -> None:
    for start in range(0, len(requests), len(connections)):
        pairs = list(zip(connections, requests[start:], strict=False))
        for connection, request in pairs:
            connection.sendall(request)
        for connection, _ in pairs:
            load.read_reply(connection)
