"""Committed offsets: what a commit costs, and how soon a million of them are there after a kill -9."""

import signal
import socket
import tempfile
import time
from pathlib import Path

from benchmarks import load
from benchmarks.asking import ask
from benchmarks.figures import Aim, Figure
from benchmarks.servers import Server, riverlog
from riverlog.model.errors import ErrorCode
from riverlog.wire.apis import ApiKey
from riverlog.wire.messages.find_coordinator import FindCoordinatorRequest
from riverlog.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from riverlog.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic

GROUPS = 1_000
PARTITIONS = 1_000
SMALL_COMMITS = 5_000


def run() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        with riverlog(Path(directory)) as broker:
            with load.connect(broker.address) as client:
                load.call(client, load.Frames("read").create(PARTITIONS))
                ask(client, ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
                small = _small_commits(broker, client)
                for number in range(GROUPS):
                    _commit(client, f"group-{number}", range(PARTITIONS))
            broker.stop(signal.SIGKILL)
        with riverlog(Path(directory)) as broker:
            reload = _reload(broker)
    return [small, reload]


def _small_commits(broker: Server, client: socket.socket) -> Figure:
    before = broker.cpu_s
    for _ in range(SMALL_COMMITS):
        _commit(client, "one", range(1))
    micros = (broker.cpu_s - before) / SMALL_COMMITS * 1e6
    return Figure("broker CPU per commit of one offset", micros, "us")


def _reload(broker: Server) -> Figure:
    """From the moment the broker takes requests until it knows the offsets of every group."""
    started = time.perf_counter()
    with load.connect(broker.address) as client:
        for number in range(GROUPS):
            while not _is_known(client, f"group-{number}"):
                time.sleep(0.01)
    elapsed = time.perf_counter() - started
    return Figure(f"{GROUPS * PARTITIONS:,} committed offsets reloaded", elapsed, "s", aim=Aim(5.0))


def _is_known(client: socket.socket, group: str) -> bool:
    topics = [OffsetFetchRequestTopic(name="read", partition_indexes=[PARTITIONS - 1])]
    reply = ask(client, ApiKey.OFFSET_FETCH, 7, OffsetFetchRequest(group_id=group, topics=topics))
    if reply.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return False
    assert reply.topics[0].partitions[0].committed_offset == PARTITIONS - 1
    return True


def _commit(client: socket.socket, group: str, partitions: range) -> None:
    wanted = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index) for index in partitions
    ]
    topics = [OffsetCommitRequestTopic(name="read", partitions=wanted)]
    reply = ask(client, ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest(group_id=group, topics=topics))
    assert reply.topics[0].partitions[-1].error_code == ErrorCode.NONE
