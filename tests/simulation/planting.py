"""Bugs that are planted in a copy of the broker, so that the simulator shows that it finds them.

`planted/*.patch` are the bugs, `planted/table.tsv` says of each in which seed of which profile which
invariant finds it, or which of two ("I14/I15") where a bug may break either of them first. Beside a bug that
few seeds come across there is a case (`planted/*.json`) with little but what leads to it, again and again, so
that it finds the bug with most seeds.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[2]
_PLANTED = Path(__file__).parent / "planted"
_RUN_S = 300


class PlantedBug(NamedTuple):
    name: str
    profile: str
    seed: int
    invariants: tuple[str, ...]

    @property
    def patch(self) -> Path:
        return _PLANTED / f"{self.name}.patch"

    def is_found(self, said: str) -> bool:
        """By what `riverlog-sim` says."""
        return any(f"BROKEN {invariant}: " in said for invariant in self.invariants)

    @property
    def case(self) -> Path | None:
        """None where enough seeds find it."""
        path = _PLANTED / f"{self.name}.json"
        return path if path.exists() else None


def planted_bugs() -> list[PlantedBug]:
    _, *lines = (_PLANTED / "table.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return [
        PlantedBug(name, profile, int(seed), tuple(invariants.split("/")))
        for name, profile, seed, invariants in rows
    ]


def patches() -> set[str]:
    return {path.stem for path in _PLANTED.glob("*.patch")}


def why_it_does_not_apply(bug: PlantedBug) -> str | None:
    done = subprocess.run(
        ["git", "apply", "--check", str(bug.patch)], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    return done.stderr.strip() if done.returncode else None


def plant(bug: PlantedBug, directory: Path) -> Path:
    """A copy of the sources with the bug in it."""
    sources = directory / "src"
    shutil.copytree(_ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    subprocess.run(["git", "apply", str(bug.patch)], cwd=directory, check=True)
    return sources


def simulate(sources: Path, profile: str, seeds: str) -> str:
    """What `riverlog-sim` says of these seeds with these sources, up to the first that fails."""
    return _run(sources, ["--seeds", seeds, "--quick", "--profile", profile, "--first"])


def simulate_case(sources: Path, case: Path, chances: int) -> str:
    """The same of a case with so many seeds."""
    return _run(sources, ["--case", str(case), "--chances", str(chances)])


def _run(sources: Path, arguments: list[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "riverlog.testing.simulation", "run", *arguments]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=_RUN_S
    )
    return done.stdout + done.stderr
