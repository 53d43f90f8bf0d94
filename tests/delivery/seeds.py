"""Seeds of random runs: a fixed one in the test-suite, others in `make soak`, and how to replay any."""

import os
import random
from dataclasses import dataclass

import pytest

_VARIABLE = "DELIVERY_SEED"
_DEFAULT = 2026


@dataclass(frozen=True, slots=True)
class Seeded:
    """The dice of one test, and where its report goes."""

    seed: int
    dice: random.Random
    replay: str
    properties: list[tuple[str, object]]


def seeded(request: pytest.FixtureRequest) -> Seeded:
    seed = int(os.environ.get(_VARIABLE, _DEFAULT))
    name = request.node.nodeid
    return Seeded(
        seed,
        random.Random(f"{seed}:{name}"),
        f"{_VARIABLE}={seed} scripts/run-tests -n0 '{name}'",
        request.node.user_properties,
    )
