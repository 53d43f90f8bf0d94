"""Which cases there are, in the order in which they run, and how long all of it takes.

The issue's table is the baseline: four partitions, acks=1, no compression, three sizes. From there one thing
is changed at a time; the full product would take a day.
"""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from benchmarks.compare.case import Case
from benchmarks.compare.cleaning import Compaction
from benchmarks.compare.coordination import ConsumerJoin, GroupJoin, Transactions
from benchmarks.compare.growth import SECONDS_PER_GB
from benchmarks.compare.latency import EndToEnd, Paced, SmallRequests, Synchronous
from benchmarks.compare.lifecycle import Start
from benchmarks.compare.python_client import PythonConsume, PythonProduce
from benchmarks.compare.replicated.failing_brokers import Failover, KillAndRestart, RollingRestart
from benchmarks.compare.replicated.idling import ManyReplicas, ReplicatedIdle
from benchmarks.compare.replicated.loading import ReplicatedProduce, ReplicatedSynchronous
from benchmarks.compare.shared_requests import SharedRequests
from benchmarks.compare.throughput import SIZES, Consume, LoadedMemory, Produce

CODECS = ("lz4", "zstd")
CONNECTIONS = (1, 8, 64, 256, 1_000)
PARTITIONS = (1, 10, 100, 1_000)  # And the four of the baseline.
CLUSTER_WARM_UP: tuple[Case, ...] = (
    ReplicatedProduce("1KB"),
    ReplicatedProduce("100B"),
    ReplicatedSynchronous(),
)
WARM_UP: tuple[Case, ...] = (
    Produce("1KB"),
    Produce("100B"),
    Consume("1KB"),
    SmallRequests(8),
    Paced(10_000),
    Transactions(),
    ConsumerJoin(),
    *[Compaction()] * 3,  # A JVM's cleaner gets three times as fast over its first four passes.
)
FIXED_S = 120.0  # Starting, stopping, warming up, the machine's limits.
BETWEEN_S = 0.3  # Making and removing a topic.


def cases() -> Iterator[Case]:
    """Those that the aims are about come first: a run that is cut short has them."""
    yield Start()
    for size in SIZES:
        yield Produce(size)
        yield Produce(size, acks="all")
    for acks in ("1", "all"):
        yield Produce("100B", acks=acks, producers=2)
    for size in SIZES:
        yield Consume(size)
    yield from (Synchronous(), EndToEnd())
    for connections in CONNECTIONS:
        yield SmallRequests(connections)
    yield SharedRequests()
    yield from (Transactions(), GroupJoin(), ConsumerJoin(), Compaction(), LoadedMemory())
    yield from _one_thing_changed()


def _one_thing_changed() -> Iterator[Case]:
    yield from (Paced(1_000), Paced(10_000))
    yield Produce(acks="0")
    for partitions in PARTITIONS:
        yield Produce(partitions=partitions)
    for partitions in (1, 100):
        yield Consume(partitions=partitions)
    yield Consume(is_cold=True)
    for groups in (1, 10):
        yield Consume(groups=groups)
    for size in SIZES:
        for codec in CODECS:
            yield Produce(size, codec=codec)
            yield Consume(size, codec=codec)
    for size in ("100B", "1KB"):
        yield PythonProduce(size)
        yield PythonConsume(size)


def replicated_cases() -> Iterator[Case]:
    """Of clusters, which run when all single brokers have stopped. The ones that end brokers come last."""
    yield from (ReplicatedProduce(size) for size in SIZES)
    yield from (ReplicatedSynchronous(), ReplicatedIdle())
    yield from (Failover(), KillAndRestart(), RollingRestart(), ManyReplicas())


def chosen(patterns: Sequence[str], every: Iterable[Case] | None = None) -> list[Case]:
    """A pattern is a name, the beginning of one, or has `*` in it."""
    every = cases() if every is None else every
    return [case for case in every if not patterns or any(_fits(case.name, each) for each in patterns)]


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or name.startswith(f"{pattern}-")


def expected_s(
    some: Sequence[Case], targets: int, repeats: int, scale: float, growth_gb: int, growing: int
) -> float:
    each = sum(case.seconds * (scale if scale < 1 else 1.0) + BETWEEN_S for case in some)
    return FIXED_S + each * targets * repeats + growing * growth_gb * SECONDS_PER_GB
