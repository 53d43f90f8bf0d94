"""The group coordinator: committed offsets, classic groups, consumer groups (KIP-848).

One shard holds all groups of one partition of `__consumer_offsets`. Not here: the runtime that makes its
decisions lasting, and the wire.
"""
