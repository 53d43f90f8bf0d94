"""What every case has: a name, words for it, the seconds that a sample is expected to take, and three steps.

A case prepares each target, is measured on them in turn as often as asked, and then takes its data away
again. What cannot be measured on a target (no process, no files) is left out of its metrics, never guessed.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

from benchmarks.compare import topics
from benchmarks.compare.brokers import Flavour, Target
from benchmarks.compare.driver import Driver
from benchmarks.compare.failing import CompareError

Metrics = dict[str, float]
GONE_S = 3.0


class NotMeasurableError(CompareError):
    """This case needs what the target does not have; the message says what."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a case works with. `scale` shrinks the amounts for a quick look."""

    driver: Driver
    directory: Path
    scale: float = 1.0

    def amount(self, full: int) -> int:
        return max(1, int(full * self.scale))


class Case(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def words(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def limit(self) -> str | None: ...
    def prepare(self, target: Target, tools: Tools) -> None: ...
    def measure(self, target: Target, tools: Tools) -> Metrics: ...
    def clean_up(self, target: Target, tools: Tools) -> None: ...


_numbers = count(1)


def fresh(prefix: str) -> str:
    """A name for a topic or group that nothing in this or an earlier run has had."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


@contextmanager
def topic(
    target: Target, prefix: str, partitions: int, configs: dict[str, str] | None = None
) -> Iterator[str]:
    """A topic that is gone afterwards, its files as well."""
    name = fresh(prefix)
    topics.create(target.address, name, partitions, configs)
    try:
        yield name
    finally:
        drop(target, name)


def drop(target: Target, name: str) -> None:
    """The next sample must not pay for the removal of this one's files."""
    topics.delete(target.address, name)
    deadline_s = time.monotonic() + GONE_S
    while files_of(target, name) and time.monotonic() < deadline_s:
        time.sleep(0.02)


def files_of(target: Target, name: str) -> list[Path]:
    """The directories of its partitions, also of those that are about to be deleted."""
    if target.directory is None:
        return []
    return [path for path in logs_of(target).iterdir() if path.name.startswith(f"{name}-")]


@contextmanager
def cpu_of(target: Target) -> Iterator[list[float]]:
    """The list holds the broker's processor time afterwards, or stays empty where it cannot be seen."""
    spent: list[float] = []
    before = target.cpu_s
    yield spent
    after = target.cpu_s
    if before is not None and after is not None:
        spent.append(after - before)


def per(spent: list[float], amount: float, name: str, factor: float = 1.0) -> Metrics:
    return {name: spent[0] / amount * factor} if spent else {}


def memory(target: Target) -> Metrics:
    rss_mb = target.rss_mb
    return {} if rss_mb is None else {"rss_mb": rss_mb}


def flavour_of(target: Target) -> Flavour:
    if target.flavour is None:
        raise NotMeasurableError("needs a broker that the harness starts itself")
    return target.flavour


def logs_of(target: Target) -> Path:
    if target.directory is None:
        raise NotMeasurableError("needs the broker's files")
    inner = target.directory / "logs"
    return inner if inner.is_dir() else target.directory


class Plain:
    """The steps that most cases do not need."""

    __slots__ = ()

    def prepare(self, target: Target, tools: Tools) -> None:
        return

    def clean_up(self, target: Target, tools: Tools) -> None:
        return
