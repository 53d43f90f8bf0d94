"""The ports of `riverlog.model` on the real thing, as far as they are the node's: clock, threads, metrics,
and a network as the settings want it.

Not here: disks (`storage.disk`), sockets (`broker.net`) and stores of metadata (`metadata.stores`).
"""
