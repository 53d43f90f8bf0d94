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
    """Every connection produces to two partitions of its own; memory after the first round and the last."""
    load.allow_descriptors(CONNECTIONS + 500)
    frames = load.Frames("wide")
    requests = [frames.produce(records=1, value_bytes=100, partition=number) for number in range(PARTITIONS)]
    with (
        tempfile.TemporaryDirectory() as directory,
        riverlog(Path(directory)) as broker,
        ExitStack() as stack,
    ):
        first = stack.enter_context(load.connect(broker.address))
        load.call(first, frames.create(partitions=PARTITIONS))
        connections = list(_connections(broker.address, stack))
        _produce_to_all(connections, requests)
        after_first = broker.rss_mb
        for _ in range(20):
            _produce_to_all(connections, requests)
        after_last = broker.rss_mb
        return [
            Figure(
                f"resident memory, {CONNECTIONS:,} connections, {PARTITIONS:,} partitions", after_first, "MB"
            ),
            Figure("growth of it over 40,000 more requests", after_last - after_first, "MB"),
            Figure("open descriptors then", broker.descriptors, ""),
        ]


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
