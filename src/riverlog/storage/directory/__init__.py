"""The data directories and the logs in them: claims, checkpoints, moves between directories, the cleaner.

Not here: what is in a log, and which partitions belong on this node.
"""
