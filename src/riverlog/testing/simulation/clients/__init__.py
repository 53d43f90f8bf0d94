"""Clients at the level of the wire, each a process of its own on the simulated network."""
