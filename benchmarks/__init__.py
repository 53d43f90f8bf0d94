"""Benchmarks: figures, never assertions. `make bench` runs them all."""
