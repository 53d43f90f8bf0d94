"""Rows a second through one Spark core, with what measures reading and writing have in common."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

ROUNDS = 3
_CONNECTOR = Path(__file__).parent.parent / "scripts" / "spark-connector"


def best(work: Callable[[], None], rows: int, before: Callable[[], None] = lambda: None) -> float:
    """Of a few rounds, after one that starts the workers and compiles. `before` each does not count."""
    rates = []
    for _ in range(ROUNDS + 1):
        before()
        started = time.perf_counter()
        work()
        rates.append(rows / (time.perf_counter() - started))
    return max(rates[1:])


@contextmanager
def session(jars: str | None) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[1]")
        .appName("riverlog-bench")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
    )
    if jars is not None:
        builder = builder.config("spark.jars", jars)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def connector_jars() -> str | None:
    """Of Spark's own connector; None where they cannot be had, which the script says on stderr."""
    found = subprocess.run([str(_CONNECTOR)], stdout=subprocess.PIPE, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None
