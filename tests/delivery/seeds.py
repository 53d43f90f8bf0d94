"""Seeds of random runs: a fixed one in the test-suite, others in `make soak`, and how to replay any."""

import os
import random
import subprocess
from dataclasses import dataclass

import pytest

_VARIABLE = "DELIVERY_SEED"
_DEFAULT = 20_26


@dataclass(frozen=True, slots=True)
class Seeded:
    """The dice of one test."""

    seed: int
    dice: random.Random
    replay: str


def seeded(request: pytest.FixtureRequest) -> Seeded:
    seed = int(os.environ.get(_VARIABLE, _DEFAULT))
    name = request.node.nodeid
    return Seeded(seed, random.Random(f"{seed}:{name}"), f"{_VARIABLE}={seed} .venv/bin/pytest -n0 '{name}'")


def commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"
