"""What a run did, for people: told at the end of the tests, and kept for the page that `make soak` writes."""

import json
import os
from pathlib import Path

from tests.conftest import PROPERTY
from tests.delivery.seeds import Seeded

_VARIABLE = "DELIVERY_REPORT"


def report(cell: str, chance: Seeded, **facts: object) -> None:
    """One cell of the matrix that held. Never called by a run that failed."""
    shown = "; ".join(f"{name} {_shown(fact)}" for name, fact in facts.items())
    chance.properties.append((PROPERTY, f"{cell} (seed {chance.seed}): {shown}"))
    if path := os.environ.get(_VARIABLE):
        entry = {"cell": cell, "seed": chance.seed, "facts": facts}
        with Path(path).open("a") as file:
            file.write(json.dumps(entry) + "\n")


def _shown(fact: object) -> str:
    if isinstance(fact, dict):
        return ", ".join(f"{name}: {count}" for name, count in fact.items())
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact)
