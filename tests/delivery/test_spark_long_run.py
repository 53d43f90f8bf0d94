"""Spark for a long time on a trickle of rows: nothing grows, and each row is written once.

`make soak` runs the long form, with the number of batches and the time in two variables; here it is short.
"""

import os
from pathlib import Path

import pytest

from tests.delivery.report import report
from tests.delivery.seeds import Seeded
from tests.delivery.server import Server
from tests.delivery.spark_long_run import LongRun

BATCHES = int(os.environ.get("DELIVERY_SPARK_BATCHES", "120"))
SECONDS = float(os.environ.get("DELIVERY_SPARK_SECONDS", "0"))
LONG = 1000
"""From so many batches on, times are compared too, and memory more strictly."""
MEMORY_FACTOR, MEMORY_MB = (1.05, 16.0) if BATCHES >= LONG else (1.25, 24.0)
"""What a figure may be larger by without having grown: collectors take their time, allocators keep pages.
What Spark remembers of past batches fills up in the first thousand; no leak is to hide behind it."""
IDS_MAX = 24
"""Two drivers' ids, and for each query those of the few processes that two cores run tasks in."""


@pytest.mark.timeout(600 + 3 * SECONDS + BATCHES * 10)
def test_nothing_grows_with_the_number_of_batches(tmp_path: Path, chance: Seeded) -> None:
    with Server(tmp_path / "broker") as server:
        run = LongRun(server, tmp_path, BATCHES, SECONDS)
        run.run()
        run.check_rows()
    grown = run.grown()
    figures = "; ".join(f"{name} {early:g} to {late:g}" for name, (early, late) in grown.items())
    for name, (early, late) in grown.items():
        if name.endswith("MB"):
            assert late <= early * MEMORY_FACTOR + MEMORY_MB, figures
    assert max(each.transactional_ids for each in run.samples) <= IDS_MAX, figures
    if BATCHES >= LONG:
        assert all(late <= 2 * early for name, (early, late) in grown.items() if "ms" in name), figures
    batches = {f"batches of {way}": len(times) for way, times in run.batch_ms.items()}
    report("Spark, long run", chance, batches=batches, rows=run.rows, missing=0, doubled=0, figures=figures)
