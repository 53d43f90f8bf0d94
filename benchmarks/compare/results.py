"""The result of a run: every sample as it was taken, and what it was taken on. Kept as JSON.

Nothing is summarised before it is kept: medians and ratios are made from the samples when they are shown, so
that an old result can be looked at in a new way.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import confluent_kafka
import psutil

from benchmarks.compare.failing import CompareError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Sample:
    case: str
    target: str
    repeat: int
    metrics: dict[str, float]
    load: float  # The machine's load average then: what else was running.


@dataclass(frozen=True, slots=True)
class Failure:
    case: str
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the extremes of what it was made of."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        return cls(median(values), min(values), max(values), len(values))

    @property
    def share(self) -> float:
        """Half the way from the lowest to the highest, as a share of the median."""
        return (self.high - self.low) / 2 / self.median if self.median else 0.0


@dataclass(slots=True)
class Result:
    started: str
    command: str
    commit: str
    repeats: int
    scale: float
    machine: dict[str, Any]
    versions: dict[str, str]
    settings: dict[str, str]
    targets: dict[str, str]  # What each name stands for.
    cases: dict[str, str] = field(default_factory=dict)  # Their words.
    limits: dict[str, list[float]] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    def values(self, case: str, target: str, metric: str) -> list[float]:
        return [
            sample.metrics[metric]
            for sample in self.samples
            if sample.case == case and sample.target == target and metric in sample.metrics
        ]

    def spread(self, case: str, target: str, metric: str) -> Spread | None:
        values = self.values(case, target, metric)
        return Spread.of(values) if values else None

    def ratio(self, case: str, metric: str, target: str, to: str) -> float | None:
        """Of the medians."""
        ours, theirs = self.spread(case, target, metric), self.spread(case, to, metric)
        if ours is None or theirs is None or not theirs.median:
            return None
        return ours.median / theirs.median

    def limit(self, name: str | None) -> float | None:
        return median(self.limits[name]) if name is not None and self.limits.get(name) else None

    def metrics_of(self, case: str) -> list[str]:
        found: dict[str, None] = {}
        for sample in self.samples:
            if sample.case == case:
                found.update(dict.fromkeys(sample.metrics))
        return list(found)


def save(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    staging = path.with_suffix(".part")
    staging.write_text(json.dumps({"format": FORMAT, **asdict(result)}, indent=1) + "\n")
    staging.replace(path)


class UnknownResultError(CompareError):
    """The file is not a result of this harness, or of a later one."""


def read(path: Path) -> Result:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UnknownResultError(f"{path} cannot be read as a result: {error}") from error
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise UnknownResultError(f"{path} is not a result of format {FORMAT}")
    document["samples"] = [Sample(**each) for each in document["samples"]]
    document["failures"] = [Failure(**each) for each in document["failures"]]
    return Result(**document)


def machine(directory: Path) -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
        "filesystem": _filesystem(directory),
        "free_gb": round(shutil.disk_usage(directory).free / 1e9),
        "load_at_start": os.getloadavg()[0],
    }


def versions(kafka: str | None) -> dict[str, str]:
    found = {
        "riverlog": version("riverlog"),
        "python": sys.version.split()[0],
        "uvloop": version("uvloop"),
        "librdkafka": confluent_kafka.libversion()[0],
        "confluent-kafka": version("confluent-kafka"),
    }
    if kafka is not None:
        found |= {"kafka": kafka, "java": _first_line(["java", "-version"])}
    return found


def commit() -> str:
    name = _first_line(["git", "rev-parse", "HEAD"])
    changed = _first_line(["git", "status", "--porcelain", "--untracked-files=no", "src"])
    return f"{name} with changes" if name and changed else name or "unknown"


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return ((done.stdout or done.stderr).strip().splitlines() or [""])[0]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _filesystem(directory: Path) -> str:
    mounts = [each for each in psutil.disk_partitions(all=True) if directory.is_relative_to(each.mountpoint)]
    return max(mounts, key=lambda each: len(each.mountpoint)).fstype if mounts else "unknown"
