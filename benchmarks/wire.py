"""Decode and encode cost per request, as figures for `python -m benchmarks wire`."""

from benchmarks import wire_bench
from benchmarks.figures import Figure


def run() -> list[Figure]:
    return [Figure(name, value, unit) for name, value, unit in wire_bench.run()]
