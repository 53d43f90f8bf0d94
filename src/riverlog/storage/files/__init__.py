"""Kafka's files beside the log itself: names, checkpoints, indexes, `meta.properties`, `partition.metadata`.

Not here: when they are written, and what they mean for a log.
"""
