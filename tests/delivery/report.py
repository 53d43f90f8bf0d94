"""What a run did, for people: printed, and kept for `make soak`, which makes a page of it."""

import json
import os
from pathlib import Path

from tests.delivery.seeds import Seeded

_VARIABLE = "DELIVERY_REPORT"


def report(cell: str, chance: Seeded, **facts: object) -> None:
    """One cell of the matrix that held. Never called by a run that failed."""
    print(f"{cell} (seed {chance.seed}):")  # noqa: T201 - shown by pytest -s and on failure
    for name, fact in facts.items():
        rows = [f"{key}: {value}" for key, value in fact.items()] if isinstance(fact, dict) else [str(fact)]
        print(f"  {name}: " + "; ".join(rows))  # noqa: T201
    if path := os.environ.get(_VARIABLE):
        entry = {"cell": cell, "seed": chance.seed, "replay": chance.replay, "facts": facts}
        with Path(path).open("a") as file:
            file.write(json.dumps(entry) + "\n")
