"""Groups of KIP-848: heartbeats, reconciliation, target assignments, migration from and to classic groups.

Not here: the assignors (`groups.assignors`), the syntax of topic patterns (`riverlog.re2`).
"""
