"""The runtime that groups and transactions share: shards, their effects, their timers, loading and replay.

Not here: any rule about groups or transactions.
"""
