"""Riverlog and Apache Kafka side by side: one run, one client, one machine.

`python -m benchmarks.compare` starts what it measures (or is given `--target NAME=HOST:PORT`), runs every
case on every target in turn, and keeps each sample; `python -m benchmarks.compare report RESULT.json` writes
the generated part of docs/performance.md. Figures, never assertions.
"""
