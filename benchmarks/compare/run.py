"""The run itself: targets up, warm, measured case by case in turns, and down again.

A, B, C, B, C, A: within a case every target is measured once before any is measured again, each time another
one first, so that what else the machine does falls on all of them alike. A sample that fails is kept as a
failure and the run goes on.
"""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from benchmarks import load
from benchmarks.compare import growth, limits
from benchmarks.compare.brokers import Flavour, Kafka, Target, launch
from benchmarks.compare.case import Case, Tools
from benchmarks.compare.failing import CompareError
from benchmarks.compare.lifecycle import first_ack
from benchmarks.compare.plan import WARM_UP
from benchmarks.compare.replicated.clusters import ApacheKafka, Cluster, Supervised, WithZooKeeper
from benchmarks.compare.replicated.watching import wait_until_ready
from benchmarks.compare.results import Failure, Result, Sample

DESCRIPTORS = 20_000
# What a broker or a client may do to a measurement; a mistake of the harness is none of these.
EXPECTED = (CompareError, OSError, RuntimeError, subprocess.SubprocessError)


class Progress(Protocol):
    """Who is told how far the run is."""

    def step(self, words: str) -> None: ...
    def took(self, seconds: float) -> None: ...
    def note(self, words: str) -> None: ...


@contextmanager
def running(flavours: Sequence[Flavour], given: Sequence[Target], tools: Tools) -> Iterator[list[Target]]:
    """All of them at once, each in a directory of its own; an idle one costs next to nothing."""
    load.allow_descriptors(DESCRIPTORS)
    targets: list[Target] = []
    try:
        targets.extend(launch(flavour, tools.directory / flavour.name) for flavour in flavours)
        for target in targets:
            first_ack(target)
        yield [*targets, *given]
    finally:
        for target in targets:
            target.stop()


@contextmanager
def running_clusters(kafka: Kafka | None, tools: Tools) -> Iterator[list[Target]]:
    """All of them at once. Every one has three brokers, which make nothing but heartbeats while they wait."""
    clusters: list[Cluster] = []
    try:
        for cluster in _clusters(kafka, tools):
            clusters.append(cluster)
            cluster.launch()
        for cluster in clusters:
            wait_until_ready(cluster)
        yield [*clusters]
    finally:
        for cluster in clusters:
            cluster.stop()


def _clusters(kafka: Kafka | None, tools: Tools) -> Iterator[Cluster]:
    yield WithZooKeeper(tools.directory / "replicated")
    yield Supervised(tools.directory / "replicated-shared")
    if kafka is not None:
        yield ApacheKafka(tools.directory / "replicated-kafka", kafka)


def warm_up(
    targets: Sequence[Target], tools: Tools, progress: Progress, cases: Sequence[Case] = WARM_UP
) -> None:
    """A JVM compiles what it runs often; what is measured is a broker that has been up for a while."""
    for case in cases:
        for target in targets:
            progress.step(f"warming up {target.name}: {case.words}")
            try:
                case.prepare(target, tools)
                case.measure(target, tools)
                case.clean_up(target, tools)
            except EXPECTED as error:
                progress.note(f"warming up {target.name}: {error}")


def measure_case(
    case: Case, targets: Sequence[Target], tools: Tools, result: Result, progress: Progress
) -> None:
    result.cases[case.name] = case.words
    progress.step(case.words)
    ready = [target for target in targets if _prepare(case, target, tools, result, progress)]
    for repeat in range(result.repeats if ready else 0):
        first = repeat % len(ready)
        for target in (*ready[first:], *ready[:first]):
            progress.step(f"{case.words}: {target.name}, {repeat + 1} of {result.repeats}")
            started_s = time.perf_counter()
            _measure(case, target, repeat, tools, result, progress)
            progress.took(time.perf_counter() - started_s)
    for target in ready:
        try:
            case.clean_up(target, tools)
        except EXPECTED as error:
            progress.note(f"{case.name} on {target.name}: {error}")


def _prepare(case: Case, target: Target, tools: Tools, result: Result, progress: Progress) -> bool:
    try:
        case.prepare(target, tools)
    except EXPECTED as error:
        _fail(case.name, target.name, error, result, progress)
        return False
    return True


def _measure(
    case: Case, target: Target, repeat: int, tools: Tools, result: Result, progress: Progress
) -> None:
    try:
        metrics = case.measure(target, tools)
    except EXPECTED as error:
        _fail(case.name, target.name, error, result, progress)
    else:
        result.samples.append(Sample(case.name, target.name, repeat, metrics, os.getloadavg()[0]))


def measure_growth(
    flavours: Sequence[Flavour],
    steps: list[growth.LogLength],
    tools: Tools,
    result: Result,
    progress: Progress,
) -> None:
    """After everything else, with no other broker running."""
    for step in steps:
        result.cases[step.name] = step.words
    for flavour in flavours:
        progress.step(f"a log that grows: {flavour.name}")
        started_s = time.perf_counter()
        try:
            for step, metrics in growth.grow(flavour, tools, steps):
                result.samples.append(Sample(step.name, flavour.name, 0, metrics, os.getloadavg()[0]))
                progress.step(f"a log that grows: {flavour.name}, {step.gigabytes} GB measured")
        except EXPECTED as error:
            _fail("log", flavour.name, error, result, progress)
        progress.took(time.perf_counter() - started_s)


def measure_limits(tools: Tools, result: Result, progress: Progress) -> None:
    progress.step("what the machine can do")
    result.limits = limits.measure(tools.driver, tools.directory, result.repeats)


def _fail(case: str, target: str, error: BaseException, result: Result, progress: Progress) -> None:
    result.failures.append(Failure(case, target, f"{type(error).__name__}: {error}"))
    progress.note(f"{case} on {target}: {error}")
