"""The composition root: settings in, a running broker out; everything that starts is stopped in reverse.

The only layer that picks adapters for the ports (clock, disk, network, metadata store, metrics) and the only
one that knows the whole. Not here: any decision about records, partitions or topics.
"""
