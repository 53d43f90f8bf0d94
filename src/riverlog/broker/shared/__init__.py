"""What several handlers answer from: the cluster as clients see it, config changes, coordinators.

Not here: handlers. A module that serves one API belongs beside its handler.
"""
