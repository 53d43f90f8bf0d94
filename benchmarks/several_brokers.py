"""Several brokers on one host: how soon they are ready, what they cost idle, and what 1,000 connections get.

One broker and two take turns in one run, so that both see the same machine. Connections are shared out over
the brokers, each to the leader of its partition; the load comes from one C program for each broker, whose
processor time is shown as well, because a machine with two cores has to share them with it.
"""

import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import psutil

from benchmarks import load
from benchmarks.compare.driver import Driver, build
from benchmarks.figures import Aim, Figure
from benchmarks.servers import ENVIRONMENT, cpu_s
from riverlog.testing import Cluster
from riverlog.testing.cluster_records import ClusterRecords

CONNECTIONS: Final = 1_000
ROUNDS: Final = 5
REQUESTS_S: Final = 2.0
IDLE_S: Final = 20.0
PARTITIONS: Final = 1_000
STOP_S: Final = 60.0


class Load(NamedTuple):
    requests_s: float
    broker_cpu_us: float
    driver_cpu_us: float


def run() -> list[Figure]:
    load.allow_descriptors(4 * CONNECTIONS)
    return [_in_process(), _with_zookeeper(), *_idle(), *_requests()]


def _in_process() -> Figure:
    """In a process that has loaded the modules already, as that of a test mostly has."""
    times = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        with Cluster(brokers=3):
            times.append(time.perf_counter() - started)
    return Figure("testing.Cluster(3) ready", median(times[1:]), "s", aim=Aim(0.5))


def _with_zookeeper() -> Figure:
    """From nothing: the ZooKeeper server is started as well."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        with Cluster(brokers=3, processes=True, zookeeper=True):
            times.append(time.perf_counter() - started)
    return Figure("three processes and one ZooKeeper server ready", median(times), "s", aim=Aim(4.0))


def _idle() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory, _Served(Path(directory), 3) as served:
        records = ClusterRecords(",".join(served.addresses), 60)
        records.create_topic("idle", PARTITIONS, {})
        before, started = served.cpu_s, time.perf_counter()
        time.sleep(IDLE_S)
        idle = (served.cpu_s - before) / (time.perf_counter() - started) / 3
        return [
            Figure("serve --brokers 3 ready", served.ready_after_s, "s", aim=Aim(1.5)),
            Figure("idle broker of 3, 1,000 partitions, CPU", 100 * idle, "% of a core", aim=Aim(1.0)),
            Figure("idle broker of 3, 1,000 partitions, memory", served.rss_mb / 3, "MB", aim=Aim(60.0)),
        ]


def _requests() -> list[Figure]:
    driver = build()
    with (
        tempfile.TemporaryDirectory() as directory,
        _Served(Path(directory) / "one", 1) as one,
        _Served(Path(directory) / "two", 2) as two,
    ):
        frames = {served: _frames(served, Path(directory)) for served in (one, two)}
        rounds = [
            (_measure(driver, one, frames[one]), _measure(driver, two, frames[two])) for _ in range(ROUNDS)
        ]
    rates = median(first.requests_s for first, _ in rounds), median(second.requests_s for _, second in rounds)
    costs = median(first.broker_cpu_us for first, _ in rounds), median(two.broker_cpu_us for _, two in rounds)
    loads = [median(each[index].driver_cpu_us for each in rounds) for index in (0, 1)]
    return [
        Figure(
            "small requests, 1,000 connections, 2 brokers",
            rates[1],
            "per s",
            rates[0],
            "one process",
            Aim(at_least=1.3, of="ratio"),
        ),
        Figure(
            "broker CPU of each, 2 brokers", costs[1], "us", costs[0], "one process", Aim(1.1, of="ratio")
        ),
        Figure("load generator's CPU of each, 2 brokers", loads[1], "us", loads[0], "one process"),
    ]


class _Served:
    """`riverlog serve --brokers N`, with the processor time and memory of its brokers."""

    def __init__(self, directory: Path, brokers: int) -> None:
        self._command = [str(Path(sys.executable).with_name("riverlog")), "serve", "--brokers", str(brokers)]
        self._command += ["--data-dir", str(directory), "--listen", "127.0.0.1:0", "--log-level", "warning"]

    def __enter__(self) -> "_Served":
        started = time.perf_counter()
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        self.ready_after_s = time.perf_counter() - started
        self.addresses = line.rpartition(" ")[2].split(",")
        self._brokers = psutil.Process(self._process.pid).children()
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.wait(STOP_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def cpu_s(self) -> float:
        return sum(cpu_s(each.pid) for each in self._brokers)

    @property
    def rss_mb(self) -> float:
        return sum(float(each.memory_info().rss) for each in self._brokers) / 1e6


def _frames(served: _Served, directory: Path) -> dict[str, Path]:
    """By address, a request for a partition that its broker leads."""
    records = ClusterRecords(",".join(served.addresses), 60)
    count = len(served.addresses)
    records.create_topic("small", count, {})
    found: dict[str, Path] = {}
    for partition, leader in records.leaders("small").items():
        assert leader is not None
        address = served.addresses[leader - 1]
        found[address] = directory / f"frame-{count}-{leader}"
        found[address].write_bytes(
            load.Frames("small").produce(records=1, value_bytes=100, partition=partition)
        )
    assert len(found) == count
    return found


def _measure(driver: Driver, served: _Served, frames: dict[str, Path]) -> Load:
    before, driven = served.cpu_s, _children_cpu_s()
    with ThreadPoolExecutor(len(frames)) as drivers:
        done = list(
            drivers.map(
                lambda address: driver.run(
                    "requests",
                    {},
                    brokers=address,
                    frame=frames[address],
                    connections=CONNECTIONS // len(frames),
                    seconds=REQUESTS_S,
                ),
                frames,
            )
        )
    requests = sum(each["requests"] for each in done) + CONNECTIONS
    rate = sum(each["requests"] / each["seconds"] for each in done)
    spent = served.cpu_s - before
    return Load(rate, 1e6 * spent / requests, 1e6 * (_children_cpu_s() - driven) / requests)


def _children_cpu_s() -> float:
    """Of the drivers that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
