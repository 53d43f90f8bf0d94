"""`python -m benchmarks [NAME ...]`: run the benchmarks, show a table, keep the figures as JSON."""

import argparse
from collections.abc import Callable
from importlib import import_module

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.figures import Figure, save, show

CASES = {
    "wire": "decode and encode cost per request",
    "validate": "checking a batch on the way in",
    "storage": "the log engine alone",
    "compaction": "cleaner throughput",
    "start_and_memory": "start, idle memory, many connections",
    "data_path": "produce, fetch and small requests",
    "several_brokers": "one cluster on one host: ready, idle, small requests from 1,000 connections",
    "failed_disk": "a directory of a leader that fails, ZooKeeper: until another leads",
    "many_partitions": "100,000 idle partitions",
    "questions": "100,000 partitions that every tool asks about",
    "offsets": "committing offsets, and a million of them after kill -9",
    "groups": "1,000 members that stay, 50 that rebalance",
    "transactions": "transactions of 100 records from one client",
    "spark_source": "rows that one Spark core reads, beside Spark's own connector",
    "spark_sink": "rows that one Spark core writes, beside Spark's own connector",
    "spark_trickle": "small batches beside a source and sink that do nothing, and Spark's own connector",
    "recovery": "reopening 10 GB after kill -9",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", choices=[[], *CASES], help="which ones; all by default")
    names = parser.parse_args().name or list(CASES)
    figures: list[Figure] = []
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for name in names:
            task = progress.add_task(CASES[name], total=None)
            figures += _run_of(name)()
            progress.stop_task(task)
    show(figures)
    console.print(f"figures kept in {save(figures)}")


def _run_of(name: str) -> Callable[[], list[Figure]]:
    run: Callable[[], list[Figure]] = import_module(f"benchmarks.{name}").run
    return run


if __name__ == "__main__":
    main()
