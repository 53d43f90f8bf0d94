"""The words every layer shares: ids, errors, config, and the ports to the outside world.

Pure: no I/O, clock, randomness or await. Not here: anything that acts. A port is a `Protocol`; its real
adapter lives with the layer that owns the effect, its simulated one in `riverlog.testing`.
"""
